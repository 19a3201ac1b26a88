package dialect

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Each span belongs to the dialect and the layer that are named, and "" to none.
func TestReadClaims(t *testing.T) {
	const (
		client, server, internal = ptrace.SpanKindClient, ptrace.SpanKindServer, ptrace.SpanKindInternal
		producer, unspecified    = ptrace.SpanKindProducer, ptrace.SpanKindUnspecified
	)
	openInference := func(kind string) attrs {
		return attrs{"openinference.span.kind": kind, "llm.model_name": "tiny", "llm.token_count.prompt": 5}
	}
	vercel := func(op string) attrs {
		return attrs{"ai.operationId": op, "ai.model.id": "tiny", "ai.usage.promptTokens": 5, "ai.usage.completionTokens": 6}
	}
	for _, c := range []struct {
		name string
		kind ptrace.SpanKind
		span string
		a    attrs
		want string
	}{
		{"vLLM V1", server, "llm_request", v1, "vllm engine"},
		{"vLLM V0", server, "llm_request", v0, "vllm engine"},
		{"vLLM whatever its kind", unspecified, "llm_request", v1, "vllm engine"},
		{"vLLM whose figures are of the wrong type", server, "llm_request", attrs{"gen_ai.latency.e2e": "0.9"}, "vllm engine"},
		{"vLLM span of another name", server, "request", v1, ""},
		{"name of vLLM without any latency", server, "llm_request", attrs{"gen_ai.request.id": "x"}, ""},
		{"name of vLLM with no attribute and no error", server, "llm_request", attrs{}, ""},
		{"name of vLLM on an SDK's span", client, "llm_request", chat, "semconv client"},
		{"vLLM start-up", internal, "Python GC", attrs{}, ""},
		{"vLLM loading", internal, "load_weights", attrs{"code.function": "load_weights", "gen_ai.request.model": "tiny"}, ""},

		{"SGLang", internal, " Req f4305840", sglang, "sglang engine"},
		{"SGLang with a role", internal, "decode Req f4305840", sglang, "sglang engine"},
		{"SGLang n > 1 with output", internal, " Req f4305840", with(sglang, attrs{"gen_ai.request.n": 3}), "sglang engine"},
		{"SGLang warm-up of n > 1", internal, " Req f4305840", with(sglang, attrs{"gen_ai.request.n": 3, "gen_ai.usage.completion_tokens": 0}), ""},
		{"SGLang health check by request id", internal, " Req c05bfd45", with(sglang, attrs{"gen_ai.request.id": "HEALTH_CHECK_1"}), ""},
		{"SGLang health check by rid", internal, " Req HEALTH_C", with(sglang, attrs{"rid": "HEALTH_CHECK_1"}), ""},
		{"SGLang health check that names a model", internal, " Req c05bfd45", with(sglang, attrs{"gen_ai.request.id": "HEALTH_CHECK_1", "gen_ai.request.model": "tiny"}), ""},
		{"SGLang health check below a server's kind", server, " Req c05bfd45", with(sglang, attrs{"gen_ai.request.id": "HEALTH_CHECK_1", "gen_ai.request.model": "tiny"}), ""},
		{"SGLang half-open root", internal, " Req f4305840", attrs{"rid": "f4305840", "module": "sglang::request"}, ""},
		{"SGLang half-open root that names a model", internal, " Req f4305840", attrs{"rid": "f4305840", "gen_ai.request.model": "tiny", "gen_ai.usage.prompt_tokens": 5}, ""},
		{"SGLang thread", internal, "Scheduler [TP 0]  [PP 0] (host:3d | pid:1)", attrs{"pid": 1, "thread_label": "Scheduler"}, ""},
		{"SGLang stage", internal, "prefill_forward", attrs{}, ""},

		{"Dynamo front end", internal, "http-request", dynamo, "dynamo gateway"},
		{"Dynamo unary, without usage", internal, "http-request", attrs{"method": "POST", "uri": "/v1/completions"}, "dynamo gateway"},
		{"Dynamo list of models", internal, "http-request", attrs{"method": "GET", "uri": "/v1/models"}, ""},
		{"Dynamo health", internal, "http-request", attrs{"method": "POST", "uri": "/health"}, ""},
		{"Dynamo inner span", internal, "handle_payload", attrs{"request_id": "r-1", "component": "backend"}, ""},
		{"Dynamo keys on a span of its own router", client, "kv_router.route_request", attrs{"request_id": "r-1", "request.outcome": "success"}, ""},
		{"a server that sells cars by model", server, "GET /cars", attrs{"model": "S", "http.request.method": "GET", "url.path": "/cars"}, "http gateway tentative"},
		{"a server that sells cars without HTTP", server, "cars.Buy", attrs{"model": "S"}, ""},
		{"a job that counts its tokens", internal, "lex", attrs{"model": "flex", "input_tokens": 5}, ""},

		{"LiteLLM v1 request", internal, "litellm_request", with(chat, attrs{"gen_ai.operation.name": "acompletion"}), "litellm gateway"},
		{"LiteLLM v1 raw request", internal, "raw_gen_ai_request", attrs{"gen_ai.request.model": "tiny"}, "litellm gateway"},
		{"LiteLLM v1 proxy request", server, "Received Proxy Server Request", attrs{"gen_ai.request.model": "tiny"}, "litellm gateway"},
		{"LiteLLM v1 proxy request without a model", server, "Received Proxy Server Request", attrs{}, ""},
		{"LiteLLM v1 guardrail", internal, "guardrail", attrs{"guardrail_name": "pii"}, ""},
		{"LiteLLM v2 client", client, "chat tiny", with(chat, attrs{"litellm.provider.model": "openai/tiny"}), "litellm gateway"},
		{"LiteLLM v2 tool", client, "execute_tool", attrs{"gen_ai.operation.name": "execute_tool", "litellm.provider.model": "x"}, ""},

		{"OpenInference LLM", internal, "ChatCompletion", openInference("LLM"), "openinference client"},
		{"OpenInference embedding", internal, "CreateEmbeddings", openInference("EMBEDDING"), "openinference client"},
		{"OpenInference reranker", internal, "rerank", openInference("RERANKER"), "openinference client"},
		{"OpenInference chain repeats totals", internal, "RunnableSequence", openInference("CHAIN"), ""},
		{"OpenInference agent", internal, "agent", openInference("AGENT"), ""},
		{"OpenInference tool", internal, "tool", openInference("TOOL"), ""},
		{"OpenInference kind of the wrong type", internal, "x", attrs{"openinference.span.kind": 7}, ""},

		{"OpenLLMetry old chat", client, "openai.chat", attrs{"llm.request.type": "chat", "gen_ai.request.model": "tiny", "gen_ai.usage.prompt_tokens": 5}, "openllmetry client"},
		{"OpenLLMetry new chat", client, "openai.chat", with(chat, attrs{"llm.request.type": "chat"}), "semconv client"},
		{"OpenLLMetry workflow", internal, "flow.workflow", attrs{"traceloop.span.kind": "workflow", "llm.request.type": "chat"}, ""},
		{"OpenLLMetry task", internal, "step.task", attrs{"traceloop.span.kind": "task", "llm.request.type": "chat"}, ""},
		{"OpenLLMetry agent", internal, "a.agent", attrs{"traceloop.span.kind": "agent", "llm.request.type": "chat"}, ""},
		{"OpenLLMetry tool", internal, "t.tool", attrs{"traceloop.span.kind": "tool", "llm.request.type": "chat"}, ""},
		{"OpenLLMetry workflow that names a model", internal, "flow.workflow", attrs{"traceloop.span.kind": "workflow", "gen_ai.request.model": "tiny", "gen_ai.usage.prompt_tokens": 5}, ""},
		{"OpenLLMetry unknown kind of call", client, "x", attrs{"llm.request.type": "unknown"}, ""},

		{"Vercel doGenerate", internal, "ai.generateText.doGenerate", vercel("ai.generateText.doGenerate"), "vercel client"},
		{"Vercel doStream", internal, "ai.streamText.doStream", vercel("ai.streamText.doStream"), "vercel client"},
		{"Vercel doEmbed", internal, "ai.embed.doEmbed", vercel("ai.embed.doEmbed"), "vercel client"},
		{"Vercel doRerank", internal, "ai.rerank.doRerank", vercel("ai.rerank.doRerank"), "vercel client"},
		{"Vercel wrapper repeats totals", internal, "ai.generateText", vercel("ai.generateText"), ""},
		{"Vercel stream wrapper", internal, "ai.streamText", vercel("ai.streamText"), ""},
		{"Vercel wrapper with convention keys", internal, "ai.generateText", with(vercel("ai.generateText"), attrs{"gen_ai.request.model": "tiny", "gen_ai.usage.input_tokens": 5}), ""},
		{"Vercel tool", internal, "ai.toolCall", attrs{"ai.operationId": "ai.toolCall"}, ""},

		{"conventions client", client, "chat tiny", chat, "semconv client"},
		{"conventions internal", internal, "chat tiny", chat, "semconv client"},
		{"conventions without a kind", unspecified, "chat tiny", chat, "semconv client"},
		{"conventions gateway", server, "chat tiny", chat, "semconv gateway"},
		{"conventions gateway that only names a model", server, "POST", attrs{"gen_ai.request.model": "tiny"}, "semconv gateway"},
		{"conventions producer", producer, "chat tiny", chat, ""},
		{"conventions agent repeats totals", client, "invoke_agent a", with(chat, attrs{"gen_ai.operation.name": "invoke_agent"}), ""},
		{"conventions internal agent", internal, "invoke_agent a", with(chat, attrs{"gen_ai.operation.name": "invoke_agent"}), ""},
		{"conventions agent on a server", server, "invoke_agent a", with(chat, attrs{"gen_ai.operation.name": "invoke_agent"}), ""},
		{"conventions tool", internal, "execute_tool t", with(chat, attrs{"gen_ai.operation.name": "execute_tool"}), ""},
		{"conventions workflow", internal, "invoke_workflow w", with(chat, attrs{"gen_ai.operation.name": "invoke_workflow"}), ""},
		{"conventions retrieval", client, "retrieval", attrs{"gen_ai.operation.name": "retrieval", "gen_ai.request.model": "tiny"}, ""},
		{"conventions create_agent", client, "create_agent", attrs{"gen_ai.operation.name": "create_agent", "gen_ai.request.model": "tiny"}, ""},
		{"conventions unknown operation", client, "x", with(chat, attrs{"gen_ai.operation.name": "summon"}), ""},
		{"a model alone", client, "x", attrs{"gen_ai.request.model": "tiny"}, ""},
		{"a model with a usage", client, "x", attrs{"gen_ai.request.model": "tiny", "gen_ai.usage.input_tokens": 1}, "semconv client"},

		{"HTTP server on an LLM route", server, "POST", httpServer, "http gateway layer"},
		{"HTTP server by its route", server, "POST", attrs{"http.request.method": "POST", "http.route": "/v1/embeddings"}, "http gateway layer"},
		{"HTTP server of old names", server, "POST", attrs{"http.method": "POST", "http.target": "/v1/completions?x=1"}, "http gateway layer"},
		{"HTTP server elsewhere", server, "GET /", attrs{"http.request.method": "GET", "url.path": "/"}, "http gateway tentative"},
		{"HTTP client ends with the headers", client, "POST", httpServer, ""},
		{"HTTP internal", internal, "POST", httpServer, ""},
		{"router written in Rust", internal, "http_request", attrs{"method": "POST", "path": "/v1/completions", "status_code": "200"}, "http gateway layer"},
		{"ASGI send", internal, "POST http send", attrs{"asgi.event.type": "http.response.body"}, ""},
		{"database", client, "SELECT", attrs{"db.system.name": "postgresql"}, ""},
		{"nothing", internal, "", attrs{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, ok := Read(newSpan(t, c.kind, c.span, c.a), &request.Source{})
			got := ""
			if ok {
				got = r.Dialect + " " + r.Layer.String()
				if r.Tentative {
					got += " tentative"
				} else if r.LayerOnly {
					got += " layer"
				}
			}
			assert.Equal(t, c.want, got)
			if !ok {
				assert.Equal(t, request.LayerNone, r.Layer, "a span that is not claimed is no layer")
				assert.Empty(t, r.Dialect)
			}
		})
	}
}

