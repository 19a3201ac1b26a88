package line

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean replaces what a terminal would act on instead of showing (control and format characters, invalid UTF-8), so that a
// model called "\x1b[2J" clears nobody's screen. Cost is bounded: text beyond cleanMax bytes is cut.
func clean(s string) string {
	if len(s) > cleanMax {
		s = s[:cleanMax]
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

const cleanMax = 1024

// clip keeps the first n characters, the last of them an ellipsis when something was cut.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// clipLeft keeps the last n characters: models differ at the end of their names (-8B-Instruct-AWQ), not at the start.
func clipLeft(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return "…" + string(r[len(r)-n+1:])
}

func pad(s string, n int) string {
	return s + spaces(n-utf8.RuneCountInString(s))
}

func padLeft(s string, n int) string {
	return spaces(n-utf8.RuneCountInString(s)) + s
}

func spaces(n int) string {
	return strings.Repeat(" ", max(n, 0))
}
