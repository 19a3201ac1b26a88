package llmspanconnector

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector/internal/metadatatest"
	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
)

// counter adds up the points of a counter in one export, and says when its first one started.
func counter(md pmetric.Metrics, name string) (total float64, start pcommon.Timestamp) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != name {
					continue
				}
				for _, dp := range m.Sum().DataPoints().All() {
					total += dp.DoubleValue()
					if start == 0 || dp.StartTimestamp() < start {
						start = dp.StartTimestamp()
					}
				}
			}
		}
	}
	return total, start
}

func last(sink *consumertest.MetricsSink) pmetric.Metrics {
	if all := sink.AllMetrics(); len(all) > 0 {
		return all[len(all)-1]
	}
	return pmetric.NewMetrics()
}

// An export that is refused loses nothing: the next one carries it, from the same start.
func TestARefusedExportIsMadeUpForByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		h := newMetrics(t, defaults(), g)
		g.refuse(errFull)
		begin := pcommon.NewTimestampFromTime(time.Now())
		require.NoError(t, h.ConsumeTraces(t.Context(), engineSpan("vllm", 1)), "the sender is not refused for it")
		time.Sleep(25 * time.Second)
		synctest.Wait()
		assert.Empty(t, g.metrics.AllMetrics())
		g.refuse(nil)
		require.NoError(t, h.ConsumeTraces(t.Context(), engineSpan("vllm", 2)))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, g.metrics.AllMetrics(), 1)
		n, start := counter(last(&g.metrics), "llm.requests")
		assert.InDelta(t, 2, n, 0)
		assert.Equal(t, begin, start)
		assert.Equal(t, []string{"metrics were refused; they are offered again at the next interval", "metrics are accepted again"}, h.messages(), "one entry a change of state")
		require.NoError(t, h.Shutdown(context.Background()))
		assert.Len(t, g.metrics.AllMetrics(), 2, "and a last export at the end")
	})
}

// A series that is not observed ends; when it comes back it starts anew, so that a rate sees a reset and no step.
func TestAnIdleSeriesEndsAndStartsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		cfg := defaults()
		cfg.Metrics.Expiry = time.Minute
		h := newMetrics(t, cfg, sink)
		require.NoError(t, h.ConsumeTraces(t.Context(), engineSpan("vllm", 1)))
		time.Sleep(11 * time.Second)
		synctest.Wait()
		series := h.value(t, "series")
		assert.Positive(t, series)
		_, first := counter(last(sink), "llm.requests")

		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Zero(t, h.value(t, "series"))
		metadatatest.AssertEqualConnectorLlmspanSeriesExpired(t, h.tel, point(series), metricdatatest.IgnoreTimestamp())
		exports := len(sink.AllMetrics())
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Len(t, sink.AllMetrics(), exports, "nothing is sent when there is nothing")

		require.NoError(t, h.ConsumeTraces(t.Context(), engineSpan("vllm", 2)))
		require.NoError(t, h.Shutdown(context.Background()))
		n, start := counter(last(sink), "llm.requests")
		assert.InDelta(t, 1, n, 0, "the old value is gone with its start")
		assert.Greater(t, start, first)
	})
}

// Beyond max_series what is observed goes to one overflow series a metric: totals stay right, the source is lost and that is counted.
func TestSeriesBeyondTheLimitOverflow(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	cfg := defaults()
	cfg.Metrics.MaxSeries = 12
	h := newMetrics(t, cfg, sink)
	const services = 9
	for n := range uint32(services) {
		require.NoError(t, h.ConsumeTraces(t.Context(), engineSpan("vllm-"+string(rune('a'+n)), n)))
	}
	require.NoError(t, h.Shutdown(context.Background()))
	n, _ := counter(last(sink), "llm.requests")
	assert.InDelta(t, services, n, 0)
	overflow, resources := 0, map[string]bool{}
	for _, rm := range last(sink).ResourceMetrics().All() {
		service, ok := rm.Resource().Attributes().Get("service.name")
		if ok {
			resources[service.Str()] = true
			continue
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				overflow++
				if m.Type() == pmetric.MetricTypeSum {
					v, ok := m.Sum().DataPoints().At(0).Attributes().Get("otel.metric.overflow")
					assert.True(t, ok && v.Bool(), m.Name())
				}
			}
		}
	}
	assert.Positive(t, overflow)
	assert.LessOrEqual(t, len(resources), 2)
	assert.Positive(t, h.value(t, "series_overflowed"))
	assert.LessOrEqual(t, h.value(t, "series"), int64(12+overflow))
}

