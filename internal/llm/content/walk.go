package content

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	// maxMeasures bounds the `<key>.length` attributes written to one attribute set: writing one looks for the key first.
	maxMeasures = 128
	// maxKeptMeasures bounds the measures whose memory is used again.
	maxKeptMeasures = 16
	// maxKeptDocument bounds the memory for JSON texts that is used again, in bytes: some twenty hashed messages.
	maxKeptDocument = 4096
	// maxSeen bounds the texts of one span that its names are compared with, and maxSearches how often a text is searched.
	maxSeen     = 16
	maxSearches = 64
	// maxElements bounds a list of tokens; a longer one is content.
	maxElements = 64
	// maxDepth bounds the nesting that is followed; what lies deeper is content as a whole.
	maxDepth = 64
)

// walk is one pass over a tree of telemetry in one mode. Walks are pooled: see Redactor.walk.
type walk struct {
	r    *Redactor
	mode Mode
	f    *Facts
	rep  *Report // nil unless scanning

	signal Signal
	place  string
	bare   bool // write no `<key>.length`: data points, whose attributes are their identity

	measures []measure
	document []byte    // a JSON text that is being transformed
	seen     []string  // texts of the span at hand
	models   [2]string // and models: a name may repeat them
	searches int
	counted  int // values redacted so far
}

// walk takes a walk from the pool; done gives it back.
func (r *Redactor) walk(signal Signal, mode Mode, f *Facts) *walk {
	w, ok := r.walks.Get().(*walk)
	if !ok {
		w = new(walk)
	}
	w.r, w.f, w.signal, w.mode, w.bare = r, f, signal, mode, signal == SignalMetrics
	return w
}

// done forgets everything that the walk saw: the pool must not keep a prompt alive. What is left of measures is words of closed sets, and
// keys.
func (w *walk) done() {
	clear(w.seen[:cap(w.seen)])
	if cap(w.measures) > maxKeptMeasures {
		w.measures = nil
	}
	if cap(w.document) > maxKeptDocument {
		w.document = nil
	}
	clear(w.document[:cap(w.document)])
	r := w.r
	*w = walk{seen: w.seen[:0], measures: w.measures[:0], document: w.document[:0]}
	r.walks.Put(w)
}

// measure is what is left of one text: attributes to write once the walk over the set is done.
type measure struct {
	keys   *measureKeys
	length int64
	sum    summary
}

// next is a measure to be filled in, with the memory of one that was written.
func (w *walk) next() *measure {
	if n := len(w.measures); n < cap(w.measures) {
		w.measures = w.measures[:n+1]
		x := &w.measures[n]
		*x = measure{sum: summary{roles: x.sum.roles[:0], types: x.sum.types[:0]}}
		return x
	}
	w.measures = append(w.measures, measure{})
	return &w.measures[len(w.measures)-1]
}

func (w *walk) count(c Class, key string) {
	w.f.count(c)
	w.counted++
	if w.rep != nil {
		w.rep.add(w.signal, w.place, c, key, w.r.keys)
	}
}

// attributes redacts one attribute set in place, in one pass.
func (w *walk) attributes(m pcommon.Map) {
	if m.Len() == 0 {
		return
	}
	m.RemoveIf(func(key string, v pcommon.Value) bool { return w.attribute(key, v) })
	if len(w.measures) > 0 {
		w.flush(m)
	}
}

// flush writes the measures of the texts that were removed. An existing one is older and nearer to the truth: it stays.
func (w *walk) flush(m pcommon.Map) {
	n := 0
	for i := range w.measures {
		n += 1 + w.measures[i].sum.attributes()
	}
	m.EnsureCapacity(m.Len() + n)
	for i := range w.measures {
		x := &w.measures[i]
		if length, ok := m.GetOrPutEmpty(x.keys.length); !ok {
			length.SetInt(x.length)
		}
		x.sum.write(m, x.keys)
	}
	w.measures = w.measures[:0]
}

// attribute decides about one attribute and reports whether it has to be removed.
func (w *walk) attribute(key string, v pcommon.Value) bool {
	t := v.Type()
	if t == pcommon.ValueTypeEmpty {
		return false
	}
	ru := w.r.keys.lookup(key)
	switch t {
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble, pcommon.ValueTypeBool:
		if ru.verb > verbSecret && (ru.verb != verbIdentity || !w.r.hashIdentity) {
			return false
		}
	case pcommon.ValueTypeStr:
		if ru.verb > verbSecret {
			s := v.Str()
			if len(s) == 0 {
				return false
			}
			if out, fits := w.fit(&ru, key, s); fits {
				if len(out) != len(s) || out != s {
					v.SetStr(out)
				}
				return false
			}
		} else if len(v.Str()) == 0 {
			return false
		}
	case pcommon.ValueTypeSlice:
		if v.Slice().Len() == 0 || ru.verb > verbSecret && w.sliceFits(&ru, key, v.Slice()) {
			return false
		}
	case pcommon.ValueTypeMap:
		if v.Map().Len() == 0 {
			return false
		}
		if ru.verb == verbPhrase || ru.verb == verbAllow {
			w.nested(key, v.Map(), ru.verb == verbAllow, 0)
			return v.Map().Len() == 0
		}
	case pcommon.ValueTypeBytes:
		if v.Bytes().Len() == 0 || ru.verb == verbAllow {
			return false
		}
	}
	return w.redact(&ru, key, v)
}

