package recordings_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/measure"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/record"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/split"
	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
)

type nullSink struct{ n int }

func (s *nullSink) Observe(names.MetricID, *request.Request, []measure.Label, float64, float64) {
	s.n++
}

func (s *nullSink) Charge(names.MetricID, *request.Request, []measure.Label, cost.Amount, float64) {
	s.n++
}

// What the core costs beside what a collector does anyway: the same recorded batches decoded and encoded again, with and without it.
func BenchmarkCoreBesidePassThrough(b *testing.B) {
	for _, name := range []string{"vllm/vllm-0.32.0-api", "gateway/vllm-0.32.0-gw-busy", "sdk/ll98v2-chat"} {
		var wire [][]byte
		spans := 0
		batches, err := recordings.Traces(name)
		require.NoError(b, err)
		for _, td := range batches {
			spans += td.SpanCount()
			w, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
			require.NoError(b, err)
			wire = append(wire, w)
		}
		through := func(b *testing.B, core func(ptrace.Traces)) {
			b.ReportAllocs()
			for b.Loop() {
				for _, w := range wire {
					td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(w)
					if err != nil {
						b.Fatal(err)
					}
					core(td)
					if _, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(spans), "ns/span")
		}
		b.Run(name+"/pass-through", func(b *testing.B) { through(b, func(ptrace.Traces) {}) })
		b.Run(name+"/split", func(b *testing.B) {
			through(b, func(td ptrace.Traces) { split.Traces(td, split.Options{StageSpans: true}) })
		})
		b.Run(name+"/split join measure record", func(b *testing.B) {
			m := measure.New(&nullSink{})
			through(b, func(td ptrace.Traces) {
				split.Traces(td, split.Options{StageSpans: true})
				j := join.New(join.Config{Window: time.Second, MaxSpans: 1 << 20})
				batch, _ := readSpans(td)
				w := record.NewWriter(plog.NewLogs(), time.Time{})
				take := func(res join.Result) {
					for _, r := range res.Engines {
						m.Engine(r)
					}
					for i := range res.Requests {
						m.Request(&res.Requests[i])
						w.Write(&res.Requests[i])
					}
				}
				take(j.Add(time.Time{}, batch, false))
				j.Drain(take)
			})
		})
	}
}
