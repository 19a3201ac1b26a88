package content

import (
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/jsontext"
)

// json transforms the texts inside a JSON document and leaves its skeleton: the result is JSON again, without insignificant
// space. It reports false when s is not one JSON document as a whole; then s is one text.
func (t *transform) json(s string) (string, bool) {
	if len(s) == 0 || strings.IndexByte(" \t\r\n{[\"", s[0]) < 0 {
		return "", false
	}
	j := jsonText{t: t, s: s, out: t.w.document[:0]}
	defer func() { t.w.document = j.out }()
	j.space()
	if j.i == len(s) || strings.IndexByte(`{["`, s[j.i]) < 0 || !j.value(false, false, 0) {
		return "", false
	}
	if j.space(); j.i != len(s) {
		return "", false
	}
	return string(j.out), true
}

// jsonText reads s from i and writes the transformed document to out.
type jsonText struct {
	t   *transform
	s   string
	i   int
	out []byte
}

func (j *jsonText) space() { j.i = jsontext.Space(j.s, j.i) }

// next skips space and consumes b if it comes next.
func (j *jsonText) next(b byte) bool {
	j.space()
	if j.i < len(j.s) && j.s[j.i] == b {
		j.i++
		return true
	}
	return false
}

// value transforms one value; false means that the document is not valid or nested too deeply.
func (j *jsonText) value(opaque, ofTool bool, depth int) bool {
	j.space()
	if j.i >= len(j.s) || depth > maxDepth {
		return false
	}
	switch j.s[j.i] {
	case '{':
		return j.object(opaque, ofTool, depth)
	case '[':
		if raw, ok := j.vector(); ok {
			if j.t.mode == ModeHash {
				j.text(raw)
			} else {
				j.t.changed = true
				j.quote(blobMark)
			}
			return true
		}
		return j.array(opaque, ofTool, depth)
	case '"':
		s, ok := j.strUpTo(j.t.need())
		if ok {
			j.text(s)
		}
		return ok
	}
	raw, ok := j.literal()
	switch {
	case !ok:
		return false
	case raw == "null", j.t.mode == ModeTruncate:
		j.out = append(j.out, raw...)
	default:
		j.text(raw)
	}
	return true
}

// text appends the replacement of one text as a JSON string.
func (j *jsonText) text(s string) {
	if !j.t.hashes(s) {
		j.quote(j.t.text(s))
		return
	}
	j.t.changed = true
	j.out = append(j.t.w.r.hash.append(append(j.out, '"'), s), '"')
}

func (j *jsonText) array(opaque, ofTool bool, depth int) bool {
	j.i++
	j.out = append(j.out, '[')
	for first := true; !j.next(']'); first = false {
		if !first {
			if !j.next(',') {
				return false
			}
			j.out = append(j.out, ',')
		}
		if !j.value(opaque, ofTool, depth+1) {
			return false
		}
	}
	j.out = append(j.out, ']')
	return true
}

func (j *jsonText) object(opaque, ofTool bool, depth int) bool {
	j.i++
	j.out = append(j.out, '{')
	start := len(j.out)
	for first := true; !j.next('}'); first = false {
		if !first && !j.next(',') {
			return false
		}
		j.space()
		key, ok := j.str()
		if !ok || !j.next(':') {
			return false
		}
		mark := len(j.out)
		if len(j.out) > start {
			j.out = append(j.out, ',')
		}
		m := member(key)
		if m.known() {
			j.quote(key)
		} else {
			j.text(key)
		}
		j.out = append(j.out, ':')
		if (opaque || !j.skeleton(key, ofTool)) && !j.value(opaque || m.opaque(), m.tool, depth+1) {
			return false
		}
		if m.secret {
			j.out, j.t.changed = j.out[:mark], true
		}
	}
	j.out = append(j.out, '}')
	return true
}