// fit checks a string under a key that is not known to carry text. It returns what to put there, and false when the string
// has not the shape that the key promises and so is content.
func (w *walk) fit(ru *rule, key, s string) (string, bool) {
	if w.mode == ModeKeep && ru.verb != verbIdentity {
		out, found := scrubSecrets(s)
		if found {
			w.count(ClassSecret, key)
		}
		return out, true
	}
	switch ru.verb {
	case verbLabel:
		return s, isQuotedLabel(s) || isStamp(s)
	case verbLabels:
		return s, isLabels(s)
	case verbModel:
		if name, ok := ModelName(unquote(s)); ok {
			w.models[0], w.models[1] = name, w.models[0]
			return s, true
		}
		w.count(ClassName, key)
		return OtherName, true
	case verbFinish:
		return s, isFinish(s)
	case verbEnum:
		return s, isEnum(s) || len(s) == 1 && allBytes(s, isLabelByte)
	case verbNumber:
		return s, isStamp(s) || isUsageJSON(s)
	case verbName:
		out := w.name(s)
		if out != s {
			w.remember(s)
			w.count(ClassName, key)
		}
		return out, true
	case verbError:
		if isErrorType(s) {
			return s, true
		}
		w.remember(s)
		w.count(ClassError, key)
		return OtherName, true
	case verbPhrase, verbOurs:
		return s, isPhrase(s)
	case verbURL:
		out, ok := stripURL(s)
		if ok && out != s {
			w.count(ClassURL, key)
		}
		return out, ok
	case verbAgent:
		out := userAgent(s)
		if out != s {
			w.count(ClassMetadata, key)
		}
		return out, true
	case verbIdentity:
		return w.identity(key, s)
	case verbAllow:
		out, found := scrubSecrets(s)
		if found {
			w.count(ClassSecret, key)
		}
		return out, true
	case verbStamp:
		return s, isStamp(s)
	case verbTitle:
		return s, isIdentity(s)
	}
	return s, false
}

func (w *walk) identity(key, s string) (string, bool) {
	switch {
	case !w.r.hashIdentity:
		return s, isIdentity(s) || w.mode == ModeKeep
	case isHashed(s):
		return s, true
	}
	w.count(ClassIdentity, key)
	return w.r.hash.text(s), true
}

// sliceFits checks the elements of a slice one by one. A slice of slices or maps never fits; nor does a long list of numbers,
// which is a vector.
func (w *walk) sliceFits(ru *rule, key string, s pcommon.Slice) bool {
	if ru.verb == verbAllow || w.mode == ModeKeep && ru.verb != verbIdentity {
		w.scrubSlice(key, s, 0)
		return true
	}
	n := s.Len()
	if n > maxElements || isVector(s) || ru.verb == verbScalar || ru.verb == verbStamp {
		return false
	}
	for i := 0; i < n; i++ {
		e := s.At(i)
		switch e.Type() {
		case pcommon.ValueTypeEmpty, pcommon.ValueTypeInt, pcommon.ValueTypeDouble, pcommon.ValueTypeBool:
		case pcommon.ValueTypeStr:
			if str := e.Str(); len(str) > 0 {
				if ru.verb == verbSummary {
					if !isSummaryWord(str) {
						return false
					}
					continue
				}
				out, ok := w.fit(ru, key, str)
				if !ok {
					return false
				}
				if out != str {
					e.SetStr(out)
				}
			}
		default:
			return false
		}
	}
	return true
}

// nested treats a map under a harmless key as if its keys were joined to the outer one with a dot.
func (w *walk) nested(key string, m pcommon.Map, allow bool, depth int) {
	m.RemoveIf(func(k string, v pcommon.Value) bool {
		switch {
		case depth >= maxDepth:
			w.count(ClassUnknown, key)
			return true
		case isSecretKey(k):
			w.count(ClassSecret, key)
			return true
		case v.Type() == pcommon.ValueTypeMap && v.Map().Len() > 0 && allow:
			w.nested(key, v.Map(), allow, depth+1)
			return false
		case allow:
			ru := rule{verb: verbAllow}
			switch v.Type() {
			case pcommon.ValueTypeStr:
				out, _ := w.fit(&ru, key, v.Str())
				v.SetStr(out)
			case pcommon.ValueTypeSlice:
				w.scrubSlice(key, v.Slice(), depth)
			}
			return false
		}
		bare := w.bare
		w.bare = true // lengths would land beside the outer key
		defer func() { w.bare = bare }()
		return w.attribute(key+"."+k, v)
	})
}

// forget begins the next span, record or point.
func (w *walk) forget() { w.seen, w.models, w.searches = w.seen[:0], [2]string{}, 0 }

// remember keeps a text of the span at hand, to find copies of it in names.
func (w *walk) remember(s string) {
	if len(w.seen) < maxSeen && len(s) >= 4 {
		w.seen = append(w.seen, s)
	}
}
