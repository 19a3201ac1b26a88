package dialect

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// attrs are a span's attributes as plain values.
type attrs = map[string]any

const second = 1_000_000_000

// newSpan is a span of one second.
func newSpan(t *testing.T, kind ptrace.SpanKind, name string, a attrs) ptrace.Span {
	t.Helper()
	s := ptrace.NewSpan()
	s.SetName(name)
	s.SetKind(kind)
	s.SetTraceID(pcommon.TraceID{1})
	s.SetSpanID(pcommon.SpanID{2})
	s.SetParentSpanID(pcommon.SpanID{3})
	s.SetStartTimestamp(1_000 * second)
	s.SetEndTimestamp(1_001 * second)
	require.NoError(t, s.Attributes().FromRaw(a))
	return s
}

func with(base attrs, more attrs) attrs {
	out := attrs{}
	for k, v := range base {
		out[k] = v
	}
	for k, v := range more {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = v
		}
	}
	return out
}

func mustRead(t *testing.T, s ptrace.Span) request.Request {
	t.Helper()
	r, ok := Read(s, &request.Source{Service: "svc", Model: "from-resource"})
	require.True(t, ok, "no dialect claims the span")
	return r
}

// A healthy span of one second for each engine.
var (
	v1 = attrs{
		"gen_ai.latency.time_in_queue": .01, "gen_ai.latency.time_in_model_prefill": .04, "gen_ai.latency.time_in_model_decode": .9,
		"gen_ai.latency.time_in_model_inference": .94, "gen_ai.latency.time_to_first_token": .08, "gen_ai.latency.e2e": .98,
		"gen_ai.request.id": "chatcmpl-1", "gen_ai.request.n": 1, "gen_ai.request.max_tokens": 50,
		"gen_ai.usage.prompt_tokens": 20, "gen_ai.usage.completion_tokens": 46,
	}
	v0 = attrs{
		"gen_ai.latency.time_in_queue": .02, "gen_ai.latency.time_to_first_token": .08, "gen_ai.latency.e2e": .98,
		"gen_ai.request.id": "cmpl-1", "gen_ai.response.model": "/models/tiny", "gen_ai.usage.prompt_tokens": 20, "gen_ai.usage.completion_tokens": 46,
	}
	sglang = attrs{
		"rid": "f4305840", "module": "sglang::request", "gen_ai.request.id": "f4305840", "gen_ai.request.n": 1,
		"gen_ai.usage.prompt_tokens": 21, "gen_ai.usage.completion_tokens": 12, "gen_ai.usage.cached_tokens": 20,
		"gen_ai.response.model": "tiny", "gen_ai.response.finish_reasons": `["length"]`,
		"gen_ai.latency.time_to_first_token": .08, "gen_ai.latency.e2e": .98, "gen_ai.latency.time_in_model_prefill": .06, "gen_ai.latency.time_in_model_decode": .9,
	}
	dynamo = attrs{
		"method": "POST", "uri": "/v1/chat/completions", "request_id": "r-1", "model": "tiny", "input_tokens": "40", "output_tokens": "48",
		"ttft_ms": "12.5", "request.outcome": "success",
	}
	chat = attrs{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "tiny", "gen_ai.response.model": "tiny-2",
		"gen_ai.response.id": "chatcmpl-1", "gen_ai.response.finish_reasons": []any{"stop"}, "gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 46,
	}
	httpServer = attrs{"http.request.method": "POST", "url.path": "/v1/chat/completions", "http.response.status_code": 200}
)
