package quality

import (
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/jsontext"
)

// maxJSON is the longest text that is checked for being JSON, in bytes; a longer one is left unjudged.
const maxJSON = 1 << 20

// malformedJSON tells JSON that cannot be parsed: where the caller asked for it, or where the answer begins as JSON does. What follows a
// value that nobody asked for is the answer's own business.
func malformedJSON(text string, wanted bool) bool {
	s := strings.TrimSpace(text)
	fenced := false
	if rest, ok := strings.CutPrefix(s, "```json"); ok {
		fenced = true
		s, _, ok = strings.Cut(rest, "```")
		if !ok {
			s = rest
		}
		s = strings.TrimSpace(s)
	} else if wanted && strings.HasPrefix(s, "```") {
		_, s, _ = strings.Cut(s, "\n")
		s, _, _ = strings.Cut(s, "```")
		s, fenced = strings.TrimSpace(s), true
	}
	if len(s) > maxJSON || (!wanted && !begun(s) && !fenced) {
		return false
	}
	if wanted {
		return !jsontext.Valid(s)
	}
	_, ok := jsontext.Value(s, 0)
	return !ok && s != ""
}

// begun tells whether a text begins as a JSON object, or a list of objects or strings: a brace alone begins a template, and a bracket
// a footnote or a link, too.
func begun(s string) bool {
	if s == "" || (s[0] != '{' && s[0] != '[') {
		return false
	}
	rest := strings.TrimLeft(s[1:], " \t\r\n")
	if rest == "" {
		return false
	}
	if s[0] == '[' {
		if rest[0] == '{' {
			return begun(rest)
		}
		// ["a", "b"] and no ["quoted" words]
		if rest[0] != '"' {
			return false
		}
		after, ok := behindQuoted(rest)
		return !ok || strings.HasPrefix(after, ",") || strings.HasPrefix(after, "]")
	}
	if rest[0] == '}' {
		return true
	}
	if rest[0] != '"' {
		return false
	}
	after, ok := behindQuoted(rest)
	return !ok || strings.HasPrefix(after, ":")
}

// behindQuoted is what follows the quoted string that a text begins with, without blanks; ok is false when that does not end.
func behindQuoted(s string) (after string, ok bool) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return strings.TrimLeft(s[i+1:], " \t\r\n"), true
		}
	}
	return "", false
}
