package llmspanconnector

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector/internal/metadatatest"
)

var errFull = errors.New("the queue is full")

// The record of an engine's request has left when the batch is acknowledged.
func TestARecordLeavesBeforeTheBatchIsAcknowledged(t *testing.T) {
	g := &gate{}
	h := newRecords(t, defaults(), g)
	require.NoError(t, h.ConsumeTraces(t.Context(), engineSpan("vllm", 1)))
	assert.Equal(t, 1, g.records.LogRecordCount())
	require.NoError(t, h.Shutdown(context.Background()))
	metadatatest.AssertEqualConnectorLlmspanRecords(t, h.tel, point(1), metricdatatest.IgnoreTimestamp())
}

// While the consumer refuses, the sender is refused too and keeps its batch. When it comes again each record leaves exactly once.
func TestARefusedRecordIsSentOnceWhenTheSenderComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		h := newRecords(t, defaults(), g)
		g.refuse(errFull)
		for range 3 {
			assert.ErrorIs(t, h.ConsumeTraces(t.Context(), engineSpan("vllm", 1)), errFull)
			assert.ErrorIs(t, h.ConsumeTraces(t.Context(), engineSpan("vllm", 2)), errFull)
		}
		assert.Equal(t, int64(2), h.value(t, "records_waiting"), "a retry adds none")
		assert.Equal(t, int64(4), h.value(t, "duplicates"))
		h.assertAccounted(t)

		g.refuse(nil)
		require.NoError(t, h.ConsumeTraces(t.Context(), engineSpan("vllm", 1)))
		require.NoError(t, h.ConsumeTraces(t.Context(), engineSpan("vllm", 2)))
		want := map[pcommon.SpanID]int{{3: 1, 7: 1}: 1, {3: 2, 7: 1}: 1}
		assert.Equal(t, want, g.bySpan())
		assert.Equal(t, int64(2), h.value(t, "records"))
		assert.Zero(t, h.value(t, "records_waiting"))
		assert.Zero(t, h.value(t, "records_dropped"))
		h.assertAccounted(t)
		assert.Equal(t, []string{"request records were refused; they are offered again", "request records are accepted again"}, h.messages(), "one entry a change of state")
		require.NoError(t, h.Shutdown(context.Background()))
		assert.Equal(t, want, g.bySpan(), "and not again at the end")
	})
}

// A sender that gave up loses nothing: what waits is offered again by itself.
func TestARefusedRecordIsOfferedAgainWithoutTheSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		h := newRecords(t, defaults(), g)
		g.refuse(errFull)
		require.ErrorIs(t, h.ConsumeTraces(t.Context(), engineSpan("vllm", 1)), errFull)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, 0, g.records.LogRecordCount())
		g.refuse(nil)
		time.Sleep(tick(defaults().JoinWindow))
		synctest.Wait()
		assert.Equal(t, 1, g.records.LogRecordCount())
		require.NoError(t, h.Shutdown(context.Background()))
		assert.Equal(t, 1, g.records.LogRecordCount())
	})
}

// What the consumer will never take is dropped, counted and said to be gone; it does not stand in the way of what follows.
func TestARecordThatIsRefusedForGoodIsDropped(t *testing.T) {
	g := &gate{}
	h := newRecords(t, defaults(), g)
	g.refuse(consumererror.NewPermanent(errFull))
	err := h.ConsumeTraces(t.Context(), engineSpan("vllm", 1))
	require.ErrorIs(t, err, errFull)
	assert.True(t, consumererror.IsPermanent(err))
	metadatatest.AssertEqualConnectorLlmspanRecordsDropped(t, h.tel, point(1, attribute.String("reason", "refused")), metricdatatest.IgnoreTimestamp())
	assert.Zero(t, h.value(t, "records_waiting"))
	assert.Equal(t, []string{"request records were refused for good and are dropped"}, h.messages())

	g.refuse(nil)
	require.NoError(t, h.ConsumeTraces(t.Context(), engineSpan("vllm", 2)))
	assert.Equal(t, map[pcommon.SpanID]int{{3: 2, 7: 1}: 1}, g.bySpan())
	require.NoError(t, h.Shutdown(context.Background()))
}

