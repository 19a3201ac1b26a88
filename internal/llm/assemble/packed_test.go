package assemble

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
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

func drawSpan(r *rand.Rand, s ptrace.Span) {
	text := func() string { return [...]string{"", "a", "ot=th:8", "llm_request"}[r.IntN(4)] }
	s.SetSpanID(pcommon.SpanID{byte(r.IntN(256)), 1})
	s.SetParentSpanID(pcommon.SpanID{byte(r.IntN(3))})
	s.SetStartTimestamp(pcommon.Timestamp(r.Uint64()))
	s.SetEndTimestamp(pcommon.Timestamp(r.Uint64()))
	s.SetFlags(r.Uint32())
	s.SetKind(ptrace.SpanKind(r.IntN(9) - 2))
	s.SetName(text())
	s.TraceState().FromRaw(text())
	s.Status().SetCode(ptrace.StatusCode(r.IntN(5) - 1))
	s.Status().SetMessage(text())
	s.SetDroppedAttributesCount(r.Uint32())
	s.SetDroppedEventsCount(r.Uint32())
	s.SetDroppedLinksCount(r.Uint32())
	fill(r, s.Attributes(), 0)
	for range r.IntN(3) {
		e := s.Events().AppendEmpty()
		e.SetName(text())
		e.SetTimestamp(pcommon.Timestamp(r.Uint64()))
		e.SetDroppedAttributesCount(r.Uint32())
		fill(r, e.Attributes(), 2)
	}
	for range r.IntN(3) {
		l := s.Links().AppendEmpty()
		l.SetTraceID(pcommon.TraceID{byte(r.IntN(256)), 1})
		l.SetSpanID(pcommon.SpanID{byte(r.IntN(256)), 1})
		l.SetFlags(r.Uint32())
		l.TraceState().FromRaw(text())
		l.SetDroppedAttributesCount(r.Uint32())
		fill(r, l.Attributes(), 2)
	}
}

func TestSpansComeBackAsTheyWere(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		td := ptrace.NewTraces()
		span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		drawSpan(r, span)
		span.SetTraceID(pcommon.TraceID{1})
		want, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		require.NoError(t, err)
		b := New(Config{MaxBytes: 1 << 30, MaxTraceBytes: 1 << 30, MaxTraceSpans: 10, Keys: packedKeys})
		EachSpan(td, func(span ptrace.Span, o *Origin) { require.Empty(t, b.Add(at(0), span, o, 0, nil)) })
		require.NotEmpty(t, b.traces[pcommon.TraceID{1}].held[0].packed, "packed")
		got, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(Batch(packedKeys, b.Drain(1, nil)))
		require.NoError(t, err)
		require.Equal(t, want, got, "seed %d", seed)
	}
}

// What pdata learns to hold, pack has to learn too: until then it would be lost.
func TestAllOfASpanIsPacked(t *testing.T) {
	for _, c := range []struct {
		of   any
		want string
	}{
		{ptrace.Span{}, "Attributes DroppedAttributesCount DroppedEventsCount DroppedLinksCount EndTimestamp Events Flags Kind Links Name ParentSpanID SpanID StartTimestamp Status TraceID TraceState"},
		{ptrace.SpanEvent{}, "Attributes DroppedAttributesCount Name Timestamp"},
		{ptrace.SpanLink{}, "Attributes DroppedAttributesCount Flags SpanID TraceID TraceState"},
		{ptrace.Status{}, "Code Message"},
	} {
		var got []string
		for m := range reflect.TypeOf(c.of).Methods() {
			if m.Type.NumIn() == 1 && m.Type.NumOut() == 1 {
				got = append(got, m.Name)
			}
		}
		assert.Equal(t, c.want, strings.Join(got, " "), "%T", c.of)
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
		_, ok := packedKeys.packMap(nil, m)
		assert.False(t, ok, name)
		outer := pcommon.NewMap()
		m.CopyTo(outer.PutEmptyMap("inner"))
		_, ok = packedKeys.packMap(nil, outer)
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
	span := ptrace.NewSpan()
	m := span.Attributes()
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
	packed, _ := keys.pack(nil, span)
	b.Run("pack", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf, _ = keys.pack(buf[:0], span)
		}
	})
	b.Run("unpack", func(b *testing.B) {
		b.ReportAllocs()
		s := string(packed)
		for b.Loop() {
			keys.unpack(s, ptrace.NewSpan(), roomForDecision)
		}
	})
}