// A request that crashed the engine has a span with its name, status ERROR and nothing else.
func TestReadClaimsACrashedRequest(t *testing.T) {
	s := newSpan(t, ptrace.SpanKindServer, "llm_request", attrs{})
	s.Status().SetCode(ptrace.StatusCodeError)
	r := mustRead(t, s)
	assert.Equal(t, "vllm", r.Dialect)
	assert.Equal(t, request.StatusError, r.Status)
	assert.Equal(t, "_OTHER", r.ErrorType)
	assert.False(t, r.InputTokens.Known || r.OutputTokens.Known || r.TTFT.Known || r.E2E.Known)

	s.Attributes().PutStr("some.key", "x")
	_, ok := Read(s, &request.Source{})
	assert.False(t, ok, "an error with attributes of its own is somebody else's span")
}

func TestKeysHaveOneMeaning(t *testing.T) {
	seen := map[string]spelling{}
	for _, table := range tables {
		for k, s := range table {
			if old, ok := seen[k]; ok {
				assert.Equal(t, old, s, "%s is listed twice with different meanings", k)
			}
			seen[k] = s
			got, ok := known.Get(k)
			assert.True(t, ok && got == s, "%q is not known", k)
		}
	}
	assert.Equal(t, seen, spellings)
}

// Every name has its function: TestReadClaims has a span of each.
func TestEveryDialectIsAsked(t *testing.T) {
	asked := map[string]bool{}
	everyRecordedSpan(t, func(_ string, s ptrace.Span, res *request.Source) {
		if r, ok := Read(s, res); ok {
			asked[r.Dialect] = true
		}
	})
	asked["openllmetry"] = true // the recorded versions write the conventions' keys; TestReadClaims has the old form
	for _, n := range dialectNames[1:] {
		assert.True(t, asked[n], "no recording has a span of %s", n)
	}
	assert.Empty(t, dialectNames[0], "what llmspan wrote is asked first and keeps the name of its source")
	var s source
	s.span = ptrace.NewSpan()
	assert.Equal(t, notMine, recognise(len(dialectNames), &s, &request.Request{}))
}
