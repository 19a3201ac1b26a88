package llmspanprocessor

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor/internal/metadatatest"
)

// harness is a started processor with what it tells of itself.
type harness struct {
	processor.Traces
	tel  *componenttest.Telemetry
	logs *observer.ObservedLogs
}

func newHarness(t *testing.T, cfg *Config, next consumer.Traces) harness {
	t.Helper()
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, tel.Shutdown(context.Background())) })
	set := metadatatest.NewSettings(tel)
	core, logs := observer.New(zapcore.DebugLevel)
	set.Logger = zap.New(core)
	p, err := NewFactory().CreateTraces(t.Context(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	return harness{p, tel, logs}
}

// sum adds up a counter over its attributes; 0 when it has no point.
func (h harness) sum(t *testing.T, name string) (total int64) {
	t.Helper()
	m, err := h.tel.GetMetric("otelcol_" + name)
	if err != nil {
		return 0
	}
	for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints {
		total += dp.Value
	}
	return total
}

func input(t *testing.T, name string) ptrace.Traces {
	t.Helper()
	td, err := golden.ReadTraces(filepath.Join("testdata", "traces", name, "input.yaml"))
	require.NoError(t, err)
	return td
}

func point(n int64, attrs ...attribute.KeyValue) metricdata.DataPoint[int64] {
	return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attrs...)}
}

// Nothing is dropped and nothing is held: what goes out is what came in, and the stage spans.
func TestOutgoingIsIncomingPlusStageSpans(t *testing.T) {
	sink := new(consumertest.TracesSink)
	h := newHarness(t, createDefaultConfig().(*Config), sink)
	in := 0
	for _, dir := range cases(t, "traces") {
		td := input(t, filepath.Base(dir))
		in += td.SpanCount()
		require.NoError(t, h.ConsumeTraces(t.Context(), td))
	}
	require.NoError(t, h.Shutdown(t.Context()))
	assert.Equal(t, int64(in), h.sum(t, "processor_incoming_items"))
	stages := h.sum(t, "processor_llmspan_stage_spans")
	assert.Positive(t, stages)
	assert.Equal(t, int64(in)+stages, h.sum(t, "processor_outgoing_items"))
	assert.Equal(t, in+int(stages), sink.SpanCount())
}

func TestCountsRequestsByLayerStagesAndRedactions(t *testing.T) {
	h := newHarness(t, createDefaultConfig().(*Config), consumertest.NewNop())
	require.NoError(t, h.ConsumeTraces(t.Context(), input(t, "gateway-and-engine")))
	require.NoError(t, h.ConsumeTraces(t.Context(), input(t, "sdk-with-prompts")))
	require.NoError(t, h.ConsumeTraces(t.Context(), input(t, "not-llm")))
	metadatatest.AssertEqualProcessorLlmspanRequests(t, h.tel, []metricdata.DataPoint[int64]{
		point(1, attribute.String("layer", "client")),
		point(1, attribute.String("layer", "gateway")),
		point(2, attribute.String("layer", "engine")),
	}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualProcessorLlmspanStageSpans(t, h.tel, []metricdata.DataPoint[int64]{point(2 * 6)}, metricdatatest.IgnoreTimestamp())
	signal := attribute.String("signal", "traces")
	metadatatest.AssertEqualProcessorLlmspanRedacted(t, h.tel, []metricdata.DataPoint[int64]{
		point(2, signal, attribute.String("class", "message")),    // gen_ai.input.messages, gen_ai.request.stop_sequences
		point(1, signal, attribute.String("class", "completion")), // gen_ai.output.messages
		point(1, signal, attribute.String("class", "metadata")),   // http.request.header.x_team
	}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, h.Shutdown(t.Context()))
}

func TestCountsFiguresThatCannotBeTrueAndClocksThatDiffer(t *testing.T) {
	h := newHarness(t, createDefaultConfig().(*Config), consumertest.NewNop())
	td := input(t, "gateway-and-engine")
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				switch {
				case s.Name() == "llm_request":
					s.Attributes().PutDouble("gen_ai.latency.time_in_queue", -1)
					s.Attributes().PutStr("gen_ai.usage.completion_tokens", "thirty")
				case s.Kind() == ptrace.SpanKindServer:
					s.SetStartTimestamp(s.StartTimestamp() + pcommon.Timestamp(60e6)) // 10 ms after the engine's
				}
			}
		}
	}
	require.NoError(t, h.ConsumeTraces(t.Context(), td))
	metadatatest.AssertEqualProcessorLlmspanFiguresRejected(t, h.tel, []metricdata.DataPoint[int64]{
		point(1, attribute.String("figure", "queue")),
		point(1, attribute.String("figure", "output_tokens")),
	}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualProcessorLlmspanClockSkew(t, h.tel, []metricdata.DataPoint[int64]{point(1)}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, h.Shutdown(t.Context()))
}

