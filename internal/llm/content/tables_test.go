package content

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listedKeys are the keys of testdata/content-keys.tsv; a prefix is instantiated in three ways.
func listedKeys(t *testing.T) (keys []string) {
	b, err := os.ReadFile("testdata/content-keys.tsv")
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		key, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if p, ok := strings.CutSuffix(key, "*"); ok {
			dot := strings.TrimSuffix(p, ".")
			keys = append(keys, dot+".0.content", dot+".anything")
			if p != dot {
				continue
			}
			key = p
		}
		keys = append(keys, key)
	}
	require.Greater(t, len(keys), 300)
	return keys
}

func TestNoKeyIsInTwoTables(t *testing.T) {
	where := map[string]string{}
	add := func(key, table string) {
		if other, ok := where[key]; ok {
			t.Errorf("%s is in %s and in %s", key, other, table)
		}
		where[key] = table
	}
	for c, keys := range contentKeys {
		for _, k := range keys {
			add(k, "content "+c.String())
		}
	}
	for v, keys := range safeKeys {
		for _, k := range keys {
			add(k, "safe "+string(rune('0'+v)))
		}
	}
	seen := map[string]bool{}
	for _, p := range append(append([]prefixRule(nil), contentPrefixes...), safePrefixes...) {
		assert.False(t, seen[p.prefix], "prefix %s is listed twice", p.prefix)
		seen[p.prefix] = true
		assert.True(t, strings.HasSuffix(p.prefix, "."), "%s: a prefix ends where a word ends", p.prefix)
	}
}

