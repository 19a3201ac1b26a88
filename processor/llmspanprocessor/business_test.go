package llmspanprocessor

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor/internal/metadatatest"
)

// chatSpan adds a client's request to a batch.
func chatSpan(td ptrace.Traces, id, parent byte, set func(pcommon.Map)) ptrace.Span {
	s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetTraceID(pcommon.TraceID{1})
	s.SetSpanID(pcommon.SpanID{id})
	if parent != 0 {
		s.SetParentSpanID(pcommon.SpanID{parent})
	}
	s.SetName("chat")
	s.SetKind(ptrace.SpanKindClient)
	s.SetStartTimestamp(1_796_045_488_000_000_000)
	s.SetEndTimestamp(1_796_045_489_000_000_000)
	a := s.Attributes()
	a.PutStr("gen_ai.operation.name", "chat")
	a.PutStr("gen_ai.request.model", "unheard-of")
	a.PutInt("gen_ai.usage.input_tokens", 100)
	a.PutInt("gen_ai.usage.output_tokens", 20)
	if set != nil {
		set(a)
	}
	return s
}

func TestCountsWhatRequestsAre(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.OversizeTokens = 110
	cfg.Prices.Models = []PriceConfig{{Model: "known", Input: ptr(1.), Output: ptr(2.)}}
	cfg.Dimensions = []DimensionConfig{{Name: "team", From: []string{"span.team"}, MaxValues: 2}}
	sink := new(consumertest.TracesSink)
	h := newHarness(t, cfg, sink)
	for i := range 5 {
		td := ptrace.NewTraces()
		chatSpan(td, byte(i+1), 0, func(a pcommon.Map) {
			a.PutStr("team", fmt.Sprint("team-", i))
			a.PutStr("gen_ai.completion.0.content", "!!"+string(make([]byte, 20))) // twenty control characters
		})
		require.NoError(t, h.ConsumeTraces(t.Context(), td))
	}
	point := func(n int64, kv ...attribute.KeyValue) []metricdata.DataPoint[int64] {
		return []metricdata.DataPoint[int64]{{Value: n, Attributes: attribute.NewSet(kv...)}}
	}
	metadatatest.AssertEqualProcessorLlmspanRequestsUnpriced(t, h.tel, point(5), metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualProcessorLlmspanRequestsOversize(t, h.tel, point(5), metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualProcessorLlmspanDimensionOverflowed(t, h.tel, point(3, attribute.String("dimension", "team")), metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualProcessorLlmspanQualityIssues(t, h.tel, point(5, attribute.String("issue", "garbled")), metricdatatest.IgnoreTimestamp())
	assert.Equal(t, 1, h.logs.FilterMessageSnippet("no price for a model").Len(), "a model is named once")
	require.NoError(t, h.Shutdown(context.Background()))
	got := sink.AllTraces()[4].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw()
	assert.Equal(t, "_overflow", got["llmspan.dimension.team"])
	assert.Equal(t, []any{"garbled"}, got["llmspan.quality"])
	assert.Equal(t, true, got["llmspan.unpriced"])
	assert.NotContains(t, got, "gen_ai.completion.0.content", "the text is gone")
}

// An agent that knows the team, and a gateway that knows prices and assembles traces: neither undoes what the other has found.
func TestAnAgentAndAGatewayEachAddTheirPart(t *testing.T) {
	for _, sampling := range []bool{false, true} {
		agent := createDefaultConfig().(*Config)
		agent.Dimensions = []DimensionConfig{{Name: "team", From: []string{"header.x-team"}}, {Name: "app", From: []string{"span.app"}}}
		gateway := createDefaultConfig().(*Config)
		gateway.Dimensions = []DimensionConfig{{Name: "team", From: []string{"header.x-team"}, Default: "nobody"}}
		gateway.Prices.Models = []PriceConfig{{Model: "*", Input: ptr(1.), Output: ptr(2.)}}
		gateway.Sampling.Enabled = sampling
		td := ptrace.NewTraces()
		chatSpan(td, 1, 0, func(a pcommon.Map) { a.PutEmptySlice("http.request.header.x-team").AppendEmpty().SetStr("search") })
		got := process(t, gateway, process(t, agent, td)).ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw()
		assert.Equal(t, "search", got["llmspan.dimension.team"], "the header is gone where the gateway looks")
		assert.Equal(t, "unknown", got["llmspan.dimension.app"])
		assert.Equal(t, []any{"app"}, got["llmspan.dimensions.default"])
		assert.Equal(t, .00014, got["llmspan.cost"])
		assert.Equal(t, "USD input=1 output=2", got["llmspan.price"])
	}
}

// What an agent has found on a gateway's plain HTTP span reaches the engine's span when another process puts the trace together.
func TestALabelFoundOnALayerReachesTheRequest(t *testing.T) {
	dims := []DimensionConfig{{Name: "team", From: []string{"header.x-team"}}}
	agent := createDefaultConfig().(*Config)
	agent.Dimensions = dims
	layer := ptrace.NewTraces()
	chatSpan(layer, 1, 0, func(a pcommon.Map) {
		a.Clear()
		a.PutStr("http.request.method", "POST")
		a.PutStr("url.path", "/v1/chat/completions")
		a.PutEmptySlice("http.request.header.x-team").AppendEmpty().SetStr("search")
	}).SetKind(ptrace.SpanKindServer)
	td := process(t, agent, layer)
	assert.NotContains(t, td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw(), "llmspan.dimensions.default", "a layer says what it knows, and no default")
	chatSpan(td, 2, 1, nil)
	gateway := createDefaultConfig().(*Config)
	gateway.Dimensions, gateway.Sampling.Enabled = dims, true
	gateway.Sampling.BaselineRatio = 1
	seen := 0
	for _, rs := range process(t, gateway, td).ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if s.SpanID() == (pcommon.SpanID{2}) {
					seen++
					assert.Equal(t, "search", s.Attributes().AsRaw()["llmspan.dimension.team"])
				}
			}
		}
	}
	assert.Equal(t, 1, seen)
}

// Of the layers of one request in a batch the innermost bears the cost and the outcome.
func TestOneSpanStandsForARequest(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Prices.Models = []PriceConfig{{Model: "*", Input: ptr(1.), Output: ptr(2.)}}
	cfg.SLO = []SLOConfig{{Model: "*", E2E: 1}}
	td := ptrace.NewTraces()
	chatSpan(td, 1, 0, nil)
	chatSpan(td, 2, 1, nil)
	with := map[string]int{}
	for _, rs := range process(t, cfg, td).ResourceSpans().All() {
		s := rs.ScopeSpans().At(0).Spans().At(0)
		for _, k := range []string{names.Cost, names.SLOOutcome, names.Price} {
			if _, ok := s.Attributes().Get(k); ok {
				with[fmt.Sprint(k, " ", s.SpanID())]++
			}
		}
	}
	assert.Equal(t, map[string]int{names.Cost + " 0200000000000000": 1, names.SLOOutcome + " 0200000000000000": 1, names.Price + " 0200000000000000": 1}, with)
}
