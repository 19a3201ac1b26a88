package series

import (
	"testing"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/measure"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

func BenchmarkObserve(b *testing.B) {
	for _, exponential := range []bool{false, true} {
		name := map[bool]string{false: "explicit", true: "exponential"}[exponential]
		b.Run(name, func(b *testing.B) {
			s := New(Config{MaxSeries: 1000, Exponential: exponential})
			s.SetNow(at(0))
			r, labels := of("svc"), model("m")
			b.ReportAllocs()
			v := 0.0
			for b.Loop() {
				v += .001
				if v > 10 {
					v = 0
				}
				s.Observe(names.QueueDuration, r, labels, v, 1)
			}
		})
	}
}

// One operation is all that an engine's span and its request are worth.
func BenchmarkMeasureARequest(b *testing.B) {
	s := New(Config{MaxSeries: 1000})
	s.SetNow(at(0))
	m := measure.New(s)
	r := of("svc")
	r.TTFT, r.E2E, r.Queue, r.Prefill, r.Decode, r.Admission = request.Some(.2), request.Some(.9), request.Some(.01), request.Some(.1), request.Some(.7), request.Some(.09)
	r.OutputTokens = request.Some[int64](11)
	b.ReportAllocs()
	for b.Loop() {
		m.Engine(r)
	}
}

func BenchmarkExport(b *testing.B) {
	s := New(Config{MaxSeries: 1000})
	s.SetNow(at(0))
	for i := range 500 {
		s.Observe(names.QueueDuration, of("svc"), model(string(rune('a'+i%26))+string(rune('a'+i/26))), .1, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Export(at(1))
	}
}
