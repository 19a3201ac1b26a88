package dialect

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

func TestEngineFigures(t *testing.T) {
	const engine = "llm_request"
	L := func(k string) string { return "gen_ai.latency." + k }
	s := request.Some[float64]
	none := request.Seconds{}
	type figures struct{ admission, queue, prefill, decode, ttft, e2e request.Seconds }
	for _, c := range []struct {
		name    string
		a       attrs
		want    figures
		invalid []string
	}{
		{"V1 states all", v1, figures{s(.03), s(.01), s(.04), s(.9), s(.08), s(.98)}, nil},
		{"V0 implies prefill and decode, admission stays inside its queue", v0, figures{none, s(.02), s(.06), s(.9), s(.08), s(.98)}, nil},
		{"ints are numbers", with(v1, attrs{L("e2e"): 1, L("time_in_queue"): 0}), figures{s(.04), s(0), s(.04), s(.9), s(.08), s(1)}, nil},
		{"a string is no number", with(v1, attrs{L("time_in_queue"): "0.01"}), figures{none, none, s(.04), s(.9), s(.08), s(.98)}, []string{"queue"}},
		{"a bool is no number", with(v1, attrs{L("time_to_first_token"): true}), figures{none, s(.01), s(.04), s(.9), none, s(.98)}, []string{"ttft"}},
		{"an array is no number", with(v1, attrs{L("e2e"): []any{.98}}), figures{s(.03), s(.01), s(.04), s(.9), s(.08), none}, []string{"e2e"}},
		{"NaN", with(v1, attrs{L("time_in_model_decode"): math.NaN()}), figures{s(.03), s(.01), s(.04), none, s(.08), s(.98)}, []string{"decode"}},
		{"infinity", with(v1, attrs{L("time_to_first_token"): math.Inf(1)}), figures{none, s(.01), s(.04), s(.9), none, s(.98)}, []string{"ttft"}},
		{"negative infinity", with(v1, attrs{L("e2e"): math.Inf(-1)}), figures{s(.03), s(.01), s(.04), s(.9), s(.08), none}, []string{"e2e"}},
		{"negative (a failed transfer of the cache leaves a huge one)", with(v1, attrs{L("time_in_queue"): -9.2e9}), figures{none, none, s(.04), s(.9), s(.08), s(.98)}, []string{"queue"}},
		{"longer than the span", with(v1, attrs{L("time_in_model_prefill"): 1.5}), figures{none, s(.01), none, s(.9), s(.08), s(.98)}, []string{"prefill"}},
		{"a little longer than the span, as two clocks differ", with(v1, attrs{L("e2e"): 1.16}), figures{s(.03), s(.01), s(.04), s(.9), s(.08), s(1.16)}, nil},
		{"first token after the end", with(v1, attrs{L("time_to_first_token"): .9, L("e2e"): .5}), figures{none, s(.01), s(.04), s(.9), none, s(.5)}, []string{"ttft"}},
		{"milliseconds throughout, the small ones too", with(v1, attrs{
			L("time_in_queue"): .4, L("time_in_model_prefill"): 40.0, L("time_in_model_decode"): 900.0, L("time_to_first_token"): 80.0, L("e2e"): 980.0,
		}), figures{}, []string{"e2e", "ttft", "queue", "prefill", "decode"}},
		{"microseconds are too long as well", with(v1, attrs{L("e2e"): 980000.0, L("time_to_first_token"): 80000.0}), figures{none, s(.01), s(.04), s(.9), none, none}, []string{"e2e", "ttft"}},
		{"admission below zero by what the clocks differ is none", with(v1, attrs{L("time_in_queue"): .05}), figures{s(0), s(.05), s(.04), s(.9), s(.08), s(.98)}, nil},
		{"admission far below zero is rejected", with(v1, attrs{L("time_in_queue"): .5}), figures{none, s(.5), s(.04), s(.9), s(.08), s(.98)}, []string{"admission"}},
		{"no first token: the zeros are unset instants", with(v1, attrs{
			L("time_to_first_token"): 0.0, L("time_in_model_prefill"): 0.0, L("time_in_model_decode"): 0.0,
		}), figures{none, s(.01), none, none, none, s(.98)}, nil},
		{"one token: decode is 0, and that is right", with(v1, attrs{L("time_in_model_decode"): 0.0, "gen_ai.usage.completion_tokens": 1}), figures{s(.03), s(.01), s(.04), s(0), s(.08), s(.98)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mustRead(t, newSpan(t, ptrace.SpanKindServer, engine, c.a))
			got := figures{r.Admission, r.Queue, r.Prefill, r.Decode, r.TTFT, r.E2E}
			for _, f := range []struct {
				name      string
				want, got request.Seconds
			}{
				{"admission", c.want.admission, got.admission},
				{"queue", c.want.queue, got.queue},
				{"prefill", c.want.prefill, got.prefill},
				{"decode", c.want.decode, got.decode},
				{"ttft", c.want.ttft, got.ttft},
				{"e2e", c.want.e2e, got.e2e},
			} {
				assert.Equal(t, f.want.Known, f.got.Known, "%s known", f.name)
				assert.InDelta(t, f.want.Value, f.got.Value, 1e-12, f.name)
			}
			assert.ElementsMatch(t, c.invalid, r.Invalid)
		})
	}
}

