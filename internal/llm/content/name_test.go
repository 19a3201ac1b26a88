package content

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func TestModelName(t *testing.T) {
	for in, want := range map[string]bool{
		"llama-3-8b": true, "meta-llama/Llama-3.1-8B-Instruct": true, "gpt-4o@2024-08-06": true, "qwen3:free": true, "a+b": true, strings.Repeat("m", 128): true,
		"": false, strings.Repeat("m", 129): false, "two words": false, "名前": false, "a\n": false, "a;b": false, "sk-abcdefghijklmnop": false, "<script>": false, "a%20b": false,
	} {
		got, ok := ModelName(in)
		assert.Equal(t, want, ok, in)
		if want {
			assert.Equal(t, in, got)
		} else {
			assert.Equal(t, OtherName, got)
		}
	}
}

// spanNames: those of real instrumentations stay; those that a caller made up of text do not.
var spanNames = map[string]string{
	"llm_request": "", "chat tiny-llama": "", " Req f4305840": "", "http-request": "", "POST /v1/{path:path} http send": "", "POST": "", "GET /health/liveliness": "", "decode_loop": "",
	"Scheduler [TP 0]  [PP 0] (host:3d1219c7 | pid:24961)": "", "Tokenizer(host:3d1219c7 | pid:24387)": "", "execute_tool get_weather": "", "invoke_agent Strands Agents": "", "ai.generateText.doGenerate": "",
	"RunnableParallel<q,ctx>": "", "Failed Proxy Server Request": "", "raw_gen_ai_request": "", "chat no-such-model": "", "Warmup (CPU)": "", "GET /crash/{x}": "", "auth /v1/chat/completions": "", "step 1": "", "SELECT users": "",
	"POST /v1/projects/{project}/locations/{location}/models/{model}:generateContent": "", "dynamo_kv_router::services::selection::input": "", "embeddings text-embedding-3-small": "", "span": "",
	"chat a model with spaces":                                   "chat _other",
	"chat no-such-模型":                                            "chat _other",
	"embeddings sk-abcdefghijklmnop":                             "embeddings _other",
	"execute_tool 秘密":                                            "execute_tool _other",
	"invoke_agent Agent that knows all about my medical history": "invoke_agent _other",
	"what should I tell my boss tomorrow":                        "_other",
	"Über mich":                                                  "_other",
	"line one\nline two":                                         "_other",
	`he said "no"`:                                               "_other",
	"sk-abcdefghijklmnop":                                        "_other",
	"GET /search?q=my secret":                                    "GET /search",
	"GET /a b c%20d":                                             "GET _other",
	strings.Repeat("x", 129):                                     "_other",
}

func TestSpanNames(t *testing.T) {
	r := redactor(t, Config{})
	for in, want := range spanNames {
		if want == "" {
			want = in
		}
		s := ptrace.NewSpan()
		s.SetName(in)
		var f Facts
		r.Span(ModeStrip, s, &f)
		assert.Equal(t, want, s.Name())
		assert.Equal(t, want != in, f.ByClass[ClassName] == 1, in)
	}
}

func TestNamesThatRepeatATextOfTheirSpan(t *testing.T) {
	r := redactor(t, Config{})
	for name, tc := range map[string]struct {
		text any
		span string
		want string
	}{
		"the text itself":                  {"Kronos", "Kronos", "_other"},
		"a name that contains it":          {"Paris trip", "plan Paris trip", "_other"},
		"the beginning of a long text":     {"Paris trip with my sister in May, all of it", "Paris trip with", "_other"},
		"a text in JSON":                   {`[{"role":"user","content":"Paris trip with my sister"}]`, "Paris trip with", "_other"},
		"a text in a structure":            {[]any{map[string]any{"content": "Paris trip with my sister"}}, "Paris trip with", "_other"},
		"a model that repeats it":          {"wonder-model", "chat wonder-model", "chat _other"},
		"a word of a text is no text":      {"please chat with me about the generation of spans", "generation", "generation"},
		"nor is a tool of the definitions": {`[{"name":"get_weather"}]`, "execute_tool get_weather", "execute_tool get_weather"},
		"nor the model":                    {"which one is gpt-4o you ask", "chat gpt-4o", "chat gpt-4o"},
	} {
		t.Run(name, func(t *testing.T) {
			s := ptrace.NewSpan()
			s.SetName(tc.span)
			s.Events().AppendEmpty().SetName(tc.span)
			assert.NoError(t, s.Attributes().PutEmpty("gen_ai.prompt").FromRaw(tc.text))
			var f Facts
			r.Span(ModeStrip, s, &f)
			assert.Equal(t, tc.want, s.Name())
			assert.Equal(t, tc.want, s.Events().At(0).Name())
		})
	}
	// A model that an attribute names is no text, even where a text is nothing but that model; nor is a tool's name.
	m := ptrace.NewSpan()
	m.SetName("chat tiny-llama")
	m.Attributes().PutStr("gen_ai.request.model", "tiny-llama")
	m.Attributes().PutEmptyMap("llm.invocation_parameters").PutStr("model", "tiny-llama")
	var none Facts
	r.Span(ModeStrip, m, &none)
	assert.Equal(t, "chat tiny-llama", m.Name())
	m.SetName("get_weather")
	m.Attributes().PutEmptySlice("gen_ai.tool.definitions").AppendEmpty().SetEmptyMap().PutStr("name", "get_weather")
	r.Span(ModeStrip, m, &none)
	assert.Equal(t, "get_weather", m.Name())
	// A status message or an event's text counts too.
	s := ptrace.NewSpan()
	s.SetName("Paris trip")
	s.Status().SetMessage("Paris trip")
	s.Events().AppendEmpty().SetName("Rome trip")
	s.Events().At(0).Attributes().PutStr("exception.message", "no Rome trip this year")
	var f Facts
	r.Span(ModeStrip, s, &f)
	assert.Equal(t, "_other", s.Name())
	assert.Equal(t, "_other", s.Events().At(0).Name())
	// The texts of one span do not follow into the next.
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	spans.AppendEmpty().Attributes().PutStr("gen_ai.prompt", "Kronos")
	spans.AppendEmpty().SetName("Kronos")
	r.Traces(td, &f)
	assert.Equal(t, "Kronos", spans.At(1).Name())
}

// TestSearchesAreBounded: many events, each with a name that has to be looked for in a long text. Once the budget of a span is
// spent a name is replaced without looking.
func TestSearchesAreBounded(t *testing.T) {
	s := ptrace.NewSpan()
	s.Attributes().PutStr("gen_ai.prompt", strings.Repeat("lorem ipsum ", 1000))
	for range maxSearches + 10 {
		s.Events().AppendEmpty().SetName("request received")
	}
	var f Facts
	redactor(t, Config{}).Span(ModeStrip, s, &f)
	assert.Equal(t, "request received", s.Events().At(0).Name())
	assert.Equal(t, "_other", s.Events().At(s.Events().Len()-1).Name())
}

func TestContainsNameIsContains(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "a_ "[r.IntN(3)]
		}
		return string(b)
	}
	for range 20_000 {
		text, name := draw(r.IntN(24)), draw(1+r.IntN(5))
		if got := containsName(text, name); got != strings.Contains(text, name) {
			t.Fatalf("%q in %q: %v", name, text, got)
		}
	}
}
