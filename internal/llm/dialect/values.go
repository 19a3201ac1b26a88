package dialect

import (
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxTokens is the largest token count that is believed: far above any context window in use, far below what would spoil a total.
const maxTokens = 1 << 32

// text is the string value of a field, "" when it is absent or of another type.
func (s *slots) text(f field) string {
	if !s.has(f) || s.values[f].Type() != pcommon.ValueTypeStr {
		return ""
	}
	return s.values[f].Str()
}

// flag is a boolean value; false when it is absent or of another type.
func (s *slots) flag(f field) bool {
	return s.has(f) && s.values[f].Type() == pcommon.ValueTypeBool && s.values[f].Bool()
}

// firstText is the string value of a field, or the first string of an array of them.
func (s *slots) firstText(f field) string {
	if !s.has(f) {
		return ""
	}
	v := s.values[f]
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return v.Str()
	case pcommon.ValueTypeSlice:
		if v.Slice().Len() > 0 && v.Slice().At(0).Type() == pcommon.ValueTypeStr {
			return v.Slice().At(0).Str()
		}
	}
	return ""
}

// number is a numeric value; ok is false for every other type, for NaN and for infinities.
func number(v pcommon.Value) (float64, bool) {
	switch v.Type() {
	case pcommon.ValueTypeDouble:
		d := v.Double()
		return d, !math.IsNaN(d) && !math.IsInf(d, 0)
	case pcommon.ValueTypeInt:
		return float64(v.Int()), true
	}
	return 0, false
}

// numberOrText also reads a decimal number from a string. Only sources that were seen to write numbers as strings use it.
func numberOrText(v pcommon.Value) (float64, bool) {
	if v.Type() == pcommon.ValueTypeStr {
		if len(v.Str()) > 32 {
			return 0, false
		}
		d, err := strconv.ParseFloat(v.Str(), 64)
		return d, err == nil && !math.IsNaN(d) && !math.IsInf(d, 0)
	}
	return number(v)
}

// count is a token count: a whole number from 0 to maxTokens, as an int or, as JavaScript sends it, a double.
func count(v pcommon.Value) (int64, bool) {
	switch v.Type() {
	case pcommon.ValueTypeInt:
		n := v.Int()
		return n, n >= 0 && n <= maxTokens
	case pcommon.ValueTypeDouble:
		d := v.Double()
		return int64(d), d >= 0 && d <= maxTokens && d == math.Trunc(d)
	}
	return 0, false
}

// httpStatus is a status code from 100 to 599, as an int or, as routers written in Rust send it, a string.
func (s *slots) httpStatus() int64 {
	if !s.has(fieldHTTPStatus) {
		return 0
	}
	if n, ok := numberOrText(s.values[fieldHTTPStatus]); ok && n >= 100 && n <= 599 && n == math.Trunc(n) {
		return int64(n)
	}
	return 0
}

// finishReason is the first finish reason: of an array, of a JSON array in a string, or a bare string.
func (s *slots) finishReason() string {
	r := s.firstText(fieldFinishReasons)
	if len(r) > 0 && r[0] == '[' {
		r = firstQuoted(r)
	}
	if !isName(r, 32) {
		return ""
	}
	return r
}

// firstQuoted is the first double-quoted string of a JSON array of plain words.
func firstQuoted(s string) string {
	start := -1
	for i := 0; i < len(s); i++ {
		if s[i] != '"' {
			continue
		}
		if start >= 0 {
			return s[start:i]
		}
		start = i + 1
	}
	return ""
}

// isName tells whether s can be a name that a program chose: 1 to limit characters of [A-Za-z0-9._:/@+-].
func isName(s string, limit int) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '.' || c == '_' || c == ':' || c == '/' || c == '@' || c == '+' || c == '-':
		default:
			return false
		}
	}
	return true
}

// modelLength is the longest model name that is accepted.
const modelLength = 128

// OtherModel stands for a model name that is not in the form of one. A caller can put any text into a model name (a request for a
// model that does not exist), so a name is checked before it becomes a label.
const OtherModel = "_other"

// Model is the model name as a label: itself when it has the form of one, OtherModel when not, "" when there is none.
func Model(s string) string {
	if s == "" || isName(s, modelLength) {
		return s
	}
	return OtherModel
}
