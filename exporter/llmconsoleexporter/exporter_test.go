package llmconsoleexporter

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/exporter/llmconsoleexporter/internal/metadatatest"
)

const canary = "CANARY-in-the-prompt"

// sink is a writer that fails, or blocks until it is told to go on.
type sink struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	err  error
	wait chan struct{}
}

func (s *sink) Write(b []byte) (int, error) {
	if s.wait != nil {
		<-s.wait
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	return s.buf.Write(b)
}

func (s *sink) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *sink) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buf.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s.buf.String(), "\n"), "\n")
}

// requests builds n records for requests, each with prompt text where the exporter must not look.
func requests(n int) plog.Logs {
	ld := plog.NewLogs()
	recs := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for range n {
		rec := recs.AppendEmpty()
		rec.SetEventName("llm.request")
		rec.Body().SetStr(canary)
		rec.SetTimestamp(pcommon.NewTimestampFromTime(time.Date(2026, 5, 1, 12, 23, 5, 123e6, time.UTC)))
		a := rec.Attributes()
		a.PutStr("gen_ai.prompt", canary)
		a.PutStr("gen_ai.request.model", "meta-llama/Llama-3.1-8B")
		a.PutStr("llmspan.status", "ok")
		a.PutDouble("llmspan.ttft", 0.1234)
		a.PutDouble("llmspan.tpot", 0.0123)
		a.PutDouble("llmspan.e2e", 1.534)
		a.PutDouble("llmspan.queue.duration", 0.00002)
		a.PutDouble("llmspan.decode.duration", 1.41)
		a.PutInt("gen_ai.usage.input_tokens", 512)
		a.PutInt("gen_ai.usage.output_tokens", 128)
	}
	return ld
}

const wantLine = "14:23:05.123 ok        meta-llama/Llama-3.1-8B  ttft  123ms tpot 12.3ms e2e  1.53s    512→128    queue 0.02ms decode  1.41s"

type harness struct {
	*consoleExporter
	tel  *componenttest.Telemetry
	logs *observer.ObservedLogs
}

func newHarness(t *testing.T, cfg *Config, out *sink) harness {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, tel.Shutdown(context.Background())) })
	set := tel.NewTelemetrySettings()
	core, logs := observer.New(zap.InfoLevel)
	set.Logger = zap.New(core)
	e, err := newConsoleExporter(cfg, out, false, time.FixedZone("", 2*3600), set)
	require.NoError(t, err)
	require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
	return harness{e, tel, logs}
}

// assertRecords checks every outcome, so that what is not named is asserted to be none.
func (h harness) assertRecords(t *testing.T, want map[string]int64) {
	t.Helper()
	var points []metricdata.DataPoint[int64]
	for o, n := range want {
		points = append(points, metricdata.DataPoint[int64]{Attributes: attribute.NewSet(attribute.String("outcome", o)), Value: n})
	}
	metadatatest.AssertEqualExporterLlmconsoleRecords(t, h.tel, points, metricdatatest.IgnoreTimestamp())
}

func defaults() *Config { return createDefaultConfig().(*Config) }

func TestPrintsARequestAndNothingElse(t *testing.T) {
	out := &sink{}
	h := newHarness(t, defaults(), out)
	ld := requests(1)
	other := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().AppendEmpty()
	other.Body().SetStr("an ordinary log line")
	require.NoError(t, h.consumeLogs(t.Context(), ld))
	require.NoError(t, h.shutdown(t.Context()))
	assert.Equal(t, []string{wantLine}, out.lines())
	h.assertRecords(t, map[string]int64{"printed": 1, "ignored": 1})
}

func TestLeavesOutWhatIsBeyondTheLimitAndSaysHowMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &sink{}
		h := newHarness(t, defaults(), out)
		require.NoError(t, h.consumeLogs(t.Context(), requests(130)))
		synctest.Wait()
		assert.Len(t, out.lines(), 100, "what an engine sends every five seconds comes at once")
		time.Sleep(summaryEvery) // the bubble's clock
		synctest.Wait()
		require.Len(t, out.lines(), 101)
		assert.Equal(t, "… 30 more requests not shown (metrics and records have every one)", out.lines()[100])

		require.NoError(t, h.consumeLogs(t.Context(), requests(3)))
		time.Sleep(10 * summaryEvery)
		synctest.Wait()
		assert.Len(t, out.lines(), 104, "a quiet second has no summary")

		require.NoError(t, h.consumeLogs(t.Context(), requests(101)))
		require.NoError(t, h.shutdown(t.Context()))
		require.Len(t, out.lines(), 205)
		assert.Contains(t, out.lines()[204], "… 1 more request ", "the last summary is not lost")
		h.assertRecords(t, map[string]int64{"printed": 203, "rate_limited": 31})
	})
}

