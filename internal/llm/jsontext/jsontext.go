// Package jsontext reads JSON where it lies: it finds the ends of strings and values in a text without copying or decoding it, because
// the prompts and answers on spans are kilobytes of JSON of which little is looked at. What it takes for valid is what encoding/json does.
package jsontext

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/octets"
)

// Space is the index of the first byte at or after i that is no insignificant space.
func Space(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}

// String is the index behind the string whose opening quote is s[i], and whether there are escapes in it; ok is false when it is not
// valid or does not end. Bytes that are not UTF-8 are valid, as they are to encoding/json.
func String(s string, i int) (end int, escaped, ok bool) {
	for i++; ; {
		n := strings.IndexByte(s[i:], '"')
		if n < 0 || hasControl(s[i:i+n]) {
			return 0, false, false
		}
		quote := i + n
		for i <= quote {
			if n = strings.IndexByte(s[i:quote], '\\'); n < 0 {
				return quote + 1, escaped, true
			}
			escaped = true
			i += n + 2
			switch s[i-1] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if _, ok := hex4(s[i:]); !ok {
					return 0, false, false
				}
				i += 4
			default:
				return 0, false, false
			}
		}
	}
}

// hasControl tells whether there is a byte below a space. It looks at eight bytes at a time, since it looks at all of a text.
func hasControl(s string) bool {
	const spaces = ' ' * octets.Ones
	// (x - spaces) &^ x has its bit 7 set in bytes below a space. A borrow sets some wrongly, but only above one that is set rightly.
	low := func(x uint64) uint64 { return (x - spaces) &^ x }
	for len(s) >= 32 {
		if (low(octets.Word(s))|low(octets.Word(s[8:]))|low(octets.Word(s[16:]))|low(octets.Word(s[24:])))&octets.High != 0 {
			return true
		}
		s = s[32:]
	}
	for i := range len(s) {
		if s[i] < ' ' {
			return true
		}
	}
	return false
}

// maxDepth is the nesting that encoding/json takes for valid.
const maxDepth = 10_000

// Value is the index behind the value that begins at i, behind spaces; ok is false when it is not valid.
func Value(s string, i int) (end int, ok bool) { return value(s, i, 0) }

func value(s string, i, depth int) (end int, ok bool) {
	if i = Space(s, i); i >= len(s) {
		return 0, false
	}
	switch s[i] {
	case '"':
		end, _, ok = String(s, i)
		return end, ok
	case '{', '[':
		if depth++; depth > maxDepth {
			return 0, false
		}
		return inner(s, i, depth)
	case 't':
		return literal(s, i, "true")
	case 'f':
		return literal(s, i, "false")
	case 'n':
		return literal(s, i, "null")
	}
	return number(s, i)
}

// inner is value for an object or an array.
func inner(s string, i, depth int) (end int, ok bool) {
	object, closing := s[i] == '{', s[i]+2 // {} and [] are two apart
	if i = Space(s, i+1); i < len(s) && s[i] == closing {
		return i + 1, true
	}
	for {
		if object {
			if i = Space(s, i); i >= len(s) || s[i] != '"' {
				return 0, false
			}
			if i, _, ok = String(s, i); !ok {
				return 0, false
			}
			if i = Space(s, i); i >= len(s) || s[i] != ':' {
				return 0, false
			}
			i++
		}
		if i, ok = value(s, i, depth); !ok {
			return 0, false
		}
		if i = Space(s, i); i >= len(s) {
			return 0, false
		}
		switch s[i] {
		case ',':
			i++
		case closing:
			return i + 1, true
		default:
			return 0, false
		}
	}
}

func literal(s string, i int, w string) (end int, ok bool) {
	return i + len(w), strings.HasPrefix(s[i:], w)
}

// number: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func number(s string, i int) (end int, ok bool) {
	digits := func() bool {
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(s) && s[i] == '-' {
		i++
	}
	if i < len(s) && s[i] == '0' {
		i++
	} else if !digits() {
		return 0, false
	}
	if i < len(s) && s[i] == '.' {
		if i++; !digits() {
			return 0, false
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		if i++; i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if !digits() {
			return 0, false
		}
	}
	return i, true
}

// Valid tells whether a text is one JSON value.
func Valid(s string) bool {
	end, ok := Value(s, 0)
	return ok && Space(s, end) == len(s)
}

// Unescape is the text of the inside of a JSON string whose escapes are known to be right, up to about limit bytes. Half a
// surrogate pair becomes U+FFFD, as in encoding/json.
func Unescape(raw string, limit int) string {
	out := make([]byte, 0, min(len(raw), limit+utf8.UTFMax))
	for len(raw) > 0 && len(out) < limit {
		i := strings.IndexByte(raw, '\\')
		if i < 0 {
			i = len(raw)
		}
		if i > 0 {
			i = min(i, limit-len(out))
			out, raw = append(out, raw[:i]...), raw[i:]
			continue
		}
		switch c := raw[1]; c {
		case 'u':
			r, _ := hex4(raw[2:])
			raw = raw[6:]
			if utf16.IsSurrogate(r) {
				low := rune(utf8.RuneError)
				if strings.HasPrefix(raw, `\u`) {
					low, _ = hex4(raw[2:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					raw = raw[6:]
				}
			}
			out = utf8.AppendRune(out, r)
			continue
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		default:
			out = append(out, c)
		}
		raw = raw[2:]
	}
	return string(out)
}

// hex4 reads four hex digits.
func hex4(s string) (r rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for i := range 4 {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
