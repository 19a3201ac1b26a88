package split

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// engines are n vLLM spans, each in a trace of its own.
func engines(n int, layers bool) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "svc")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for i := range n {
		add := func(w row) {
			s := spans.AppendEmpty()
			s.SetTraceID(pcommon.TraceID{1, byte(i), byte(i >> 8)})
			s.SetSpanID(id8(w.id))
			s.SetParentSpanID(id8(w.parent))
			s.SetName(w.name)
			s.SetKind(w.kind)
			s.SetStartTimestamp(pcommon.Timestamp(zero + w.start*1e6))
			s.SetEndTimestamp(pcommon.Timestamp(zero + w.end*1e6))
			_ = s.Attributes().FromRaw(w.a)
		}
		add(engine("e", "g", 20, 120, fmt.Sprintf("chatcmpl-%d", i)))
		if layers {
			add(fastAPI("g", "", 0, 150))
		}
	}
	return td
}

func BenchmarkTraces(b *testing.B) {
	for _, c := range []struct {
		name string
		td   ptrace.Traces
	}{{"100 engine spans", engines(100, false)}, {"100 engine spans with their gateways", engines(100, true)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				td := ptrace.NewTraces()
				c.td.CopyTo(td)
				b.StartTimer()
				Traces(td, everything)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.td.SpanCount()), "ns/span")
		})
	}
}