func TestNoLimitPrintsAll(t *testing.T) {
	out := &sink{}
	cfg := defaults()
	cfg.MaxLinesPerSecond = 0
	h := newHarness(t, cfg, out)
	require.NoError(t, h.consumeLogs(t.Context(), requests(20*queueLines)))
	require.NoError(t, h.shutdown(t.Context()))
	assert.Len(t, out.lines(), 20*queueLines, "a burst beyond the queue waits for the writer")
}

// A terminal that takes nothing (Ctrl-S) costs lines, never a pipeline and never the shutdown.
func TestABlockedOutputHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &sink{wait: make(chan struct{})}
		cfg := defaults()
		cfg.MaxLinesPerSecond = 0
		h := newHarness(t, cfg, out)
		require.NoError(t, h.consumeLogs(t.Context(), requests(1)))
		synctest.Wait() // the goroutine holds that one and blocks
		begin := time.Now()
		require.NoError(t, h.consumeLogs(t.Context(), requests(queueLines+10)))
		assert.Equal(t, patience, time.Since(begin), "the pipeline waits once, not for each line")

		begin = time.Now()
		err := h.shutdown(t.Context())
		require.ErrorIs(t, err, errNotDrained)
		assert.Equal(t, drainTimeout, time.Since(begin))
		h.assertRecords(t, map[string]int64{"blocked": 10})

		close(out.wait)
		synctest.Wait()
		assert.Len(t, out.lines(), 1+queueLines+1, "what was queued and the summary")
		assert.False(t, h.printer.stuck.Load(), "a line that was written ends it")
	})
}

func TestAnOutputThatFailsIsLoggedOnceAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &sink{err: errors.New("no space left")}
		h := newHarness(t, defaults(), out)
		require.NoError(t, h.consumeLogs(t.Context(), requests(3)), "the pipeline does not see it")
		synctest.Wait()
		out.fail(nil)
		require.NoError(t, h.consumeLogs(t.Context(), requests(2)))
		require.NoError(t, h.shutdown(t.Context()))
		assert.Len(t, out.lines(), 2)
		h.assertRecords(t, map[string]int64{"printed": 2, "write_failed": 3})
		require.Equal(t, 2, h.logs.Len(), "one entry a change of state")
		assert.Equal(t, "cannot write request lines; records elsewhere are not affected", h.logs.All()[0].Message)
		assert.Equal(t, "request lines are written again", h.logs.All()[1].Message)
	})
}

func TestShutdownIsSafeTwiceAndWithoutStart(t *testing.T) {
	out := &sink{}
	h := newHarness(t, defaults(), out)
	require.NoError(t, h.shutdown(t.Context()))
	require.NoError(t, h.shutdown(t.Context()))

	e, err := newConsoleExporter(defaults(), out, false, time.UTC, componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	assert.NoError(t, e.shutdown(t.Context()))
}

func TestConcurrentPipelines(t *testing.T) {
	out := &sink{}
	h := newHarness(t, defaults(), out)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { assert.NoError(t, h.consumeLogs(context.Background(), requests(100))) })
	}
	wg.Wait()
	require.NoError(t, h.shutdown(t.Context()))
	var got int64
	for _, l := range out.lines() {
		if l == wantLine {
			got++
		} else {
			assert.Contains(t, l, "not shown")
		}
	}
	m, err := h.tel.GetMetric("otelcol_exporter_llmconsole_records")
	require.NoError(t, err)
	outcomes := map[string]int64{}
	var total int64
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		o, _ := p.Attributes.Value("outcome")
		outcomes[o.AsString()] += p.Value
		total += p.Value
	}
	assert.Equal(t, int64(800), total, "every record has one outcome")
	assert.Equal(t, got, outcomes["printed"])
}
