package page

import (
	"errors"
	"strconv"
	"strings"
)

// sample reads one sample line and appends its labels to ps.labels. What follows the value (a timestamp, an exemplar) has to be well formed
// and is not kept: the engines print none, and the time of a scrape is the scraper's.
func (ps *Parser) sample(line string) (name string, value float64, ok bool) {
	i := 0
	for i < len(line) && isNameByte(line[i], i == 0) {
		i++
	}
	name, rest := line[:i], trimBlank(line[i:])
	if strings.HasPrefix(rest, "{") {
		var quoted string
		if rest, quoted, ok = ps.labelSet(rest[1:], name == ""); !ok {
			return "", 0, false
		}
		if name == "" {
			name = quoted
		}
	}
	if name == "" {
		return "", 0, false
	}
	word, rest := cutWord(trimBlank(rest))
	if value, ok = parseValue(word); !ok {
		return "", 0, false
	}
	return name, value, tailOK(rest)
}

// labelSet reads `a="b",c="d"}` and returns what follows the brace. With nameInside the first item may be the quoted name of the sample, as
// Prometheus 3 prints names outside the old alphabet.
func (ps *Parser) labelSet(s string, nameInside bool) (rest, name string, ok bool) {
	from := len(ps.labels)
	for {
		s = trimBlank(s)
		if strings.HasPrefix(s, "}") {
			return s[1:], name, true
		}
		var key string
		if strings.HasPrefix(s, `"`) {
			if key, s, ok = quoted(s[1:]); !ok {
				return "", "", false
			}
		} else {
			i := 0
			for i < len(s) && isLabelByte(s[i], i == 0) {
				i++
			}
			key, s = s[:i], s[i:]
		}
		s = trimBlank(s)
		switch {
		case strings.HasPrefix(s, "=") && key != "":
			s = trimBlank(s[1:])
			if !strings.HasPrefix(s, `"`) {
				return "", "", false
			}
			var value string
			if value, s, ok = quoted(s[1:]); !ok {
				return "", "", false
			}
			for _, l := range ps.labels[from:] {
				if l.Name == key {
					return "", "", false
				}
			}
			ps.labels = append(ps.labels, Label{key, value})
		case nameInside && name == "" && key != "" && len(ps.labels) == from:
			name = key
		default:
			return "", "", false
		}
		s = trimBlank(s)
		if strings.HasPrefix(s, ",") {
			s = s[1:]
		} else if !strings.HasPrefix(s, "}") {
			return "", "", false
		}
	}
}

// quoted reads up to the closing quote and undoes \\, \" and \n. Without an escape the result is a part of s.
func quoted(s string) (value, rest string, ok bool) {
	end := strings.IndexByte(s, '"')
	if end < 0 {
		return "", "", false
	}
	if strings.IndexByte(s[:end], '\\') < 0 {
		return s[:end], s[end+1:], true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], true
		case c == '\\' && i+1 < len(s):
			i++
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case '\\', '"':
				b.WriteByte(s[i])
			default: // as the formats ask: an unknown escape is two characters
				b.WriteByte('\\')
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

func quotedName(s string) (string, bool) {
	if !strings.HasPrefix(s, `"`) {
		return "", false
	}
	n, rest, ok := quoted(s[1:])
	return n, ok && rest == ""
}

// parseValue reads a Go float without the forms that only Go has (hexadecimal, underscores). `-nan(ind)` and `-nan` are not values.
func parseValue(s string) (float64, bool) {
	if s == "" || strings.ContainsAny(s, "xX_pP") {
		return 0, false
	}
	if v, ok := smallInt(s); ok {
		return v, true
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil && !isRange(err) {
		return 0, false
	}
	return v, true
}

// smallInt reads "12" and "12.0", which most values of a page are, five times faster than strconv.
func smallInt(s string) (float64, bool) {
	s = strings.TrimSuffix(s, ".0")
	if len(s) == 0 || len(s) > 15 {
		return 0, false
	}
	n := int64(0)
	for i := 0; i < len(s); i++ {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	return float64(n), true
}

// isRange tells 1e999, which both formats read as infinity, from text that is no number.
func isRange(err error) bool {
	return errors.Is(err, strconv.ErrRange)
}

// tailOK checks what may follow a value: a timestamp, then an exemplar.
func tailOK(s string) bool {
	s = trimBlank(s)
	if s == "" || s[0] == '#' {
		return true
	}
	word, rest := cutWord(s)
	if _, ok := parseValue(word); !ok {
		return false
	}
	rest = trimBlank(rest)
	return rest == "" || rest[0] == '#'
}

func isNameByte(c byte, first bool) bool { return c == ':' || isLabelByte(c, first) }

func isLabelByte(c byte, first bool) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || !first && c >= '0' && c <= '9'
}

func trimBlank(s string) string {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

func cutWord(s string) (word, rest string) {
	for i := 0; i < len(s); i++ {
		if s[i] == ' ' || s[i] == '\t' {
			return s[:i], trimBlank(s[i:])
		}
	}
	return s, ""
}
