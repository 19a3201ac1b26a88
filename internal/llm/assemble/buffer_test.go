package assemble

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/sampling"
)

var testConfig = Config{
	DecisionDelay: 2 * time.Second, IdleTimeout: time.Minute, TraceTimeout: 30 * time.Minute,
	MaxBytes: 1 << 20, MaxTraceBytes: 1 << 20, MaxTraceSpans: 1000,
}

func at(seconds float64) time.Time {
	return time.Unix(1_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func nothing(*Trace) bool { return false }

// add puts a span of a trace into the buffer; parent 0 makes it the root.
func add(b *Buffer, now time.Time, trace, span, parent byte, text string) []*Trace {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "s")
	s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetTraceID(pcommon.TraceID{trace})
	s.SetSpanID(pcommon.SpanID{span})
	if parent != 0 {
		s.SetParentSpanID(pcommon.SpanID{parent})
	}
	s.SetName(text)
	var out []*Trace
	EachSpan(td, func(span ptrace.Span, o *Origin) { out = b.Add(now, span, o, 0, out) })
	return out
}

func TestATraceIsReleased(t *testing.T) {
	t.Run("a delay after its root, however long it has waited before", func(t *testing.T) {
		b := New(testConfig)
		add(b, at(0), 1, 2, 1, "engine")
		for s := 50.0; s < 600; s += 50 { // a request that decodes for ten minutes, and reports now and then
			add(b, at(s), 1, byte(s/50)+10, 1, "chunk")
			require.Empty(t, b.Due(at(s+9), math.MaxInt, nil, nothing))
		}
		add(b, at(600), 1, 1, 0, "root")
		assert.Empty(t, b.Due(at(601.9), math.MaxInt, nil, nothing))
		out := b.Due(at(602), math.MaxInt, nil, nothing)
		require.Len(t, out, 1)
		assert.Equal(t, ReasonRoot, out[0].Reason)
		assert.True(t, out[0].Reason.Complete())
		assert.Equal(t, 13, out[0].Len())
		assert.Zero(t, b.Bytes()+b.Spans()+b.Traces())
	})
	t.Run("later when something is missing, and at once when it has come", func(t *testing.T) {
		cfg := testConfig
		cfg.AnswerDelay = 10 * time.Second
		lacks := func(t *Trace) bool { return t.Len() < 2 }
		b := New(cfg)
		add(b, at(0), 1, 1, 0, "root")
		add(b, at(1), 2, 1, 0, "root")
		add(b, at(1), 3, 1, 0, "root")
		add(b, at(1), 3, 2, 1, "engine")
		out := b.Due(at(3), math.MaxInt, nil, lacks)
		require.Len(t, out, 1, "the third is whole")
		add(b, at(5), 2, 2, 1, "engine")
		out = b.Due(at(5), math.MaxInt, nil, lacks)
		require.Len(t, out, 1)
		assert.Equal(t, pcommon.TraceID{2}, out[0].ID)
		assert.Empty(t, b.Due(at(9.9), math.MaxInt, nil, lacks))
		out = b.Due(at(10), math.MaxInt, nil, lacks)
		require.Len(t, out, 1)
		assert.Zero(t, b.Traces())
	})
	t.Run("with no more others than the caller can take", func(t *testing.T) {
		b := New(testConfig)
		for i := range byte(10) {
			add(b, at(0), i, 1, 0, "root")
		}
		var n []int
		for b.Traces() > 0 {
			n = append(n, len(b.Due(at(3), 4, nil, nothing)))
		}
		assert.Equal(t, []int{4, 4, 2}, n)
		add(b, at(0), 1, 1, 0, "root")
		add(b, at(0), 2, 1, 0, "root")
		assert.Len(t, b.Drain(1, nil), 1)
		assert.Len(t, b.Drain(1, nil), 1)
	})
	t.Run("when nothing comes", func(t *testing.T) {
		b := New(testConfig)
		add(b, at(0), 1, 2, 1, "engine")
		add(b, at(59), 1, 3, 1, "engine")
		assert.Empty(t, b.Due(at(118.9), math.MaxInt, nil, nothing))
		out := b.Due(at(119), math.MaxInt, nil, nothing)
		require.Len(t, out, 1)
		assert.Equal(t, ReasonIdle, out[0].Reason)
	})
	t.Run("when it is too old, whatever still comes", func(t *testing.T) {
		b := New(testConfig)
		for s := 0.0; s < 1800; s += 30 {
			require.Empty(t, add(b, at(s), 1, byte(s/30)+1, 200, "agent"))
			require.Empty(t, b.Due(at(s), math.MaxInt, nil, nothing))
		}
		out := b.Due(at(1800), math.MaxInt, nil, nothing)
		require.Len(t, out, 1)
		assert.Equal(t, ReasonAge, out[0].Reason)
		assert.False(t, out[0].Reason.Complete())
	})
	t.Run("the oldest, to make room", func(t *testing.T) {
		cfg := testConfig
		cfg.MaxBytes = 2500
		b := New(cfg)
		text := string(make([]byte, 1000))
		require.Empty(t, add(b, at(0), 1, 1, 9, text))
		require.Empty(t, add(b, at(1), 2, 1, 9, text))
		out := add(b, at(2), 3, 1, 9, text)
		require.Len(t, out, 1)
		assert.Equal(t, pcommon.TraceID{1}, out[0].ID)
		assert.Equal(t, ReasonBudget, out[0].Reason)
		assert.LessOrEqual(t, b.Bytes(), cfg.MaxBytes)
	})
	t.Run("when it is too large, so that it does not starve the rest", func(t *testing.T) {
		cfg := testConfig
		cfg.MaxTraceSpans = 3
		b := New(cfg)
		add(b, at(0), 2, 1, 9, "other")
		var out []*Trace
		for i := byte(1); i <= 4; i++ {
			out = add(b, at(1), 1, i, 9, "endless")
		}
		require.Len(t, out, 1)
		assert.Equal(t, ReasonSize, out[0].Reason)
		assert.Equal(t, 1, b.Traces(), "the other trace waits on")
	})
}

func TestASpanIsHeldOnce(t *testing.T) {
	for name, spans := range map[string]byte{"of a short trace": 10, "of a long trace": 3 * scanned} {
		t.Run(name, func(t *testing.T) {
			b := New(testConfig)
			for range 3 { // a sender that gets no answer sends all of it again
				for i := range spans {
					require.Empty(t, add(b, at(0), 1, i+1, 9, "n"))
				}
			}
			assert.Equal(t, []int{int(spans), 2 * int(spans)}, []int{b.Spans(), b.Duplicates()})
			out := b.Drain(math.MaxInt, nil)
			require.Len(t, out, 1)
			assert.Equal(t, int(spans), out[0].Len())
			assert.Zero(t, b.Bytes())
		})
	}
	t.Run("but Zipkin's two halves of a call share an id", func(t *testing.T) {
		b := New(testConfig)
		td := ptrace.NewTraces()
		spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
		for _, k := range []ptrace.SpanKind{ptrace.SpanKindClient, ptrace.SpanKindServer} {
			s := spans.AppendEmpty()
			s.SetSpanID(pcommon.SpanID{1})
			s.SetKind(k)
		}
		EachSpan(td, func(s ptrace.Span, o *Origin) { b.Add(at(0), s, o, 0, nil) })
		assert.Equal(t, []int{2, 0}, []int{b.Spans(), b.Duplicates()})
	})
}

// Whatever comes and goes, what is held is what was added less what was released and what was there already.
func TestNothingIsLostOrMade(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	cfg := testConfig
	cfg.MaxBytes, cfg.MaxTraceBytes, cfg.MaxTraceSpans = 20_000, 3_000, 20
	b := New(cfg)
	in, out := 0, 0
	count := func(ts []*Trace) {
		for _, tr := range ts {
			out += tr.Len()
		}
	}
	now := 0.0
	for i := range 20_000 {
		now += r.Float64()
		count(add(b, at(now), byte(r.IntN(60)), byte(r.IntN(255)+1), byte(r.IntN(4)), string(make([]byte, r.IntN(500)))))
		in++
		if i%7 == 0 {
			count(b.Due(at(now), math.MaxInt, nil, nothing))
		}
		require.Equal(t, in, out+b.Spans()+b.Duplicates())
		require.LessOrEqual(t, b.Bytes(), cfg.MaxBytes)
	}
	count(b.Drain(math.MaxInt, nil))
	assert.Equal(t, in, out+b.Duplicates())
	assert.Zero(t, b.Bytes()+b.Spans()+b.Traces())
}

func TestBatchPutsEachResourceAndScopeOnce(t *testing.T) {
	td := ptrace.NewTraces()
	for r := range 2 {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutInt("r", int64(r))
		rs.SetSchemaUrl("schema")
		for s := range 2 {
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName(string(rune('a' + s)))
			for i := range 3 {
				span := ss.Spans().AppendEmpty()
				span.SetTraceID(pcommon.TraceID{byte(i)})
				span.SetSpanID(pcommon.SpanID{byte(r), byte(s), 1})
				span.SetName("n")
			}
		}
	}
	want := ptrace.NewTraces()
	td.CopyTo(want)
	b := New(testConfig)
	EachSpan(td, func(span ptrace.Span, o *Origin) { require.Empty(t, b.Add(at(0), span, o, 0, nil)) })
	got := Batch(b.cfg.Keys, b.Drain(math.MaxInt, nil))
	require.Equal(t, 2, got.ResourceSpans().Len())
	for i := range 2 {
		rs := got.ResourceSpans().At(i)
		assert.Equal(t, "schema", rs.SchemaUrl())
		assert.Equal(t, 2, rs.ScopeSpans().Len())
	}
	assert.Equal(t, want.SpanCount(), got.SpanCount())
}

func TestDecisionsAreRememberedWithinTheirRoom(t *testing.T) {
	d := NewDecisions(2, 3)
	for i := range byte(10) {
		d.Put(pcommon.TraceID{i}, sampling.Decision{Keep: i%2 == 0, Rule: "r"})
	}
	assert.Equal(t, 5, d.Len())
	_, ok := d.Get(pcommon.TraceID{0})
	assert.False(t, ok, "forgotten")
	s, ok := d.Get(pcommon.TraceID{9})
	assert.True(t, ok)
	assert.False(t, s.Keep)
	d.Put(pcommon.TraceID{9}, sampling.Decision{Keep: true, Rule: "error"})
	s, _ = d.Get(pcommon.TraceID{9})
	assert.True(t, s.Keep, "an upgrade replaces the decision")
}

func BenchmarkAdd(b *testing.B) {
	buf := New(testConfig)
	td := ptrace.NewTraces()
	s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	for i := range 25 {
		s.Attributes().PutStr("attribute.key."+string(rune('a'+i)), "a value of some length")
	}
	s.SetSpanID(pcommon.SpanID{1})
	s.SetParentSpanID(pcommon.SpanID{2})
	b.ReportAllocs()
	var i uint32
	for b.Loop() {
		c := ptrace.NewTraces()
		td.CopyTo(c)
		i++
		c.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetTraceID(pcommon.TraceID{byte(i), byte(i >> 8), byte(i >> 16)})
		EachSpan(c, func(span ptrace.Span, o *Origin) { buf.Add(at(0), span, o, 0, nil) })
	}
}