// skeleton copies the value that comes next when key is part of a message's skeleton and the value has its shape.
func (j *jsonText) skeleton(key string, ofTool bool) bool {
	verb, ok := skeletonVerb(key, ofTool)
	if !ok {
		return false
	}
	j.space()
	back := j.i
	if j.i < len(j.s) && j.s[j.i] == '"' {
		if s, ok := j.str(); ok && skeletonFits(verb, s) {
			j.quote(s)
			return true
		}
	} else if raw, ok := j.literal(); ok && (raw == "null" || raw == "true" || raw == "false" || verb == verbNumber || verb == verbLabels) {
		j.out = append(j.out, raw...)
		return true
	}
	j.i = back
	return false
}

// str reads a JSON string and returns its text; of a string that is a value in ModeTruncate no more than can be needed.
func (j *jsonText) str() (string, bool) { return j.strUpTo(wholeText) }

func (j *jsonText) strUpTo(limit int) (string, bool) {
	if j.i >= len(j.s) || j.s[j.i] != '"' {
		return "", false
	}
	end, escaped, ok := jsontext.String(j.s, j.i)
	if !ok {
		return "", false
	}
	raw := j.s[j.i+1 : end-1]
	if j.i = end; escaped {
		return jsontext.Unescape(raw, limit), true
	}
	return raw[:min(len(raw), limit)], true
}

// wholeText is a limit above every length: no OTLP message is a gibibyte.
const wholeText = 1 << 30

// literal reads a number, true, false or null.
func (j *jsonText) literal() (string, bool) {
	k := j.i
	for k < len(j.s) && (byteTable[j.s[k]]&isLetterByte != 0 || strings.IndexByte("0123456789+-.", j.s[k]) >= 0) {
		k++
	}
	raw := j.s[j.i:k]
	j.i = k
	return raw, len(raw) > 0 && jsontext.Valid(raw)
}

// vector reads an array of 16 or more numbers and nothing else.
func (j *jsonText) vector() (string, bool) {
	commas, k := 0, j.i+1
	for ; k < len(j.s) && strings.IndexByte("0123456789+-.eE, \n\r\t", j.s[k]) >= 0; k++ {
		if j.s[k] == ',' {
			commas++
		}
	}
	if commas < 15 || k >= len(j.s) || j.s[k] != ']' {
		return "", false
	}
	raw := j.s[j.i : k+1]
	if !jsontext.Valid(raw) {
		return "", false
	}
	j.i = k + 1
	return raw, true
}

// quote appends s as a JSON string.
func (j *jsonText) quote(s string) {
	const hex = "0123456789abcdef"
	j.out = append(j.out, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"', c == '\\':
			j.out = append(j.out, '\\', c)
		case c < 0x20, c == 0x7f:
			j.out = append(j.out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			j.out = append(j.out, c)
		}
	}
	j.out = append(j.out, '"')
}

// isUsageJSON: an object of numbers, as some SDKs write usage: {"prompt_tokens": 3, "details": {"cached": 0}}. Its keys are
// identifiers and it has no text values, so nothing a user typed fits in.
func isUsageJSON(s string) bool {
	if len(s) > 4096 || len(s) < 2 || s[0] != '{' {
		return false
	}
	j := jsonText{s: s}
	if !j.usage(0) {
		return false
	}
	j.space()
	return j.i == len(s)
}

func (j *jsonText) usage(depth int) bool {
	if depth > 4 || !j.next('{') {
		return false
	}
	for first := true; !j.next('}'); first = false {
		if !first && !j.next(',') {
			return false
		}
		j.space()
		key, ok := j.str()
		if !ok || !isIdentifier(key) || !j.next(':') {
			return false
		}
		j.space()
		if j.i < len(j.s) && j.s[j.i] == '{' {
			if !j.usage(depth + 1) {
				return false
			}
		} else if _, ok := j.literal(); !ok {
			return false
		}
	}
	return true
}

// isIdentifier: [A-Za-z_][A-Za-z0-9_]{0,63}, as the fields of an API are named.
func isIdentifier(s string) bool {
	if len(s) == 0 || len(s) > 64 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; byteTable[c]&isLetterByte == 0 && c != '_' && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}
