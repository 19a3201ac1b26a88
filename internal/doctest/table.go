package doctest

import "strings"

// row is one line of a key table.
type row struct {
	keys []string // one or more keys that share the line
	def  string   // the default as written, without backticks
	line int      // from 1
}

// keyRows returns the rows of every table of the page whose first two headings are "key" and "default", whatever their case.
func keyRows(page string) []row {
	var (
		out     []row
		inTable bool
		header  = true
	)
	for i, line := range strings.Split(page, "\n") {
		cells, ok := tableCells(line)
		switch {
		case !ok:
			inTable, header = false, true
		case header:
			inTable = len(cells) >= 2 && strings.EqualFold(cells[0], "key") && strings.EqualFold(cells[1], "default")
			header = false
		case inTable && !isRule(cells):
			r := row{def: strings.Trim(cells[1], "` "), line: i + 1}
			for k := range strings.SplitSeq(cells[0], ",") {
				if k = strings.Trim(k, "` "); k != "" {
					r.keys = append(r.keys, strings.ReplaceAll(k, "::", "."))
				}
			}
			out = append(out, r)
		}
	}
	return out
}

// tableCells splits a line of a pipe table; a pipe escaped by a backslash belongs to its cell (GitHub Flavored Markdown §4.10).
func tableCells(line string) ([]string, bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil, false
	}
	const held = "\x00"
	line = strings.ReplaceAll(line, `\|`, held)
	line = strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
	cells := strings.Split(line, "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(c, held, "|"))
	}
	return cells, true
}

func isRule(cells []string) bool {
	for _, c := range cells {
		if strings.Trim(c, ":-") != "" {
			return false
		}
	}
	return true
}