// Beyond the limit of remembered spans the oldest trace is settled early and counted, and no request is lost with it.
func TestHeldSpansAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		cfg := defaults()
		cfg.MaxSpans = 3
		h := newMetrics(t, cfg, sink)
		for n := range uint32(10) {
			require.NoError(t, h.ConsumeTraces(t.Context(), clientSpan("app", n)))
			assert.LessOrEqual(t, h.value(t, "remembered"), int64(3))
			h.assertAccounted(t)
		}
		assert.Equal(t, int64(3), h.value(t, "held"))
		metadatatest.AssertEqualConnectorLlmspanSettledEarly(t, h.tel, point(7), metricdatatest.IgnoreTimestamp())
		require.NoError(t, h.Shutdown(context.Background()))
		n, _ := counter(last(sink), "llm.requests")
		assert.InDelta(t, 10, n, 0)
		assert.Equal(t, int64(10), h.value(t, "requests"))
	})
}

// In = settled + unresolved + duplicates + held after every batch of every recording, with every third batch sent twice; and what the
// connector says of itself is what it exports.
func TestWhatCameInIsAccountedForOnEveryRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink, g := new(consumertest.MetricsSink), &gate{}
		cfg := defaults()
		cfg.Metrics.Expiry = 0
		metrics, records := newMetrics(t, cfg, sink), newRecords(t, cfg, g)
		both := []harness{metrics, records}
		seen, held := 0, int64(0)
		for i, name := range recordings.Names() {
			batches, err := recordings.Traces(name)
			require.NoError(t, err)
			for j, td := range batches {
				for range 1 + (i+j)%3/2 {
					for _, h := range both {
						require.NoError(t, h.ConsumeTraces(t.Context(), td))
						h.assertAccounted(t)
					}
				}
				seen++
				held = max(held, metrics.value(t, "held"))
				time.Sleep(300 * time.Millisecond) // the bubble's clock: some traces are complete, some wait
				synctest.Wait()                    // for what was due in that time
			}
		}
		require.Greater(t, seen, 300)
		assert.Positive(t, held)
		for _, h := range both {
			require.NoError(t, h.Shutdown(context.Background()))
		}
		for _, h := range both {
			h.assertAccounted(t)
			assert.Positive(t, h.value(t, "duplicates"))
			assert.Positive(t, h.value(t, "unresolved"))
			assert.Zero(t, h.value(t, "settled_early"))
		}
		assert.Equal(t, metrics.value(t, "requests"), records.value(t, "requests"), "both outputs count alike")
		n, _ := counter(last(sink), "llm.requests")
		assert.InDelta(t, metrics.value(t, "requests"), n, 0)
		assert.Equal(t, records.value(t, "records"), int64(g.records.LogRecordCount()))
		assert.GreaterOrEqual(t, records.value(t, "records"), records.value(t, "requests"), "a late part has a record of its own")
	})
}

// Batches that come at the same time are each counted once, and exports in between see whole requests.
func TestConcurrentBatches(t *testing.T) {
	sink, g := new(consumertest.MetricsSink), &gate{}
	cfg := defaults()
	cfg.Metrics.Interval = 100 * time.Millisecond
	metrics, records := newMetrics(t, cfg, sink), newRecords(t, cfg, g)
	const workers, each = 8, 100
	var wg sync.WaitGroup
	for w := range uint32(workers) {
		wg.Go(func() {
			for i := range uint32(each) {
				n := w*each + i
				for _, td := range []ptrace.Traces{engineSpan("vllm", 2*n), clientSpan("app", 2*n+1), engineSpan("vllm", 2*n)} {
					assert.NoError(t, metrics.ConsumeTraces(context.Background(), td))
					assert.NoError(t, records.ConsumeTraces(context.Background(), td))
				}
			}
		})
	}
	wg.Wait()
	for _, h := range []harness{metrics, records} {
		require.NoError(t, h.Shutdown(context.Background()))
		h.assertAccounted(t)
		assert.Equal(t, int64(workers*each), h.value(t, "duplicates"))
	}
	n, _ := counter(last(sink), "llm.requests")
	assert.InDelta(t, 2*workers*each, n, 0)
	tokens, _ := counter(last(sink), "llm.output_tokens")
	assert.InDelta(t, 2*workers*each*5, tokens, 0)
	assert.Len(t, g.bySpan(), 2*workers*each)
	assert.Equal(t, 2*workers*each, g.records.LogRecordCount())
}

// The batch stays the sender's: it may be shared with other pipelines.
func TestTheBatchIsNotChanged(t *testing.T) {
	f := NewFactory()
	set := connectortest.NewNopSettings(f.Type())
	toMetrics, err := f.CreateTracesToMetrics(t.Context(), set, defaults(), consumertest.NewNop())
	require.NoError(t, err)
	toLogs, err := f.CreateTracesToLogs(t.Context(), set, defaults(), consumertest.NewNop())
	require.NoError(t, err)
	td := input(t, "gateway-and-engine")
	td.MarkReadOnly()
	for _, c := range []connector.Traces{toMetrics, toLogs} {
		assert.False(t, c.Capabilities().MutatesData)
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
		assert.NotPanics(t, func() { assert.NoError(t, c.ConsumeTraces(t.Context(), td)) })
		require.NoError(t, c.Shutdown(t.Context()))
		require.NoError(t, c.Shutdown(t.Context()), "twice")
	}
}