// What must survive stays whatever the mode, with values as real sources write them.
var mustSurvive = map[string][]any{
	"gen_ai.usage.input_tokens":                                          {212, "212"},
	"gen_ai.usage.output_tokens":                                         {47},
	"gen_ai.usage.prompt_tokens":                                         {212},
	"gen_ai.usage.cache_read.input_tokens":                               {16},
	"gen_ai.usage.completion_tokens_details.x":                           {3},
	"gen_ai.usage.raw":                                                   {`{"completion_tokens": 24, "prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": null}}`},
	"gen_ai.usage.cost":                                                  {0.25},
	"llm.usage.total_tokens":                                             {57},
	"llm.token_count.prompt":                                             {212},
	"llm.token_count.completion_details.reasoning":                       {9},
	"ai.usage.inputTokens":                                               {92},
	"ai.usage.outputTokenDetails.textTokens":                             {16},
	"mlflow.chat.tokenUsage":                                             {`{"input_tokens": 40, "output_tokens": 17}`},
	"langfuse.observation.usage_details":                                 {`{"input": 40, "output": 17}`},
	"langfuse.observation.completion_start_time":                         {`"2026-11-30T13:08:16.000Z"`},
	"gen_ai.token.type":                                                  {"input"},
	"gen_ai.prompt.name":                                                 {"summarise-v2", "Support answer"},
	"gen_ai.prompt.version":                                              {"3"},
	"gen_ai.output.type":                                                 {"json"},
	"gen_ai.response.finish_reasons":                                     {[]any{"stop", "length"}, `["tool_calls"]`, "stop", "FinishReason.STOP", `["stop", "length"]`},
	"ai.response.finishReason":                                           {"tool-calls"},
	"llm.finish_reason":                                                  {"length"},
	"gen_ai.completion.0.finish_reason":                                  {"stop"},
	"gen_ai.prompt.0.role":                                               {"user"},
	"gen_ai.completion.0.tool_calls.0.name":                              {"get_weather"},
	"gen_ai.completion.0.tool_calls.0.id":                                {"call_1"},
	"llm.input_messages.1.message.role":                                  {"system"},
	"llm.output_messages.0.message.tool_calls.0.tool_call.function.name": {"lookup"},
	"gen_ai.input.messages_ref":                                          {"s3://bucket/prompts/4bf92f3577b34da6.json"},
	"gen_ai.output.messages.ref":                                         {"https://store.example/a/b"},
	"traceloop.prompt.key":                                               {"joke_generator"},
	"traceloop.prompt.version":                                           {"1"},
	"traceloop.prompt.version_hash":                                      {"abc123"},
	"langfuse.observation.prompt.name":                                   {"answer"},
	"langfuse.observation.prompt.version":                                {2},
	"mcp.prompt.name":                                                    {"code-review"},
	"prompt_id":                                                          {"7c9e6679-7425-40de-944b-e07fc1f90ae7"},
	"prompt_length":                                                      {120, "120"},
	"input.mime_type":                                                    {"application/json"},
	"output.mime_type":                                                   {"text/plain"},
	"gen_ai.latency.time_in_queue":                                       {0.0079},
	"gen_ai.latency.e2e":                                                 {0.143},
	"gen_ai.response.time_to_first_chunk":                                {0.043},
	"gen_ai.client.operation.time_to_first_chunk":                        {0.164},
	"gen_ai.server.time_to_first_token":                                  {131},
	"ai.response.msToFirstChunk":                                         {627.3},
	"ttft_ms":                                                            {"23.30"},
	"gen_ai.request.model":                                               {"meta-llama/Llama-3.1-8B-Instruct", "gpt-4o@2024-08-06", "accounts/fireworks/models/qwen3:free"},
	"gen_ai.response.model":                                              {"tiny-llama"},
	"gen_ai.request.id":                                                  {"chatcmpl-a9a4ad541e2afbea"},
	"gen_ai.tool.name":                                                   {"get_weather", "get_weather, lookup"},
	"gen_ai.agent.name":                                                  {"Strands Agents", "helper"},
	"gen_ai.operation.name":                                              {"chat"},
	"gen_ai.provider.name":                                               {"openai", "vllm.chat"},
	"error.type":                                                         {"openai.BadRequestError", "400", "*errors.errorString"},
	"exception.type":                                                     {"java.lang.IllegalStateException", "std::runtime_error"},
	"http.route":                                                         {"/v1/{path:path}"},
	"url.full":                                                           {"http://127.0.0.1:8000/v1/chat/completions"},
	"http.status_code":                                                   {200, "200"},
	"server.address":                                                     {"10.0.0.7", "http://127.0.0.1:8200/v1/", "[::1]"},
	"user.id":                                                            {"u-1234", "Zoë Müller"},
	"session.id":                                                         {"sess 12"},
	"k8s.pod.name":                                                       {"vllm-0"},
	"os.description":                                                     {"Debian GNU/Linux 12 (bookworm)"},
	"host.cpu.model.name":                                                {"AMD EPYC 9654 96-Core Processor"},
	"service.name":                                                       {"поиск", "chat gateway"},
	"team":                                                               {"search"},
	"app.tenant":                                                         {"acme-eu"},
	"asgi.event.type":                                                    {"http.response.body"},
	"llmspan.sampling.reason":                                            {"slow requests"},
	"llmspan.quality":                                                    {[]any{"truncated", "repetition"}},
	"llmspan.decode.duration":                                            {0.12},
	"gen_ai.input.messages.length":                                       {4096},
	"gen_ai.input.messages.roles":                                        {[]any{"system", "user"}},
	"gen_ai.input.messages.types":                                        {[]any{"text"}},
	"gen_ai.input.messages.count":                                        {2},
	"langfuse.observation.input.roles":                                   {[]any{"user"}},
	"http.request.header.content-type":                                   {[]any{"application/json"}},
	"http.request.header.traceparent":                                    {[]any{"00-9182d0b6b207b3640eb34c1042d177aa-00f067aa0ba902b7-01"}},
	"user_agent.original":                                                {"python-requests/2.34.2", "OpenAI/Python 2.54.0"},
	"reason_ms":                                                          {12},
	"vllm.process_kind":                                                  {"engine_core"},
	"logfire.level_num":                                                  {9},
}