// What still waits at the end is offered a last time, and counted when it is refused then.
func TestShutdownOffersWhatWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		err           error
		sent, dropped int64
	}{
		"taken":   {nil, 2, 0},
		"refused": {errFull, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gate{}
				h := newRecords(t, defaults(), g)
				g.refuse(errFull)
				require.Error(t, h.ConsumeTraces(t.Context(), engineSpan("vllm", 1)))
				g.refuse(tt.err)
				// A client's request waits for an engine's span and is settled by the end.
				ctx := t.Context()
				if tt.err == nil {
					require.NoError(t, h.ConsumeTraces(ctx, clientSpan("app", 2)))
				} else {
					require.Error(t, h.ConsumeTraces(ctx, clientSpan("app", 2)))
				}
				assert.Equal(t, int64(1), h.value(t, "held"))
				require.NoError(t, h.Shutdown(context.Background()))
				assert.Equal(t, tt.sent, h.value(t, "records"))
				assert.Equal(t, tt.dropped, h.value(t, "records_dropped"))
				if tt.dropped > 0 {
					metadatatest.AssertEqualConnectorLlmspanRecordsDropped(t, h.tel, point(2, attribute.String("reason", "shutdown")), metricdatatest.IgnoreTimestamp())
				}
				assert.EqualValues(t, tt.sent, g.records.LogRecordCount())
			})
		})
	}
}

// The outbox is bounded: beyond it records are dropped and counted, and the rest leaves.
func TestTheOutboxIsBounded(t *testing.T) {
	g := &gate{}
	h := newRecords(t, defaults(), g)
	g.refuse(errFull)
	const over = 7
	td := engineSpan("vllm", 0)
	for n := uint32(1); n < maxWaiting; n++ {
		engineSpan("vllm", n).ResourceSpans().At(0).ScopeSpans().MoveAndAppendTo(td.ResourceSpans().At(0).ScopeSpans())
	}
	require.Error(t, h.ConsumeTraces(t.Context(), td))
	for n := uint32(0); n < over; n++ {
		require.Error(t, h.ConsumeTraces(t.Context(), engineSpan("vllm", maxWaiting+n)))
	}
	assert.Equal(t, int64(maxWaiting), h.value(t, "records_waiting"))
	metadatatest.AssertEqualConnectorLlmspanRecordsDropped(t, h.tel, point(over, attribute.String("reason", "outbox_full")), metricdatatest.IgnoreTimestamp())
	g.refuse(nil)
	require.NoError(t, h.Shutdown(context.Background()))
	assert.Equal(t, maxWaiting, g.records.LogRecordCount())
}

// However many requests settle at once, what the consumer is given is of a bounded size; one part that it never takes does not hold up
// the others.
func TestRecordsAreOfferedInPortions(t *testing.T) {
	const n = 5 * portion
	for name, tt := range map[string]struct {
		first         error
		sent, dropped int64
	}{
		"taken":             {nil, n, 0},
		"one part for good": {consumererror.NewPermanent(errFull), n - portion, portion},
	} {
		t.Run(name, func(t *testing.T) {
			var sizes []int64
			sent := map[pcommon.SpanID]int{}
			next, err := consumer.NewLogs(func(_ context.Context, ld plog.Logs) error {
				if sizes = append(sizes, int64(ld.LogRecordCount())); len(sizes) == 1 && tt.first != nil {
					return tt.first
				}
				for _, rl := range ld.ResourceLogs().All() {
					for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
						sent[lr.SpanID()]++
					}
				}
				return nil
			})
			require.NoError(t, err)
			h := newRecords(t, defaults(), next)
			for i := range uint32(n) {
				require.NoError(t, h.ConsumeTraces(t.Context(), clientSpan("app", i)))
			}
			require.Empty(t, sizes, "they wait for their engines")
			require.NoError(t, h.Shutdown(context.Background()))
			for _, s := range sizes {
				assert.LessOrEqual(t, s, int64(portion))
			}
			different := len(sent)
			assert.EqualValues(t, tt.sent, different)
			assert.Equal(t, tt.sent, h.value(t, "records"))
			assert.Equal(t, tt.dropped, h.value(t, "records_dropped"))
		})
	}
}

func TestNoRecordsWhenNoneAreAskedFor(t *testing.T) {
	sink := new(consumertest.LogsSink)
	cfg := defaults()
	cfg.Records = RecordsNone
	h := newRecords(t, cfg, sink)
	require.NoError(t, h.ConsumeTraces(t.Context(), engineSpan("vllm", 1)))
	require.NoError(t, h.Shutdown(context.Background()))
	assert.Zero(t, sink.LogRecordCount())
	assert.Zero(t, h.value(t, "request_spans"))
}

// A client's request that no engine reports has its record when its wait is over, and not before.
func TestAClientsRequestWaitsForItsEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		h := newRecords(t, defaults(), g)
		require.NoError(t, h.ConsumeTraces(t.Context(), clientSpan("app", 1)))
		time.Sleep(9 * time.Second)
		synctest.Wait()
		assert.Equal(t, 0, g.records.LogRecordCount())
		assert.Equal(t, int64(1), h.value(t, "held"))
		h.assertAccounted(t)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, 1, g.records.LogRecordCount())
		assert.Zero(t, h.value(t, "held"))
		h.assertAccounted(t)
		require.NoError(t, h.Shutdown(context.Background()))
	})
}
