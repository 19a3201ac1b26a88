package content

import (
	"math/bits"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/octets"
)

// redact applies the mode in force to a value that is content, and reports whether the attribute has to be removed.
func (w *walk) redact(ru *rule, key string, v pcommon.Value) bool {
	mode := w.mode
	if ru.mode != "" {
		mode = ru.mode
	}
	switch {
	case ru.verb == verbSecret:
		w.count(ClassSecret, key)
		return true
	case ru.verb == verbIdentity && w.r.hashIdentity:
		mode = ModeHash
	case mode == ModeKeep:
		w.scrub(key, v, 0)
		return false
	}
	class := ru.class
	if v.Type() == pcommon.ValueTypeBytes && class == ClassUnknown {
		class = ClassBlob
	}
	measured := len(w.measures)
	w.measure(ru, key, v)
	if mode == ModeHash || mode == ModeTruncate {
		t := transform{w: w, mode: mode}
		if t.value(v, false, false, 0); !t.changed { // hashed before, or short enough
			w.measures = w.measures[:measured]
			return false
		}
	}
	w.count(class, key)
	return mode == ModeStrip
}

// measure notes what may be said about a text that goes: its characters and, of messages, the roles and types.
func (w *walk) measure(ru *rule, key string, v pcommon.Value) {
	write := !ru.noLength && !w.bare && len(w.measures) < maxMeasures
	var sum *summary
	var x *measure
	if write {
		if x = w.next(); ru.class == ClassMessage || ru.class == ClassCompletion {
			sum = &x.sum
		}
	}
	// Metadata and identities repeat routes and model names, and no name repeats a vector.
	names := ru.class != ClassMetadata && ru.class != ClassIdentity && ru.class != ClassBlob
	n, text := w.characters(v, sum, names, 0)
	if !write {
		return
	}
	if !text {
		w.measures = w.measures[:len(w.measures)-1]
		return
	}
	x.length = n
	if x.keys = ru.keys; x.keys == nil {
		x.keys = newMeasureKeys(key)
	}
}

// characters is the number of characters of all texts in a value, and whether there is any text. Bytes count as characters.
// Messages are summed up on the way, and texts, but not the skeleton, remembered if names may repeat them.
func (w *walk) characters(v pcommon.Value, sum *summary, names bool, depth int) (n int64, text bool) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		s := v.Str()
		if names {
			w.remember(s)
		}
		if sum != nil {
			sum.json(s)
		}
		return runeCount(s), true
	case pcommon.ValueTypeBytes:
		return int64(v.Bytes().Len()), true
	case pcommon.ValueTypeMap:
		if depth >= maxDepth {
			return 0, false
		}
		for k, e := range v.Map().All() {
			if sum != nil && e.Type() == pcommon.ValueTypeStr {
				sum.field(k, e.Str())
			}
			_, skeleton := skeletonVerb(k, true)
			m, t := w.characters(e, sum, names && !skeleton, depth+1)
			n, text = n+m, text || t
		}
		return n, text
	case pcommon.ValueTypeSlice:
		if depth >= maxDepth {
			return 0, false
		}
		s := v.Slice()
		for i := range s.Len() {
			m, t := w.characters(s.At(i), sum, names, depth+1)
			n, text = n+m, text || t
		}
		return n, text
	}
	return 0, false
}

// scrub removes credentials from a value that is kept: map entries under a secret key, tokens in texts.
func (w *walk) scrub(key string, v pcommon.Value, depth int) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		if out, found := scrubSecrets(v.Str()); found {
			w.count(ClassSecret, key)
			v.SetStr(out)
		}
	case pcommon.ValueTypeMap:
		if depth >= maxDepth {
			w.count(ClassUnknown, key)
			v.SetStr("")
			return
		}
		v.Map().RemoveIf(func(k string, e pcommon.Value) bool {
			if isSecretKey(k) {
				w.count(ClassSecret, key)
				return true
			}
			w.scrub(key, e, depth+1)
			return false
		})
	case pcommon.ValueTypeSlice:
		w.scrubSlice(key, v.Slice(), depth)
	}
}

func (w *walk) scrubSlice(key string, s pcommon.Slice, depth int) {
	for i := range s.Len() {
		if depth >= maxDepth {
			s.At(i).SetStr("")
			continue
		}
		w.scrub(key, s.At(i), depth+1)
	}
}

// scalarText is a number or boolean as text.
func scalarText(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeInt:
		return strconv.FormatInt(v.Int(), 10)
	case pcommon.ValueTypeDouble:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case pcommon.ValueTypeBool:
		return strconv.FormatBool(v.Bool())
	}
	return ""
}

// runeCount is utf8.RuneCountInString for valid UTF-8, 64 bytes at a time: it counts the bytes that begin a character, and
// skips runs of ASCII.
func runeCount(s string) int64 {
	n := len(s)
	for len(s) >= 64 {
		a, b, c, d := octets.Word(s), octets.Word(s[8:]), octets.Word(s[16:]), octets.Word(s[24:])
		e, f, g, h := octets.Word(s[32:]), octets.Word(s[40:]), octets.Word(s[48:]), octets.Word(s[56:])
		if (a|b|c|d|e|f|g|h)&octets.High != 0 {
			n -= bits.OnesCount64(continuation(a) | continuation(b)>>1 | continuation(c)>>2 | continuation(d)>>3 |
				continuation(e)>>4 | continuation(f)>>5 | continuation(g)>>6 | continuation(h)>>7)
		}
		s = s[64:]
	}
	for i := 0; i < len(s); i++ {
		if s[i]&0xc0 == 0x80 {
			n--
		}
	}
	return int64(n)
}

// continuation marks with bit 7 the bytes of w that go on with a character: 10xxxxxx.
func continuation(w uint64) uint64 { return w & (^w << 1) & octets.High }