// A span that was never started is half a century long: no figure is believed for that.
func TestFiguresOfASpanWithoutAStart(t *testing.T) {
	s := newSpan(t, ptrace.SpanKindServer, "llm_request", with(v1, attrs{"gen_ai.latency.time_to_first_token": 9e8}))
	s.SetStartTimestamp(0)
	s.SetEndTimestamp(1_700_000_000_000_000_000)
	r := mustRead(t, s)
	assert.Equal(t, []string{"ttft"}, r.Invalid)

	s.SetStartTimestamp(2_000_000_000_000_000_000) // after its end
	assert.ElementsMatch(t, []string{"e2e", "ttft", "queue", "prefill", "decode"}, mustRead(t, s).Invalid)
}

func TestTokenCounts(t *testing.T) {
	tok := request.Some[int64]
	none := request.Tokens{}
	for _, c := range []struct {
		name          string
		a             attrs
		input, output request.Tokens
		cached        request.Tokens
		invalid       []string
	}{
		{"current names win over old ones", attrs{"gen_ai.usage.input_tokens": 1, "gen_ai.usage.prompt_tokens": 9}, tok(1), none, none, nil},
		{"old names alone", attrs{"gen_ai.usage.prompt_tokens": 9, "gen_ai.usage.completion_tokens": 8}, tok(9), tok(8), none, nil},
		{"zero is known", attrs{"gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0}, tok(0), tok(0), none, nil},
		{"a whole double is a count, as JavaScript sends it", attrs{"gen_ai.usage.input_tokens": 7.0}, tok(7), none, none, nil},
		{"half a token", attrs{"gen_ai.usage.input_tokens": 7.5}, none, none, none, []string{"input_tokens"}},
		{"negative", attrs{"gen_ai.usage.output_tokens": -1}, none, none, none, []string{"output_tokens"}},
		{"NaN", attrs{"gen_ai.usage.output_tokens": math.NaN()}, none, none, none, []string{"output_tokens"}},
		{"the largest that is believed", attrs{"gen_ai.usage.input_tokens": int64(1 << 32)}, tok(1 << 32), none, none, nil},
		{"larger than any context", attrs{"gen_ai.usage.input_tokens": int64(1<<32 + 1)}, none, none, none, []string{"input_tokens"}},
		{"largest int", attrs{"gen_ai.usage.input_tokens": int64(math.MaxInt64)}, none, none, none, []string{"input_tokens"}},
		{"infinity", attrs{"gen_ai.usage.input_tokens": math.Inf(1)}, none, none, none, []string{"input_tokens"}},
		{"a string is no count", attrs{"gen_ai.usage.input_tokens": "7"}, none, none, none, []string{"input_tokens"}},
		{"a part of its whole", attrs{"gen_ai.usage.input_tokens": 7, "gen_ai.usage.cache_read.input_tokens": 7}, tok(7), none, tok(7), nil},
		{"a part larger than its whole", attrs{"gen_ai.usage.input_tokens": 7, "gen_ai.usage.cache_read.input_tokens": 8}, tok(7), none, none, []string{"cache_read.input_tokens"}},
		{"reasoning larger than the output", attrs{"gen_ai.usage.output_tokens": 7, "gen_ai.usage.reasoning.output_tokens": 8}, none, tok(7), none, []string{"reasoning.output_tokens"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mustRead(t, newSpan(t, ptrace.SpanKindClient, "chat", with(attrs{"gen_ai.operation.name": "chat"}, c.a)))
			assert.Equal(t, c.input, r.InputTokens)
			assert.Equal(t, c.output, r.OutputTokens)
			assert.Equal(t, c.cached, r.CachedTokens)
			assert.ElementsMatch(t, c.invalid, r.Invalid)
		})
	}
}

func TestStatus(t *testing.T) {
	const unset, ok, failed = ptrace.StatusCodeUnset, ptrace.StatusCodeOk, ptrace.StatusCodeError
	for _, c := range []struct {
		name      string
		code      ptrace.StatusCode
		a         attrs
		want      request.Status
		errorType string
	}{
		{"nothing said", unset, attrs{}, request.StatusUnknown, ""},
		{"span ok", ok, attrs{}, request.StatusOK, ""},
		{"span error", failed, attrs{}, request.StatusError, "_OTHER"},
		{"span error with its type", failed, attrs{"error.type": "TimeoutError"}, request.StatusError, "TimeoutError"},
		{"an error type alone", unset, attrs{"error.type": "TimeoutError"}, request.StatusError, "TimeoutError"},
		{"an error type that is text", failed, attrs{"error.type": "my prompt is secret"}, request.StatusError, "_OTHER"},
		{"an error type of the wrong type", unset, attrs{"error.type": 7}, request.StatusError, "_OTHER"},
		{"a finish reason", unset, attrs{"gen_ai.response.finish_reasons": []any{"stop"}}, request.StatusOK, ""},
		{"a finish reason as JSON", unset, attrs{"gen_ai.response.finish_reasons": `["length"]`}, request.StatusOK, ""},
		{"finish reason error", unset, attrs{"gen_ai.response.finish_reasons": []any{"error"}}, request.StatusError, "_OTHER"},
		{"aborted", unset, attrs{"gen_ai.response.finish_reasons": `["abort"]`}, request.StatusCancelled, ""},
		{"output without a reason", unset, attrs{"gen_ai.usage.output_tokens": 3}, request.StatusOK, ""},
		{"no output", unset, attrs{"gen_ai.usage.output_tokens": 0}, request.StatusUnknown, ""},
		{"HTTP 200", unset, attrs{"http.response.status_code": 200}, request.StatusOK, ""},
		{"HTTP 404 alone says nothing of a failure", unset, attrs{"http.response.status_code": 404}, request.StatusUnknown, ""},
		{"HTTP 400 of a span that failed", failed, attrs{"http.response.status_code": 400}, request.StatusError, "400"},
		{"HTTP 503", unset, attrs{"http.response.status_code": 503}, request.StatusError, "503"},
		{"HTTP 503 as a string", unset, attrs{"status_code": "503"}, request.StatusError, "503"},
		{"HTTP 499", failed, attrs{"http.response.status_code": 499}, request.StatusCancelled, ""},
		{"HTTP 9999", unset, attrs{"http.response.status_code": 9999}, request.StatusUnknown, ""},
		{"HTTP 200.5", unset, attrs{"http.response.status_code": 200.5}, request.StatusUnknown, ""},
		{"HTTP of the wrong type", unset, attrs{"http.response.status_code": true}, request.StatusUnknown, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSpan(t, ptrace.SpanKindClient, "chat", with(attrs{"gen_ai.operation.name": "chat"}, c.a))
			s.Status().SetCode(c.code)
			r := mustRead(t, s)
			assert.Equal(t, c.want.String(), r.Status.String())
			assert.Equal(t, c.errorType, r.ErrorType)
		})
	}
}

func TestVLLM(t *testing.T) {
	t.Run("the engine that names no model has its resource's", func(t *testing.T) {
		r := mustRead(t, newSpan(t, ptrace.SpanKindServer, "llm_request", v1))
		assert.Equal(t, "from-resource", r.Model)
		assert.Equal(t, "chat", r.Operation)
		assert.Equal(t, "vllm", r.Provider)
		assert.Equal(t, request.StatusOK, r.Status)
		assert.False(t, r.OwnStages || r.NoFirstToken || r.Beam || r.LayerOnly)
	})
	t.Run("a beam by its id", func(t *testing.T) {
		r := mustRead(t, newSpan(t, ptrace.SpanKindServer, "llm_request", with(v1, attrs{
			"gen_ai.request.id": "chatcmpl-a8-b4f20bac359a5670-beam-0", "gen_ai.usage.completion_tokens": 1,
		})))
		assert.True(t, r.Beam)
		assert.Equal(t, "chat", r.Operation)
		assert.False(t, mustRead(t, newSpan(t, ptrace.SpanKindServer, "llm_request", with(v1, attrs{
			"gen_ai.request.id": "chatcmpl-a8-b4f20bac359a5670-beam-0",
		}))).Beam, "46 tokens are not one step")
		assert.False(t, mustRead(t, newSpan(t, ptrace.SpanKindServer, "llm_request", with(v1, attrs{
			"gen_ai.request.id": "chatcmpl-laser-beam-0", "gen_ai.usage.completion_tokens": 1,
		}))).Beam, "an id that a caller chose")
	})
	t.Run("failed before its first output", func(t *testing.T) {
		r := mustRead(t, newSpan(t, ptrace.SpanKindServer, "llm_request", with(v1, attrs{
			"gen_ai.latency.time_to_first_token": 0.0, "gen_ai.usage.completion_tokens": 0,
		})))
		assert.True(t, r.NoFirstToken)
		assert.Equal(t, request.StatusError, r.Status)
		assert.Equal(t, "_OTHER", r.ErrorType)
	})
	t.Run("a model name that is text is not kept", func(t *testing.T) {
		r := mustRead(t, newSpan(t, ptrace.SpanKindServer, "llm_request", with(v1, attrs{"gen_ai.request.model": "ignore all previous instructions"})))
		assert.Equal(t, OtherModel, r.Model)
	})
}

func TestSGLang(t *testing.T) {
	r := mustRead(t, newSpan(t, ptrace.SpanKindInternal, " Req f4305840", sglang))
	assert.Equal(t, "sglang", r.Provider)
	assert.Equal(t, "tiny", r.Model, "the model is in the response's name only")
	assert.Equal(t, request.Some(int64(20)), r.CachedTokens)
	assert.True(t, r.OwnStages && r.PrefillHasQueue)
	assert.False(t, r.Queue.Known, "the queue is inside the prefill figure")
	assert.InDelta(t, .02, r.Admission.Value, 1e-12)
	assert.Equal(t, "length", r.FinishReason)
}

func TestDynamo(t *testing.T) {
	read := func(t *testing.T, a attrs) request.Request {
		return mustRead(t, newSpan(t, ptrace.SpanKindInternal, "http-request", with(dynamo, a)))
	}
	t.Run("numbers are strings, times milliseconds", func(t *testing.T) {
		r := read(t, nil)
		assert.Equal(t, request.Some(int64(40)), r.InputTokens)
		assert.Equal(t, request.Some(int64(48)), r.OutputTokens)
		assert.Equal(t, request.Some(.0125), r.UserTTFT)
		assert.Equal(t, "tiny", r.Model)
		assert.Equal(t, "chat", r.Operation)
		assert.Equal(t, request.StatusOK, r.Status)
		assert.Empty(t, r.Invalid)
	})
	for name, v := range map[string]any{"text": "many", "negative": "-1", "half": "1.5", "NaN": "NaN", "huge": "1e300", "long": "1000000000000000000000000000000000", "bool": true} {
		t.Run("a token count that is "+name, func(t *testing.T) {
			r := read(t, attrs{"input_tokens": v})
			assert.False(t, r.InputTokens.Known)
			assert.Equal(t, []string{"input_tokens"}, r.Invalid)
		})
	}
	t.Run("a first token after the end", func(t *testing.T) {
		r := read(t, attrs{"ttft_ms": "5000"})
		assert.False(t, r.UserTTFT.Known)
		assert.Equal(t, []string{"user.ttft"}, r.Invalid)
	})
	t.Run("cancelled", func(t *testing.T) {
		assert.Equal(t, request.StatusCancelled, read(t, attrs{"request.outcome": "cancelled"}).Status)
	})
}

func TestLiteLLM(t *testing.T) {
	t.Run("a failed call's zeros are not a usage", func(t *testing.T) {
		s := newSpan(t, ptrace.SpanKindInternal, "litellm_request", attrs{"gen_ai.request.model": "tiny", "gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0})
		s.Status().SetCode(ptrace.StatusCodeError)
		r := mustRead(t, s)
		assert.False(t, r.InputTokens.Known || r.OutputTokens.Known)
		assert.Equal(t, "chat", r.Operation)
	})
	t.Run("a Python function's name is an operation", func(t *testing.T) {
		for name, op := range map[string]string{"acompletion": "chat", "atext_completion": "text_completion", "aembedding": "embeddings", "arerank": "rerank"} {
			r := mustRead(t, newSpan(t, ptrace.SpanKindInternal, "litellm_request", attrs{"gen_ai.operation.name": name}))
			assert.Equal(t, op, r.Operation, name)
		}
	})
}

func TestFirstChunkOfClients(t *testing.T) {
	for _, c := range []struct {
		name    string
		a       attrs
		want    request.Seconds
		invalid []string
	}{
		{"conventions, seconds", attrs{"gen_ai.response.time_to_first_chunk": .25}, request.Some(.25), nil},
		{"conventions, milliseconds in disguise", attrs{"gen_ai.response.time_to_first_chunk": 250.0}, request.Seconds{}, []string{"user.ttft"}},
		{"Vercel, milliseconds", attrs{"ai.response.msToFirstChunk": 250.0}, request.Some(.25), nil},
		{"Vercel, longer than the span", attrs{"ai.response.msToFirstChunk": 25000.0}, request.Seconds{}, []string{"user.ttft"}},
		{"Vercel, negative", attrs{"ai.response.msToFirstChunk": -1.0}, request.Seconds{}, []string{"user.ttft"}},
		{"Strands, milliseconds as an int", attrs{"gen_ai.server.time_to_first_token": 250}, request.Some(.25), nil},
		{"OpenLIT, its whole duration as a double", attrs{"gen_ai.server.time_to_first_token": .99}, request.Seconds{}, nil},
		{"nothing was streamed", attrs{}, request.Seconds{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mustRead(t, newSpan(t, ptrace.SpanKindClient, "chat", with(chat, c.a)))
			assert.Equal(t, c.want, r.UserTTFT)
			assert.Equal(t, c.invalid, r.Invalid)
			assert.False(t, r.TTFT.Known, "the engine's vantage is the engine's")
		})
	}
}

func TestProviderAndModelAreNames(t *testing.T) {
	for _, c := range []struct{ system, want string }{
		{"az.ai.openai", "azure.ai.openai"},
		{"az.ai.inference", "azure.ai.inference"},
		{"vertex_ai", "gcp.vertex_ai"},
		{"gemini", "gcp.gemini"},
		{"xai", "x_ai"},
		{"openai", "openai"},
		{"two words", ""},
	} {
		r := mustRead(t, newSpan(t, ptrace.SpanKindClient, "chat", attrs{"gen_ai.operation.name": "chat", "gen_ai.system": c.system}))
		assert.Equal(t, c.want, r.Provider, c.system)
	}
	long := make([]byte, modelLength+1)
	for i := range long {
		long[i] = 'a'
	}
	for m, want := range map[string]string{
		"": "", "org/Tiny-7B@v1.2:latest+x_y": "org/Tiny-7B@v1.2:latest+x_y", "a b": OtherModel, "naïve": OtherModel, "a\x00b": OtherModel, "a\nb": OtherModel,
		string(long): OtherModel, string(long[:modelLength]): string(long[:modelLength]),
	} {
		assert.Equal(t, want, Model(m), "%q", m)
	}
}

func TestReadResource(t *testing.T) {
	res := pcommon.NewResource()
	assert.NoError(t, res.Attributes().FromRaw(attrs{
		"service.name": "vllm", "service.namespace": "prod", "deployment.environment.name": 7, "gen_ai.response.model": "b", "model_name": "c",
	}))
	assert.Equal(t, &request.Source{Service: "vllm", Namespace: "prod", Model: "b"}, ReadResource(res))
	assert.Equal(t, &request.Source{}, ReadResource(pcommon.NewResource()))
}

func TestOperationOfPath(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/chat/completions": "chat", "/v1/chat/completions/": "chat", "/openai/v1/chat/completions?api-version=1": "chat",
		"/v1/completions": "text_completion", "/v1/embeddings": "embeddings", "/v1/responses": "chat", "/v1/messages": "chat", "/rerank": "rerank", "/v1/score": "rerank",
		"/pooling": "embeddings", "/classify": "embeddings", "/generate": "text_completion", "/generate_stream": "text_completion", "/invocations": "chat", "/v1/audio/transcriptions": "chat",
		"": "", "/": "", "/health": "", "/v1/models": "", "/metrics": "", "/highscore": "", "/v1/chat/completions/cancel": "", "completions": "",
	} {
		assert.Equal(t, want, operationOfPath(path), path)
	}
}

func TestIDs(t *testing.T) {
	for _, c := range []struct{ id, base, prompt, operation string }{
		{"chatcmpl-X", "chatcmpl-X", "chatcmpl-X", "chat"},
		{"0_chatcmpl-X", "chatcmpl-X", "chatcmpl-X", "chat"},
		{"12_cmpl-X-3", "cmpl-X", "cmpl-X-3", "text_completion"},
		{"cmpl-X", "cmpl-X", "cmpl-X", "text_completion"},
		{"cmpl-X-0", "cmpl-X", "cmpl-X-0", "text_completion"},
		{"cmpl-X-Y-12", "cmpl-X-Y", "cmpl-X-Y-12", "text_completion"},
		{"cmpl-X-", "cmpl-X-", "cmpl-X-", "text_completion"},
		{"cmpl-0", "cmpl-0", "cmpl-0", "text_completion"},
		{"cmpl-X-1a", "cmpl-X-1a", "cmpl-X-1a", "text_completion"},
		{"cmpl-", "cmpl-", "cmpl-", "text_completion"},
		{"cmpl--1", "cmpl--1", "cmpl--1", "text_completion"},
		{"embd-X-1", "embd-X", "embd-X-1", "embeddings"},
		{"chatcmpl-X-1", "chatcmpl-X-1", "chatcmpl-X-1", "chat"},
		{"resp_1", "resp_1", "resp_1", "chat"},
		{"chatcmpl-a8-b4f20bac359a5670-beam-0", "chatcmpl-a8", "chatcmpl-a8", "chat"},
		{"cmpl-a8-0-b4f20bac359a5670-beam-12", "cmpl-a8-0", "cmpl-a8-0", "text_completion"},
		{"chatcmpl-x-beam-run-7", "chatcmpl-x-beam-run-7", "chatcmpl-x-beam-run-7", "chat"}, // chosen by a caller
		{"chatcmpl-laser-beam-7", "chatcmpl-laser-beam-7", "chatcmpl-laser-beam-7", "chat"},
		{"chatcmpl-b4f20bac359a5670-beam-", "chatcmpl-b4f20bac359a5670-beam-", "chatcmpl-b4f20bac359a5670-beam-", "chat"},
		{"-b4f20bac359a5670-beam-0", "-b4f20bac359a5670-beam-0", "-b4f20bac359a5670-beam-0", ""},
		{"-beam-0", "-beam-0", "-beam-0", ""},
		{"0_", "", "", ""}, // no id is left
		{"7", "7", "7", ""},
		{"a", "a", "a", ""},
		{"", "", "", ""},
	} {
		base, prompt := BaseID(c.id)
		assert.Equal(t, c.base, base, "base of %q", c.id)
		assert.Equal(t, c.prompt, prompt, "prompt of %q", c.id)
		assert.Equal(t, c.operation, operationOfID(c.id), "operation of %q", c.id)
	}
}
