package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// BenchmarkSecond is one simulated second at 1,000 calls a second, spans encoded as they are sent.
func BenchmarkSecond(b *testing.B) {
	cfg := DefaultConfig()
	cfg.Rate, cfg.Engines[0].Weight = 1000, 1000
	cfg.Engines[0].PrefillRate, cfg.Engines[0].MaxNumSeqs = 1e7, 1024
	cfg.Engines[0].StepBase, cfg.Engines[0].StepPerSequence = 2*time.Millisecond, time.Microsecond
	w, err := New(cfg, start)
	require.NoError(b, err)
	w.Advance(5 * time.Second)
	w.Drain()
	b.ReportAllocs()
	spans := 0
	for b.Loop() {
		w.Advance(w.Now() + time.Second)
		for _, e := range w.Drain().Exports {
			spans += e.Traces.SpanCount()
			if _, err := ptraceotlp.NewExportRequestFromTraces(e.Traces).MarshalProto(); err != nil {
				b.Fatal(err)
			}
		}
	}
	require.Less(b, w.InFlight(), 1000, "the engines must keep up")
	b.ReportMetric(float64(spans)/float64(b.N), "spans/s")
}
