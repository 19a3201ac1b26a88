package content

import (
	"strings"
	"unicode"
)

// A shape is what a value must look like to pass under a key that is not known to carry text. Shapes are byte scans over at
// most a few hundred bytes: they bound what can hide in a value, they do not understand it.

const (
	maxLabel  = 128 // bytes of a label or model name; genai.md section 8
	maxPhrase = 256 // bytes of a description of infrastructure
	maxName   = 128 // bytes of a span, event or scope name
	maxStamp  = 40  // bytes of a number, a time or a number with a unit
)

// Bits of the byte table.
const (
	isLabelByte  = 1 << iota // A-Z a-z 0-9 . _ : / @ + -
	isNameByte               // what span names of instrumentations are made of
	isStampByte              // digits and what stands between them in numbers and times
	isTypeByte               // what error types are made of, in any language
	isPhraseByte             // printable ASCII but for " and \\, which quote text within text
	isLetterByte             // A-Z a-z
)

var byteTable = makeByteTable()

func makeByteTable() (t [256]uint8) {
	set := func(chars string, bit uint8) {
		for i := range len(chars) {
			t[chars[i]] |= bit
		}
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	const label = letters + "0123456789._:/@+-"
	set(letters, isLetterByte)
	set(label, isLabelByte|isNameByte|isTypeByte)
	set(" (){}[]<>*|,#$=&~", isNameByte)
	set("<>[]*$&`()", isTypeByte)
	set("0123456789.:+- TZ", isStampByte)
	for b := 0x20; b < 0x7f; b++ {
		if b != '"' && b != '\\' {
			t[b] |= isPhraseByte
		}
	}
	return t
}

func allBytes(s string, bit uint8) bool {
	for i := 0; i < len(s); i++ {
		if byteTable[s[i]]&bit == 0 {
			return false
		}
	}
	return true
}

// OtherName replaces a model or name that a caller chose and that does not have the form of one.
const OtherName = "_other"

// ModelName returns s and true when it has the form of a model name, [A-Za-z0-9._:/@+-]{1,128}, and is no credential;
// otherwise OtherName and false: a refused request puts any string there.
func ModelName(s string) (string, bool) {
	if len(s) == 0 || !isLabel(s) {
		return OtherName, false
	}
	return s, true
}

// isLabel: one token of a small alphabet, without spaces; not a credential. Empty is a label.
func isLabel(s string) bool {
	return len(s) <= maxLabel && allBytes(s, isLabelByte) && !isCredential(s)
}

// isQuotedLabel: a label, or one as a JSON string (MLflow and Langfuse write every attribute as JSON).
func isQuotedLabel(s string) bool { return isLabel(unquote(s)) }

func unquote(s string) string {
	if n := len(s); n >= 2 && s[0] == '"' && s[n-1] == '"' {
		return s[1 : n-1]
	}
	return s
}

// isLabels: labels separated by commas, as some SDKs write tool names and call ids.
func isLabels(s string) bool {
	if len(s) > 4*maxLabel {
		return false
	}
	for more := true; more; {
		var part string
		part, s, more = strings.Cut(s, ",")
		if !isLabel(strings.TrimLeft(part, " ")) {
			return false
		}
	}
	return true
}

// isEnum: a constant of an API: lower case, no spaces, at most 40 bytes.
func isEnum(s string) bool {
	if len(s) == 0 || len(s) > 40 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-', c == '.', c == '/':
		default:
			return false
		}
	}
	return true
}

// isStamp: a number, a time, a number with a unit ("302 ms") or a boolean, perhaps in quotes.
func isStamp(s string) bool {
	switch s = unquote(s); s {
	case "true", "false", "True", "False", "null", "None":
		return true
	}
	if len(s) > maxStamp {
		return false
	}
	end := len(s)
	for n := 0; n < 3 && end > 0 && (byteTable[s[end-1]]&isLetterByte != 0 || s[end-1] == '%'); n++ {
		end--
	}
	if end == 0 {
		return len(s) == 0
	}
	exp := 0
	for i := 0; i < end; i++ {
		if byteTable[s[i]]&isStampByte != 0 {
			continue
		}
		if exp++; (s[i] != 'e' && s[i] != 'E') || exp > 1 || i == 0 {
			return false
		}
	}
	return true
}

// isPhrase: one line of printable ASCII that describes infrastructure; no JSON and no data URL.
func isPhrase(s string) bool {
	return len(s) <= maxPhrase && allBytes(s, isPhraseByte) && !isCredential(s) && !isDataURL(s)
}

func isDataURL(s string) bool { return len(s) >= 5 && strings.EqualFold(s[:5], "data:") }

// isErrorType: a class name or code of an error.
func isErrorType(s string) bool { return len(s) <= maxLabel && allBytes(s, isTypeByte) }

// isFinish: a finish reason, or several as JSON text or as the text of a list: stop, FinishReason.STOP, ["stop", "length"].
func isFinish(s string) bool {
	if len(s) > maxPhrase {
		return false
	}
	if n := len(s); n >= 2 && s[0] == '[' && s[n-1] == ']' {
		s = s[1 : n-1]
	}
	for start, i := 0, 0; i <= len(s); i++ {
		if i < len(s) && s[i] != ',' {
			continue
		}
		part := strings.Trim(s[start:i], " ")
		if n := len(part); n >= 2 && (part[0] == '"' || part[0] == '\'') && part[n-1] == part[0] {
			part = part[1 : n-1]
		}
		if len(part) > 40 {
			return false
		}
		for j := 0; j < len(part); j++ {
			if c := part[j]; byteTable[c]&isLetterByte == 0 && c != '_' && c != '-' && c != '.' {
				return false
			}
		}
		start = i + 1
	}
	return true
}

// wordCount is the number of tokens between spaces.
func wordCount(s string) int {
	n, in := 0, false
	for i := 0; i < len(s); i++ {
		if s[i] == ' ' {
			in = false
		} else if !in {
			in = true
			n++
		}
	}
	return n
}

// isIdentity: a single line that can name somebody: printable, no longer than a label, a few words in any script.
func isIdentity(s string) bool {
	if len(s) > maxPhrase || wordCount(s) > 5 {
		return false
	}
	for _, r := range s {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar { // no line break of any kind, no invalid byte
			return false
		}
	}
	return !isCredential(s) && !isDataURL(s)
}