func TestMustSurvive(t *testing.T) {
	for _, mode := range []Mode{ModeStrip, ModeHash, ModeTruncate, ModeKeep} {
		r := redactor(t, Config{Mode: mode})
		for key, values := range mustSurvive {
			for _, v := range values {
				var f Facts
				got := redactAttribute(t, r, key, v, &f)
				require.Equal(t, 1, got.Len(), "%s %s=%v: got %v", mode, key, v, got.AsRaw())
				want := attributes(t, map[string]any{key: v})
				assert.Equal(t, want.AsRaw(), got.AsRaw(), "%s %s", mode, key)
				assert.Zero(t, f.Total(), "%s %s=%v counted", mode, key, v)
			}
		}
	}
}

func TestSafeKeysDoNotCarryText(t *testing.T) {
	// Every key of the safe tables, with a sentence where a token is promised.
	r := redactor(t, Config{})
	for v, keys := range safeKeys {
		if v == verbIdentity || v == verbTitle {
			continue // who, not what: see TestIdentity
		}
		for _, key := range keys {
			text := "please tell me\nwhether cnry4711 is the diagnosis of my neighbour, and do not tell anyone else"
			var f Facts
			got := redactAttribute(t, r, key, text, &f)
			for k, out := range got.All() {
				assert.NotContains(t, out.AsString(), "cnry4711", k)
			}
			assert.NotZero(t, f.Total(), key)
		}
	}
	for _, p := range safePrefixes {
		var f Facts
		got := redactAttribute(t, r, p.prefix+"x", "a text\nwith cnry4711", &f)
		for _, out := range got.All() {
			assert.NotContains(t, out.AsString(), "cnry4711", p.prefix)
		}
	}
}

// TestAlmostSafe: values that come close to the shape of a safe key, and keys that come close to a safe key.
func TestAlmostSafe(t *testing.T) {
	for key, v := range map[string]any{
		"gen_ai.response.finish_reasons":         "becauseTheUserWantedToKnowAboutTheDiagnosisOfHim",
		"gen_ai.response.finish_reason":          "stop it now",
		"llm.finish_reason":                      "room-101",
		"gen_ai.input.messages.roles":            []any{"user", "diagnosis"},
		"gen_ai.input.messages.types":            "diagnosis",
		"gen_ai.input.messages.length":           "diagnosis",
		"traceloop.association.properties.role":  "diagnosis",
		"gen_ai.tool.call.arguments.type":        "diagnosis",
		"gen_ai.prompt.0.arguments.role":         "diagnosis",
		"gen_ai.prompt.0.name":                   "diagnosis",
		"gen_ai.prompt.0.role":                   "Diagnosis",
		"gen_ai.usage.raw":                       `{"prompt_tokens": "diagnosis"}`,
		"gen_ai.usage.details":                   `{"the diagnosis": 1}`,
		"gen_ai.usage.input_tokens":              "diagnosis",
		"langfuse.observation.usage_details":     `{"input": 1} diagnosis`,
		"mlflow.spanType":                        `"a diagnosis"`,
		"gen_ai.latency.e2e":                     []any{"diagnosis"},
		"llmspan.note":                           "two lines\nof diagnosis",
		"user.question":                          "diagnosis",
		"gen_ai.request.encoding_formats":        []any{"float", map[string]any{"x": "diagnosis"}},
		"app.greeting_count":                     "this is a diagnosis",
		"process.environment_variable.DIAGNOSIS": "diagnosis",
		"k8s.pod.annotation.note":                `{"diagnosis":1}`,
		"container.command_args":                 []any{"diagnosis"},
		"service.name":                           "diagnosis of what ails my neighbour and his dog",
	} {
		var f Facts
		got := redactAttribute(t, redactor(t, Config{}), key, v, &f)
		for k, out := range got.All() {
			if k != key+lengthSuffix {
				assert.NotContains(t, strings.ToLower(out.AsString()), "diagnosis", k)
			}
		}
		assert.EqualValues(t, 1, f.Total(), key)
	}
}
