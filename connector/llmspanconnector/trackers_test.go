package llmspanconnector

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/plogtest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector/internal/metadatatest"
	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
)

// order is the order in which a connector's instances are made, fed and shut down.
type order struct{ recordsFirst, recordsFedFirst, recordsEndFirst bool }

func orders() (out []order) {
	for i := range 8 {
		out = append(out, order{i&1 != 0, i&2 != 0, i&4 != 0})
	}
	return out
}

func (o order) String() string {
	return fmt.Sprintf("records made first %t, fed first %t, ended first %t", o.recordsFirst, o.recordsFedFirst, o.recordsEndFirst)
}

// pair is both instances of one connector, as the service makes them: by one factory and of one configuration.
type pair struct {
	metrics, records connector.Traces
	order            order
	harness          // of both: their telemetry is one
}

func newPair(t *testing.T, cfg *Config, o order, metrics *consumertest.MetricsSink, records *gate) pair {
	t.Helper()
	f := NewFactory()
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, tel.Shutdown(context.Background())) })
	set := metadatatest.NewSettings(tel)
	p := pair{order: o, harness: harness{tel: tel}}
	makers := []func() error{
		func() (err error) {
			p.metrics, err = f.CreateTracesToMetrics(t.Context(), set, cfg, metrics)
			return err
		},
		func() (err error) {
			p.records, err = f.CreateTracesToLogs(t.Context(), set, cfg, records)
			return err
		},
	}
	if o.recordsFirst {
		makers[0], makers[1] = makers[1], makers[0]
	}
	for _, f := range makers {
		require.NoError(t, f())
	}
	for _, c := range p.in(o.recordsFirst) {
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	}
	return p
}

func (p pair) in(recordsFirst bool) []connector.Traces {
	if recordsFirst {
		return []connector.Traces{p.records, p.metrics}
	}
	return []connector.Traces{p.metrics, p.records}
}

// feed gives a batch to both, as the service's fan-out does: also to the second when the first fails.
func (p pair) feed(td ptrace.Traces) (err error) {
	for _, c := range p.in(p.order.recordsFedFirst) {
		if e := c.ConsumeTraces(context.Background(), td); e != nil {
			err = e
		}
	}
	return err
}

func (p pair) shutdown(t *testing.T) {
	t.Helper()
	for _, c := range p.in(p.order.recordsEndFirst) {
		require.NoError(t, c.Shutdown(context.Background()))
	}
}

// one puts all records into one batch.
func one(all []plog.Logs) plog.Logs {
	out := plog.NewLogs()
	for _, ld := range all {
		c := plog.NewLogs()
		ld.CopyTo(c)
		c.ResourceLogs().MoveAndAppendTo(out.ResourceLogs())
	}
	return out
}

// Instances that share a tracker make, of every recording, the metrics and records that instances by themselves make, whatever the order
// in which they are made, fed and shut down; and each span is looked at once.
func TestBothOutputsTogetherAreAsEachByItself(t *testing.T) {
	var batches []ptrace.Traces
	for i, name := range recordings.Names() {
		if i%2 != 0 {
			continue // time
		}
		b, err := recordings.Traces(name)
		require.NoError(t, err)
		batches = append(batches, b...)
	}
	config := func() *Config {
		cfg := defaults()
		cfg.Metrics.Interval, cfg.Metrics.Expiry = 24*time.Hour, 0 // what is settled at the instant of an export may be in it or not
		return cfg
	}
	run := func(t *testing.T, feed func(ptrace.Traces) error) {
		for i, td := range batches {
			for range 1 + i%5/4 {
				require.NoError(t, feed(td))
			}
			time.Sleep(300 * time.Millisecond) // the bubble's clock
			synctest.Wait()
		}
	}
	var wantMetrics pmetric.Metrics
	var wantRecords plog.Logs
	var wantSpans, wantRequests int64
	synctest.Test(t, func(t *testing.T) {
		sink, g := new(consumertest.MetricsSink), &gate{}
		metrics, records := newMetrics(t, config(), sink), newRecords(t, config(), g)
		run(t, func(td ptrace.Traces) error {
			require.NoError(t, metrics.ConsumeTraces(context.Background(), td))
			return records.ConsumeTraces(context.Background(), td)
		})
		require.NoError(t, metrics.Shutdown(context.Background()))
		require.NoError(t, records.Shutdown(context.Background()))
		wantMetrics, wantRecords = last(sink), one(g.records.AllLogs())
		wantSpans, wantRequests = metrics.value(t, "request_spans"), metrics.value(t, "requests")
	})
	require.Positive(t, wantRecords.LogRecordCount())
	for _, o := range orders() {
		t.Run(o.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink, g := new(consumertest.MetricsSink), &gate{}
				p := newPair(t, config(), o, sink, g)
				run(t, p.feed)
				p.assertAccounted(t)
				p.shutdown(t)
				assert.NoError(t, pmetrictest.CompareMetrics(wantMetrics, last(sink), pmetrictest.IgnoreMetricsOrder(),
					pmetrictest.IgnoreTimestamp(), pmetrictest.IgnoreStartTimestamp()))
				assert.NoError(t, plogtest.CompareLogs(wantRecords, one(g.records.AllLogs()), plogtest.IgnoreObservedTimestamp()))
				assert.Equal(t, wantSpans, p.value(t, "request_spans"), "each span once")
				assert.Equal(t, wantRequests, p.value(t, "requests"))
				p.assertAccounted(t)
			})
		})
	}
}

