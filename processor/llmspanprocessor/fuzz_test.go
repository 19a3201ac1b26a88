package llmspanprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/split"
	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
)

// FuzzTraces sends whatever decodes as OTLP through a processor: it takes it without a panic, gives back every span once, with its ids,
// its times and its place, adds nothing but stage spans in a scope of its own, and what it wrote reads back.
func FuzzTraces(f *testing.F) {
	var m ptrace.ProtoMarshaler
	for _, name := range recordings.Names() {
		batches, err := recordings.Traces(name)
		require.NoError(f, err)
		if b, err := m.MarshalTraces(batches[0]); err == nil && len(b) < 1<<11 {
			f.Add(b)
		}
	}
	factory, sink := NewFactory(), new(consumertest.TracesSink)
	p, err := factory.CreateTraces(f.Context(), processortest.NewNopSettings(factory.Type()), createDefaultConfig(), sink)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, b []byte) {
		var u ptrace.ProtoUnmarshaler
		td, err := u.UnmarshalTraces(b)
		if err != nil {
			return
		}
		want := places(td)
		in := td.SpanCount()
		sink.Reset()
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
		require.Len(t, sink.AllTraces(), 1)
		out := sink.AllTraces()[0]
		got := places(out)
		require.Equal(t, want, got)
		stages := 0
		for _, rs := range out.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				if ss.Scope().Name() == split.ScopeName {
					stages += ss.Spans().Len()
				}
			}
		}
		assert.LessOrEqual(t, out.SpanCount(), in+stages)
		assert.GreaterOrEqual(t, out.SpanCount(), in)
		b, err = m.MarshalTraces(out)
		require.NoError(t, err)
		again, err := u.UnmarshalTraces(b)
		require.NoError(t, err)
		assert.Equal(t, out.SpanCount(), again.SpanCount())
	})
}

// place is what of a span never changes.
type place struct {
	resource, scope, index int
	trace                  pcommon.TraceID
	span, parent           pcommon.SpanID
	start, end             pcommon.Timestamp
	kind                   ptrace.SpanKind
	status                 ptrace.StatusCode
	events, links          int
}

// places are the spans of a batch, without the stage spans that this package makes.
func places(td ptrace.Traces) (out []place) {
	for i, rs := range td.ResourceSpans().All() {
		for j, ss := range rs.ScopeSpans().All() {
			if ss.Scope().Name() == split.ScopeName {
				continue
			}
			for k, s := range ss.Spans().All() {
				out = append(out, place{
					i, j, k, s.TraceID(), s.SpanID(), s.ParentSpanID(), s.StartTimestamp(), s.EndTimestamp(),
					s.Kind(), s.Status().Code(), s.Events().Len(), s.Links().Len(),
				})
			}
		}
	}
	return out
}
