package llmspanconnector

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
)

// FuzzTraces sends whatever decodes as OTLP, twice, through both outputs: no panic, every span accounted for, the second time all of it
// known, one record for each request, and no figure that is not a number.
func FuzzTraces(f *testing.F) {
	var m ptrace.ProtoMarshaler
	for _, name := range recordings.Names() {
		batches, err := recordings.Traces(name)
		require.NoError(f, err)
		if b, err := m.MarshalTraces(batches[0]); err == nil && len(b) < 1<<11 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var u ptrace.ProtoUnmarshaler
		td, err := u.UnmarshalTraces(b)
		if err != nil || td.SpanCount() == 0 {
			return
		}
		sink, g := new(consumertest.MetricsSink), &gate{}
		metrics, records := newMetrics(t, defaults(), sink), newRecords(t, defaults(), g)
		for _, h := range []harness{metrics, records} {
			require.NoError(t, h.ConsumeTraces(t.Context(), td))
			first := h.value(t, "request_spans")
			known := h.value(t, "duplicates") // a batch can hold a span twice
			require.NoError(t, h.ConsumeTraces(t.Context(), td))
			h.assertAccounted(t)
			assert.Equal(t, first+known, h.value(t, "duplicates"), "the second time every span is known")
			require.NoError(t, h.Shutdown(context.Background()))
			h.assertAccounted(t)
			assert.Zero(t, h.value(t, "held"))
		}
		assert.Equal(t, metrics.value(t, "requests"), records.value(t, "requests"))
		assert.Equal(t, records.value(t, "records"), int64(g.records.LogRecordCount()))
		for _, md := range sink.AllMetrics() {
			assertFinite(t, md)
		}
	})
}

func assertFinite(t *testing.T, md pmetric.Metrics) {
	t.Helper()
	finite := func(name string, v float64) {
		assert.False(t, math.IsNaN(v) || math.IsInf(v, 0) || v < 0, "%s = %v", name, v)
	}
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeSum:
					for _, dp := range m.Sum().DataPoints().All() {
						finite(m.Name(), dp.DoubleValue())
					}
				case pmetric.MetricTypeGauge:
					for _, dp := range m.Gauge().DataPoints().All() {
						finite(m.Name(), dp.DoubleValue())
					}
				case pmetric.MetricTypeHistogram:
					for _, dp := range m.Histogram().DataPoints().All() {
						finite(m.Name(), dp.Sum())
					}
				}
			}
		}
	}
}