// What waits leaves by both outputs, whichever is shut down first, and once.
func TestWhatWaitsLeavesByBothOutputs(t *testing.T) {
	for _, o := range orders() {
		t.Run(o.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink, g := new(consumertest.MetricsSink), &gate{}
				p := newPair(t, defaults(), o, sink, g)
				require.NoError(t, p.feed(clientSpan("app", 1)))
				require.NoError(t, p.feed(clientSpan("app", 1)), "a retry")
				assert.Equal(t, int64(1), p.value(t, "held"))
				assert.Equal(t, int64(2), p.value(t, "request_spans"))
				p.shutdown(t)
				n, _ := counter(last(sink), "llm.requests")
				assert.InDelta(t, 1, n, 0)
				assert.Equal(t, 1, g.records.LogRecordCount())
				assert.Zero(t, p.value(t, "held"))
				p.assertAccounted(t)
				p.shutdown(t) // safe twice
				assert.Equal(t, 1, g.records.LogRecordCount())
			})
		})
	}
}

// A request that waits is settled for both outputs by whichever instance leads.
func TestTheWindowEndsForBothOutputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink, g := new(consumertest.MetricsSink), &gate{}
		p := newPair(t, defaults(), order{}, sink, g)
		require.NoError(t, p.feed(clientSpan("app", 1)))
		time.Sleep(21 * time.Second)
		synctest.Wait()
		assert.Equal(t, 1, g.records.LogRecordCount())
		n, _ := counter(last(sink), "llm.requests")
		assert.InDelta(t, 1, n, 0)
		p.shutdown(t)
	})
}

// A refused record refuses the batch; its requests are measured once for all that.
func TestARefusedBatchIsMeasuredOnce(t *testing.T) {
	for _, o := range orders() {
		t.Run(o.String(), func(t *testing.T) {
			sink, g := new(consumertest.MetricsSink), &gate{}
			p := newPair(t, defaults(), o, sink, g)
			g.refuse(errFull)
			require.ErrorIs(t, p.feed(engineSpan("vllm", 1)), errFull)
			require.ErrorIs(t, p.feed(engineSpan("vllm", 1)), errFull)
			g.refuse(nil)
			require.NoError(t, p.feed(engineSpan("vllm", 1)))
			p.shutdown(t)
			n, _ := counter(last(sink), "llm.requests")
			assert.InDelta(t, 1, n, 0)
			assert.Equal(t, 1, g.records.LogRecordCount())
		})
	}
}

// A connector that was asked for no records measures all the same.
func TestMetricsWithoutRecords(t *testing.T) {
	for _, o := range orders() {
		t.Run(o.String(), func(t *testing.T) {
			sink, g := new(consumertest.MetricsSink), &gate{}
			cfg := defaults()
			cfg.Records = RecordsNone
			p := newPair(t, cfg, o, sink, g)
			require.NoError(t, p.feed(engineSpan("vllm", 1)))
			p.shutdown(t)
			n, _ := counter(last(sink), "llm.requests")
			assert.InDelta(t, 1, n, 0)
			assert.Zero(t, g.records.LogRecordCount())
			assert.Equal(t, int64(1), p.value(t, "request_spans"))
		})
	}
}

