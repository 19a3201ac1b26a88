package assemble

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

var packedKeys = NewKeys([]string{"a", "b"}, []string{"b", "gen_ai.request.model"})

// wire is a map as it would be sent, so that order and kinds count.
func wire(t testing.TB, m pcommon.Map) []byte {
	t.Helper()
	td := ptrace.NewTraces()
	m.CopyTo(td.ResourceSpans().AppendEmpty().Resource().Attributes())
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	return b
}

// fill draws attributes of every kind.
func fill(r *rand.Rand, m pcommon.Map, depth int) {
	for i := range r.IntN(8) {
		key := [...]string{"a", "b", "gen_ai.request.model", "tenant", ""}[r.IntN(5)]
		if r.IntN(3) == 0 {
			key += strconv.Itoa(i)
		}
		value(r, m.PutEmpty(key), depth)
	}
}

func value(r *rand.Rand, v pcommon.Value, depth int) {
	switch k := r.IntN(8); {
	case k == 0:
		v.SetStr(string(make([]byte, r.IntN(300))))
	case k == 1:
		v.SetInt([...]int64{0, 1, -1, 300, math.MaxInt64, math.MinInt64}[r.IntN(6)])
	case k == 2:
		v.SetDouble([...]float64{0, -0.5, math.Inf(-1), math.MaxFloat64}[r.IntN(4)])
	case k == 3:
		v.SetBool(r.IntN(2) == 0)
	case k == 4:
		v.SetEmptyBytes().FromRaw([]byte("\x00\xff")[:r.IntN(3)])
	case k == 5 && depth < 4:
		for range r.IntN(4) {
			value(r, v.SetEmptySlice().AppendEmpty(), depth+1)
		}
	case k == 6 && depth < 4:
		fill(r, v.SetEmptyMap(), depth+1)
	}
}

func TestAttributesComeBackAsTheyWere(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		m, got := pcommon.NewMap(), pcommon.NewMap()
		fill(r, m, 0)
		packed, ok := packedKeys.pack(nil, m)
		require.True(t, ok)
		packedKeys.unpack(string(packed), got, m.Len(), 0)
		require.Equal(t, wire(t, m), wire(t, got), "seed %d", seed)
	}
}

// A key twice is against the specification, but it does arrive; so do hundreds of attributes.
func TestHoldsAsTheyAreWhatCannotBePacked(t *testing.T) {
	many := pcommon.NewMap()
	for i := range maxPacked + 1 {
		many.PutInt(fmt.Sprint(i), 1)
	}
	for name, m := range map[string]pcommon.Map{
		"a common key twice": twice(t, "a"), "another key twice": twice(t, "tenant"), "many": many,
	} {
		_, ok := packedKeys.pack(nil, m)
		assert.False(t, ok, name)
		outer := pcommon.NewMap()
		m.CopyTo(outer.PutEmptyMap("inner"))
		_, ok = packedKeys.pack(nil, outer)
		assert.False(t, ok, "%s, within another", name)

		td := ptrace.NewTraces()
		span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		m.CopyTo(span.Attributes())
		span.SetParentSpanID(pcommon.SpanID{1})
		b := New(testConfig)
		EachSpan(td, func(span ptrace.Span, o *Origin) { require.Empty(t, b.Add(at(0), span, o, 0, nil)) })
		got := Batch(b.cfg.Keys, b.Drain(math.MaxInt, nil)).ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes()
		assert.Equal(t, wire(t, m), wire(t, got), name)
	}
}

// twice is a map with a key twice, which only the wire can give.
func twice(t *testing.T, key string) pcommon.Map {
	t.Helper()
	td := ptrace.NewTraces()
	a := td.ResourceSpans().AppendEmpty().Resource().Attributes()
	a.PutStr(key, "1")
	a.PutStr(key[:len(key)-1]+"~", "2") // the same length
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	for i := range b {
		if b[i] == '~' {
			b[i] = key[len(key)-1]
		}
	}
	td, err = (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(b)
	require.NoError(t, err)
	require.Equal(t, 2, td.ResourceSpans().At(0).Resource().Attributes().Len())
	return td.ResourceSpans().At(0).Resource().Attributes()
}

func BenchmarkPack(b *testing.B) {
	m := pcommon.NewMap()
	var common []string
	for i := range 30 {
		k := fmt.Sprint("gen_ai.some.attribute.", i)
		if i%10 != 0 {
			common = append(common, k)
		}
		switch i % 3 {
		case 0:
			m.PutInt(k, int64(i*1000))
		default:
			m.PutStr(k, "a value of some length")
		}
	}
	keys := NewKeys(common)
	packed, _ := keys.pack(nil, m)
	b.Run("pack", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf, _ = keys.pack(buf[:0], m)
		}
	})
	b.Run("unpack", func(b *testing.B) {
		b.ReportAllocs()
		s := string(packed)
		for b.Loop() {
			keys.unpack(s, pcommon.NewMap(), m.Len(), roomForDecision)
		}
	})
}
