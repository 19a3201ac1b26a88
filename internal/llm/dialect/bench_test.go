package dialect

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

func benchSpan(b *testing.B, kind ptrace.SpanKind, name string, a attrs) ptrace.Span {
	b.Helper()
	s := ptrace.NewSpan()
	s.SetName(name)
	s.SetKind(kind)
	s.SetStartTimestamp(1_000 * second)
	s.SetEndTimestamp(1_001 * second)
	if err := s.Attributes().FromRaw(a); err != nil {
		b.Fatal(err)
	}
	return s
}

// plain is a span of 25 attributes that no dialect knows: most spans are.
func plain() attrs {
	a := attrs{"http.request.method": "GET", "server.address": "db", "server.port": 5432}
	for i := range 22 {
		a[fmt.Sprintf("app.some.attribute.%d", i)] = "value"
	}
	return a
}

func BenchmarkRead(b *testing.B) {
	res := &request.Source{Service: "svc"}
	for _, c := range []struct {
		name  string
		span  ptrace.Span
		claim bool
	}{
		{"vllm", benchSpan(b, ptrace.SpanKindServer, "llm_request", v1), true},
		{"semconv", benchSpan(b, ptrace.SpanKindClient, "chat tiny", chat), true},
		{"plain of 25 attributes", benchSpan(b, ptrace.SpanKindClient, "SELECT", plain()), false},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := Read(c.span, res); ok != c.claim {
					b.Fatal(ok)
				}
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	span := benchSpan(b, ptrace.SpanKindServer, "llm_request", v1)
	r, _ := Read(span, &request.Source{Service: "svc"})
	b.ReportAllocs()
	for b.Loop() {
		s := ptrace.NewSpan()
		span.CopyTo(s)
		Write(&r, s)
	}
}