// Batches that come to both at the same time are each counted once, while exports and ends of windows come in between.
func TestConcurrentBatchesToBoth(t *testing.T) {
	sink, g := new(consumertest.MetricsSink), &gate{}
	cfg := defaults()
	cfg.Metrics.Interval, cfg.JoinWindow = 100*time.Millisecond, time.Second
	p := newPair(t, cfg, order{}, sink, g)
	const workers, each = 8, 50
	var wg sync.WaitGroup
	for w := range uint32(workers) {
		wg.Go(func() {
			for i := range uint32(each) {
				n := w*each + i
				for _, td := range []ptrace.Traces{engineSpan("vllm", 2*n), clientSpan("app", 2*n+1), engineSpan("vllm", 2*n)} {
					assert.NoError(t, p.feed(td))
				}
			}
		})
	}
	wg.Wait()
	p.shutdown(t)
	p.assertAccounted(t)
	assert.Equal(t, int64(workers*each), p.value(t, "duplicates"))
	n, _ := counter(last(sink), "llm.requests")
	assert.InDelta(t, 2*workers*each, n, 0)
	assert.Len(t, g.bySpan(), 2*workers*each)
	assert.Equal(t, 2*workers*each, g.records.LogRecordCount())
}

// Connectors of one factory share nothing, and nothing is kept of one that is shut down.
func TestTrackersAreForgotten(t *testing.T) {
	s := &trackers{}
	a, b := defaults(), defaults()
	set := metadatatest.NewSettings(componenttest.NewTelemetry())
	nop := consumertest.NewNop()
	metricsA, err := newMetricsConnector(set, a, nop, s)
	require.NoError(t, err)
	recordsA, err := newRecordsConnector(set, a, nop, s)
	require.NoError(t, err)
	recordsB, err := newRecordsConnector(set, b, nop, s)
	require.NoError(t, err)
	again, err := newRecordsConnector(set, a, nop, s)
	require.NoError(t, err)
	assert.Same(t, metricsA.tracker, recordsA.tracker)
	assert.NotSame(t, recordsA.tracker, recordsB.tracker)
	assert.NotSame(t, recordsA.tracker, again.tracker, "no service makes two instances of one output; each is complete")
	for _, c := range []connector.Traces{recordsA, metricsA, recordsB, again} {
		require.NoError(t, c.Shutdown(context.Background()))
		require.NoError(t, c.Shutdown(context.Background()), "twice")
	}
	assert.Empty(t, s.of)

	third, err := newMetricsConnector(set, a, nop, s)
	require.NoError(t, err)
	assert.NotSame(t, metricsA.tracker, third.tracker)
	require.NoError(t, third.Shutdown(context.Background()))
	assert.Empty(t, s.of)
}

// blocked is a consumer of records that waits until it is let go on.
type blocked struct {
	gate
	entered chan struct{}
	until   chan struct{}
}

func (b *blocked) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	b.entered <- struct{}{}
	<-b.until
	return b.gate.ConsumeLogs(ctx, ld)
}

// While a consumer of records takes its time, what comes is measured, waits for it, and leaves together at the next offer. A sender's
// retry is not acknowledged before the record of its first try has left.
func TestASlowConsumerOfRecordsHoldsUpNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, cfg, sink := NewFactory(), defaults(), new(consumertest.MetricsSink)
		slow := &blocked{entered: make(chan struct{}, 10), until: make(chan struct{})}
		set := metadatatest.NewSettings(componenttest.NewTelemetry())
		metrics, err := f.CreateTracesToMetrics(t.Context(), set, cfg, sink)
		require.NoError(t, err)
		records, err := f.CreateTracesToLogs(t.Context(), set, cfg, slow)
		require.NoError(t, err)
		for _, c := range []connector.Traces{metrics, records} {
			require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
		}
		var done sync.WaitGroup
		var mu sync.Mutex
		var acknowledged []uint32
		send := func(n uint32) {
			done.Go(func() {
				assert.NoError(t, records.ConsumeTraces(context.Background(), engineSpan("vllm", n)))
				mu.Lock()
				defer mu.Unlock()
				acknowledged = append(acknowledged, n)
			})
		}
		send(1)
		<-slow.entered
		for _, n := range []uint32{1, 2, 3, 4} {
			send(n)
		}
		for measured := 0.0; measured < 4; runtime.Gosched() { // the others wait for a mutex, which does not end a bubble's time
			n, _ := counter(metrics.(*metricsConnector).collect(context.Background()), "llm.requests")
			measured = n
		}
		mu.Lock()
		assert.Empty(t, acknowledged)
		mu.Unlock()
		close(slow.until)
		done.Wait()
		assert.Len(t, acknowledged, 5)
		for _, c := range []connector.Traces{metrics, records} {
			require.NoError(t, c.Shutdown(context.Background()))
		}
		assert.Len(t, slow.bySpan(), 4)
		assert.Equal(t, 4, slow.records.LogRecordCount())
	})
}
