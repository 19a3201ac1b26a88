package doctest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Block is one fenced block of a Markdown page.
type Block struct {
	Lang string // first word after the fence, lower case; empty when there is none
	Text string // what is between the fences, with the fence's own indentation removed
	Line int    // line of the opening fence, from 1
}

// Blocks returns the fenced YAML blocks (yaml or yml) of the page at path, in order.
//
// It fails the test when the page cannot be read, a fence is left open, a block is not YAML, or there is no block at all.
func Blocks(t testing.TB, path string) []Block {
	t.Helper()
	blocks, err := yamlBlocks(read(t, path))
	if err != nil {
		t.Fatalf("%s:%v", path, err)
	}
	return blocks
}

func yamlBlocks(page string) ([]Block, error) {
	all, err := parseBlocks(page)
	if err != nil {
		return nil, err
	}
	var out []Block
	for _, b := range all {
		if b.Lang != "yaml" && b.Lang != "yml" {
			continue
		}
		var v any
		if err := yaml.Unmarshal([]byte(b.Text), &v); err != nil {
			return nil, fmt.Errorf("%d: block is not YAML: %w", b.Line, err)
		}
		out = append(out, b)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("0: no YAML block on the page")
	}
	return out, nil
}

// parseBlocks splits out every fenced block of any language; a fence is three or more backticks or tildes
// (CommonMark 0.31 §4.5) and closes with at least as many of the same.
func parseBlocks(page string) ([]Block, error) {
	var (
		out    []Block
		cur    *Block
		fence  string
		indent int
		text   strings.Builder
	)
	for i, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		mark := fenceOf(trimmed)
		switch {
		case cur == nil && mark != "":
			info := strings.TrimSpace(trimmed[len(mark):])
			lang, _, _ := strings.Cut(info, " ")
			cur, fence, indent = &Block{Lang: strings.ToLower(lang), Line: i + 1}, mark, len(line)-len(trimmed)
			text.Reset()
		case cur != nil && strings.HasPrefix(mark, fence) && strings.TrimSpace(trimmed[len(mark):]) == "":
			cur.Text = text.String()
			out = append(out, *cur)
			cur = nil
		case cur != nil:
			text.WriteString(dedent(line, indent))
			text.WriteByte('\n')
		}
	}
	if cur != nil {
		return nil, fmt.Errorf("%d: fence is never closed", cur.Line)
	}
	return out, nil
}

// fenceOf returns the run of backticks or tildes that s starts with, or "" when it is shorter than three.
func fenceOf(s string) string {
	if s == "" || (s[0] != '`' && s[0] != '~') {
		return ""
	}
	n := 0
	for n < len(s) && s[n] == s[0] {
		n++
	}
	if n < 3 {
		return ""
	}
	return s[:n]
}

func dedent(line string, n int) string {
	for n > 0 && strings.HasPrefix(line, " ") {
		line, n = line[1:], n-1
	}
	return line
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
