package recordings_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor"
)

// coldStart is an engine's start, and its first requests.
func coldStart() ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "fresh")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	const began = 1_796_045_488_000_000_000
	start := spans.AppendEmpty()
	start.SetName("Overall Loading")
	start.SetKind(ptrace.SpanKindInternal)
	start.SetTraceID(pcommon.TraceID{9})
	start.SetSpanID(pcommon.SpanID{9})
	start.SetStartTimestamp(began)
	start.SetEndTimestamp(began + 30e9)
	for i := range 5 {
		s := spans.AppendEmpty()
		s.SetName("llm_request")
		s.SetKind(ptrace.SpanKindServer)
		s.SetTraceID(pcommon.TraceID{10, byte(i)})
		s.SetSpanID(pcommon.SpanID{10, byte(i)})
		s.SetStartTimestamp(pcommon.Timestamp(began + (31+int64(i))*1e9))
		s.SetEndTimestamp(pcommon.Timestamp(began + (32+int64(i))*1e9))
		s.Attributes().PutDouble("gen_ai.latency.e2e", .9)
		s.Attributes().PutDouble("gen_ai.latency.time_to_first_token", .4)
		s.Attributes().PutInt("gen_ai.usage.prompt_tokens", 10)
		s.Attributes().PutInt("gen_ai.usage.completion_tokens", 20)
	}
	return td
}

// runaway is a trace of a client that left, with the engine's span of a proxy that did not hang up.
func runaway() ptrace.Traces {
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	add := func(id, parent byte, name string, kind ptrace.SpanKind, to int64) ptrace.Span {
		s := spans.AppendEmpty()
		s.SetTraceID(pcommon.TraceID{11})
		s.SetSpanID(pcommon.SpanID{id})
		s.SetName(name)
		s.SetKind(kind)
		s.SetStartTimestamp(pcommon.Timestamp(1_796_045_488_000_000_000 + int64(id)*1e6))
		s.SetEndTimestamp(pcommon.Timestamp(1_796_045_488_000_000_000 + to*1e9))
		if parent != 0 {
			s.SetParentSpanID(pcommon.SpanID{parent})
		}
		return s
	}
	client := add(1, 0, "chat small", ptrace.SpanKindClient, 2)
	client.Attributes().PutStr("gen_ai.operation.name", "chat")
	client.Attributes().PutStr("gen_ai.request.model", "small")
	client.Status().SetCode(ptrace.StatusCodeError)
	engine := add(3, 2, "llm_request", ptrace.SpanKindServer, 9) // the proxy's span, 2, is never exported
	engine.Attributes().PutDouble("gen_ai.latency.e2e", 8.9)
	engine.Attributes().PutDouble("gen_ai.latency.time_to_first_token", .4)
	engine.Attributes().PutInt("gen_ai.usage.prompt_tokens", 10)
	engine.Attributes().PutInt("gen_ai.usage.completion_tokens", 700)
	return td
}

// quick decides on whole traces as soon as it can.
func quick(cfg *llmspanprocessor.Config) *llmspanprocessor.Config {
	cfg.Sampling.Enabled = true
	cfg.Sampling.DecisionDelay, cfg.Sampling.AnswerDelay = time.Millisecond, time.Millisecond
	return cfg
}

func TestConfiguredAttributesAreDocumented(t *testing.T) {
	var rows [][]string
	for _, a := range names.SpanAttributes {
		if slices.Contains(configuredOnly, a.Key) {
			rows = append(rows, []string{"`" + a.Key + "`", a.Type, a.Meaning})
		}
	}
	doctest.Generated(t, attributesPage, "business attributes", doctest.Table([]string{"attribute", "type", "meaning"}, rows))
	cfg := businessConfig(t)
	cfg.OversizeTokens = 100
	in, _ := day(4, 40)
	seen := map[string]bool{}
	for _, td := range append(pipeline(t, cfg, in).traces, pipeline(t, quick(businessConfig(t)), []ptrace.Traces{runaway()}).traces...) {
		each(td, func(s ptrace.Span) {
			for k := range s.Attributes().All() {
				if strings.HasPrefix(k, names.Dimension) {
					k = names.Dimension + "<name>"
				}
				assert.False(t, strings.HasPrefix(k, names.DimensionKept), k)
				seen[k] = true
			}
		})
	}
	for _, k := range configuredOnly {
		assert.True(t, seen[k], "%s is documented and never written", k)
	}
}

// A new engine's first requests are marked, and no later ones; the first one says how long the start took.
func TestTheFirstRequestsOfAnEngineAreMarked(t *testing.T) {
	res := pipeline(t, businessConfig(t), []ptrace.Traces{coldStart()})
	assert.Equal(t, 3.0, sum(sums(res, "llm.requests.warmup", byKey)))
	n, total := 0, 0.0
	for _, td := range res.traces {
		each(td, func(s ptrace.Span) {
			if v, ok := s.Attributes().Get(names.ColdStart); ok {
				n, total = n+1, total+v.Double()
			}
		})
	}
	assert.Equal(t, 1, n)
	assert.InDelta(t, 32, total, 1e-9, "from the start of loading to the end of the first request")
}

// One request, cancelled, whose tokens were generated for nobody.
func TestAnEngineThatRunsOnAfterItsClientLeftIsWaste(t *testing.T) {
	res := pipeline(t, quick(businessConfig(t)), []ptrace.Traces{runaway()})
	assert.Equal(t, map[bill]float64{{"small", "nobody", "cancelled"}: 1}, sums(res, "llm.requests", byKey))
	assert.Equal(t, map[bill]float64{{"small", "nobody", "cancelled"}: 700}, sums(res, "llm.wasted.output_tokens", with(names.MetricReason, "upstream_ran_on")))
	assert.Equal(t, map[bill]float64{{"small", "nobody", "cancelled"}: 8.9}, sums(res, "llm.wasted.duration", with(names.MetricReason, "upstream_ran_on")))
	assert.Len(t, res.records, 1)
}

func sum(m map[bill]float64) (total float64) {
	for _, v := range m {
		total += v
	}
	return total
}