// The next consumer's refusal reaches the sender, unchanged.
func TestARefusalReachesTheSender(t *testing.T) {
	refusal := errors.New("full")
	h := newHarness(t, createDefaultConfig().(*Config), consumertest.NewErr(refusal))
	assert.ErrorIs(t, h.ConsumeTraces(t.Context(), input(t, "vllm-v1")), refusal)
	require.NoError(t, h.Shutdown(t.Context()))
}

// Under concurrent batches each gives what it gives alone.
func TestConcurrentBatches(t *testing.T) {
	sink := new(consumertest.TracesSink)
	h := newHarness(t, createDefaultConfig().(*Config), sink)
	const workers, rounds = 8, 20
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				td, err := golden.ReadTraces(filepath.Join("testdata", "traces", "gateway-and-engine", "input.yaml"))
				if assert.NoError(t, err) {
					assert.NoError(t, h.ConsumeTraces(context.Background(), td))
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, h.Shutdown(t.Context()))
	one := input(t, "gateway-and-engine").SpanCount()
	assert.Equal(t, workers*rounds*(one+6), sink.SpanCount())
	assert.Equal(t, int64(workers*rounds*6), h.sum(t, "processor_llmspan_stage_spans"))
}

// What lets text through is said once, at start; nothing else is logged, and nothing of a span ever.
func TestLogs(t *testing.T) {
	for name, tt := range map[string]struct {
		content ContentConfig
		want    []string
	}{
		"default":       {ContentConfig{Mode: "strip"}, nil},
		"keep":          {ContentConfig{Mode: "keep"}, []string{"content mode is keep: prompt text leaves this process"}},
		"keep by key":   {ContentConfig{Mode: "strip", Overrides: []OverrideConfig{{Key: "gen_ai.prompt", Mode: "keep"}}}, []string{"content mode is keep for some keys: their text leaves this process"}},
		"short key":     {ContentConfig{Mode: "hash", HashKey: "short"}, []string{"content hash key is shorter than 16 bytes: short texts could be guessed"}},
		"all let pass":  {ContentConfig{Mode: "strip", Allow: []string{"*"}}, []string{"content allow is *: prompt text leaves this process"}},
		"keep for some": {ContentConfig{Mode: "strip", Services: []ServiceConfig{{Service: "eval", Mode: "keep"}}}, []string{"content mode is keep for some services: their prompt text leaves this process"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.Content = tt.content
			h := newHarness(t, cfg, consumertest.NewNop())
			require.NoError(t, h.ConsumeTraces(t.Context(), input(t, "sdk-with-prompts")))
			require.NoError(t, h.Shutdown(t.Context()))
			var got []string
			for _, e := range h.logs.All() {
				assert.Equal(t, zapcore.WarnLevel, e.Level)
				assert.Empty(t, e.Context)
				got = append(got, e.Message)
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestShutdownIsSafeTwiceAndWithoutStart(t *testing.T) {
	h := newHarness(t, createDefaultConfig().(*Config), consumertest.NewNop())
	require.NoError(t, h.Shutdown(t.Context()))
	require.NoError(t, h.Shutdown(t.Context()))
	tel := componenttest.NewTelemetry()
	p, err := NewFactory().CreateTraces(t.Context(), metadatatest.NewSettings(tel), createDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, p.Shutdown(t.Context()))
	require.NoError(t, tel.Shutdown(t.Context()))
}
