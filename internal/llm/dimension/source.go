package dimension

import (
	"fmt"
	"net/url"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// kind is where a source looks.
type kind uint8

const (
	// ofSpan: the request span, then the layers around it.
	ofSpan kind = iota
	// ofParent: every span above the request span.
	ofParent
	// ofResource: the resources of the request span and of the layers around it.
	ofResource
	// ofBaggage and ofHeader: the request span, then every span above it.
	ofBaggage
	ofHeader
)

var kinds = []struct {
	prefix string
	kind   kind
}{{"span.", ofSpan}, {"parent.", ofParent}, {"resource.", ofResource}, {"baggage.", ofBaggage}, {"header.", ofHeader}}

// source is one place that can tell the value of a dimension.
type source struct {
	kind kind
	keys []string
	// member is the name in a captured baggage header.
	member string
}

// baggageHeaders are the keys under which a captured baggage header stands.
var baggageHeaders = []string{"http.request.header.baggage"}

func parseSource(s string) (source, error) {
	for _, k := range kinds {
		key, ok := strings.CutPrefix(s, k.prefix)
		if !ok {
			continue
		}
		if key == "" {
			break
		}
		if err := allowed(key); err != nil {
			return source{}, err
		}
		out := source{kind: k.kind, keys: []string{key}}
		switch k.kind {
		case ofHeader:
			// Captured headers are in lower case; older instrumentations also replace the hyphens.
			h := strings.ToLower(key)
			out.keys = []string{"http.request.header." + h}
			for _, spelt := range []string{strings.ReplaceAll(h, "-", "_"), strings.ReplaceAll(h, "_", "-")} {
				if spelt != h {
					out.keys = append(out.keys, "http.request.header."+spelt)
				}
			}
		case ofBaggage:
			out.keys, out.member = []string{"baggage." + key}, key
		}
		return out, nil
	}
	return source{}, fmt.Errorf("must be span., parent., resource., baggage. or header. and a key, such as span.team or header.x-team; got %q", s)
}

// read is what attributes say under the source's keys.
func (s *source) read(a pcommon.Map) (string, bool) {
	for _, k := range s.keys {
		if v, ok := a.Get(k); ok {
			if text, ok := single(v); ok {
				return text, true
			}
		}
	}
	if s.kind != ofBaggage {
		return "", false
	}
	for _, k := range baggageHeaders {
		v, ok := a.Get(k)
		if !ok {
			continue
		}
		text, ok := single(v)
		if !ok {
			continue
		}
		if m, ok := member(text, s.member); ok {
			return m, true
		}
	}
	return "", false
}

// single is a scalar as text, or the one element of an array: a header is captured as an array.
func single(v pcommon.Value) (string, bool) {
	if v.Type() == pcommon.ValueTypeSlice {
		if v.Slice().Len() != 1 {
			return "", false
		}
		v = v.Slice().At(0)
	}
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return v.Str(), v.Str() != ""
	case pcommon.ValueTypeInt, pcommon.ValueTypeBool:
		return v.AsString(), true
	}
	return "", false
}

// maxBaggage is the longest baggage header that is read (W3C Baggage asks for 8192 bytes).
const maxBaggage = 8192

// member is the value of one member of a W3C baggage header: key=value;property, key=value.
func member(header, name string) (string, bool) {
	if len(header) > maxBaggage {
		return "", false
	}
	for part := range strings.SplitSeq(header, ",") {
		part, _, _ = strings.Cut(part, ";")
		k, v, ok := strings.Cut(part, "=")
		if !ok || strings.TrimSpace(k) != name {
			continue
		}
		v, err := url.PathUnescape(strings.TrimSpace(v))
		return v, err == nil && v != ""
	}
	return "", false
}
