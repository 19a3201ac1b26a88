package content

import (
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// blobMark stands where binary content was.
const blobMark = "[blob]"

// transform hashes or cuts the texts of one value and leaves the skeleton of messages as it is.
type transform struct {
	w       *walk
	mode    Mode // ModeHash or ModeTruncate
	changed bool // some text is not what it was
}

// text is the replacement of one text.
func (t *transform) text(s string) string {
	out := t.replace(s)
	t.changed = t.changed || out != s
	return out
}

func (t *transform) replace(s string) string {
	if t.hashes(s) {
		return t.w.r.hash.text(s)
	}
	if s == "" || s == blobMark || t.mode == ModeHash {
		return s
	}
	// Credentials go first; those that a plain cut would split are seen whole because the cut for the scan is later.
	limit := t.w.r.maxLength
	head := s[:runeOffset(s, limit)]
	head = strings.ToValidUTF8(s[:min(len(s), len(head)+256)], "")
	if isBlob(head) {
		return blobMark
	}
	head, _ = scrubSecrets(head)
	return head[:runeOffset(head, limit)]
}

// hashes tells whether the replacement of a text is a hash of it.
func (t *transform) hashes(s string) bool {
	return t.mode == ModeHash && s != "" && s != blobMark && !isHashed(s)
}

// need is how many bytes of a text are enough to make its replacement from.
func (t *transform) need() int {
	if t.mode == ModeHash {
		return wholeText
	}
	return utf8.UTFMax*(t.w.r.maxLength+1) + 512 // characters to cut at, the margin for credentials, and what tells a blob
}

// value transforms v in place. opaque: v stands in a part of a message where every key is the user's. ofTool: v's name is a tool's.
func (t *transform) value(v pcommon.Value, opaque, ofTool bool, depth int) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		s := v.Str()
		if depth == 0 {
			if out, ok := t.json(s); ok {
				if t.changed {
					v.SetStr(out)
				}
				return
			}
			t.changed = false // by a document that turned out to be none
		}
		v.SetStr(t.text(s))
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble, pcommon.ValueTypeBool:
		if t.mode == ModeHash { // a number is as short as a text may be
			v.SetStr(t.text(scalarText(v)))
		}
	case pcommon.ValueTypeBytes:
		if t.mode == ModeHash {
			v.SetStr(t.text(string(v.Bytes().AsRaw())))
		} else {
			t.blob(v)
		}
	case pcommon.ValueTypeSlice:
		s := v.Slice()
		if depth >= maxDepth || isVector(s) {
			t.whole(v)
			return
		}
		for i := range s.Len() {
			t.value(s.At(i), opaque, ofTool, depth+1)
		}
	case pcommon.ValueTypeMap:
		if depth >= maxDepth {
			t.whole(v)
			return
		}
		t.entries(v.Map(), opaque, ofTool, depth)
	}
}

func (t *transform) entries(m pcommon.Map, opaque, ofTool bool, depth int) {
	out := pcommon.NewMap()
	out.EnsureCapacity(m.Len())
	for k, v := range m.All() {
		about := member(k)
		if about.secret {
			t.changed = true
			continue
		}
		if !opaque && t.skeleton(k, v, ofTool) {
			v.MoveTo(out.PutEmpty(k))
			continue
		}
		t.value(v, opaque || about.opaque(), about.tool, depth+1)
		if !about.known() {
			k = t.text(k)
		}
		v.MoveTo(out.PutEmpty(k))
	}
	out.MoveTo(m)
}

// skeleton reports whether an entry of a message is part of its skeleton and has the shape of it.
func (t *transform) skeleton(k string, v pcommon.Value, ofTool bool) bool {
	verb, ok := skeletonVerb(k, ofTool)
	if !ok {
		return false
	}
	switch v.Type() {
	case pcommon.ValueTypeEmpty, pcommon.ValueTypeBool:
		return true
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble:
		return verb == verbNumber || verb == verbLabels
	case pcommon.ValueTypeStr:
		return skeletonFits(verb, v.Str())
	}
	return false
}

func skeletonFits(v verb, s string) bool {
	switch v {
	case verbEnum:
		return isEnum(s)
	case verbFinish:
		return isFinish(s)
	case verbLabels:
		return isLabel(s)
	case verbNumber:
		return isStamp(s)
	}
	return false
}

// whole replaces a value that is not walked any further.
func (t *transform) whole(v pcommon.Value) {
	if t.mode == ModeHash {
		v.SetStr(t.text(v.AsString()))
	} else {
		t.blob(v)
	}
}

func (t *transform) blob(v pcommon.Value) {
	t.changed = true
	v.SetStr(blobMark)
}

// isVector: a list of numbers that is too long to be a setting.
func isVector(s pcommon.Slice) bool {
	n := s.Len()
	if n < 16 {
		return false
	}
	for i := range n {
		if e := s.At(i).Type(); e != pcommon.ValueTypeDouble && e != pcommon.ValueTypeInt {
			return false
		}
	}
	return true
}

// isBlob: a data URL, or a long run of base64.
func isBlob(s string) bool {
	if isDataURL(s) {
		return true
	}
	if len(s) < 256 {
		return false
	}
	for i := range 256 {
		if c := s[i]; byteTable[c]&isLabelByte == 0 && c != '=' && c != '\r' && c != '\n' || c == '.' || c == ':' || c == '@' {
			return false
		}
	}
	return true
}

// runeOffset is the length in bytes of the first n characters of s, at most len(s). Invalid bytes count as characters.
func runeOffset(s string, n int) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return i
}
