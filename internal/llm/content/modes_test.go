package content

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const chat = `[{"role":"system","parts":[{"type":"text","content":"Be brief."}]},{"role":"user","parts":[{"type":"text","content":"\u673a\u5bc6?"},{"type":"uri","uri":"x"}]},{"role":"wizard"},{"role":"user","content":"says \"role\":\"tool\""}]`

func TestStripLeavesMeasures(t *testing.T) {
	for name, tc := range map[string]struct {
		key   string
		value any
		want  map[string]any
	}{
		"the characters of a text": {"gen_ai.prompt", "Füße 机密", map[string]any{"gen_ai.prompt.length": int64(7)}},
		"roles, types and the number of messages in JSON, from closed sets": {"gen_ai.input.messages", chat, map[string]any{
			"gen_ai.input.messages.length": int64(len(chat)), "gen_ai.input.messages.count": int64(3),
			"gen_ai.input.messages.roles": []any{"system", "user", "user"}, "gen_ai.input.messages.types": []any{"text", "uri"},
		}},
		"the same of structured messages": {"gen_ai.output.messages", []any{map[string]any{"role": "assistant", "parts": []any{map[string]any{"type": "text", "content": "ja"}}}}, map[string]any{
			"gen_ai.output.messages.length": int64(len("assistanttextja")), "gen_ai.output.messages.count": int64(1),
			"gen_ai.output.messages.roles": []any{"assistant"}, "gen_ai.output.messages.types": []any{"text"},
		}},
		"flattened messages keep their skeleton": {"llm.input_messages.0.message.content", "hi", map[string]any{"llm.input_messages.0.message.content.length": int64(2)}},
		"no length under keys that users choose": {"traceloop.association.properties.my secret", "hi there", map[string]any{}},
		"nor under keys of metadata":             {"langfuse.metadata.plan", "hi there", map[string]any{}},
		"nothing of a number":                    {"gen_ai.prompt", 7, map[string]any{}},
		"an empty text is no text":               {"gen_ai.prompt", "", map[string]any{"gen_ai.prompt": ""}},
		"bytes have a length":                    {"gen_ai.prompt", []byte("abc"), map[string]any{"gen_ai.prompt.length": int64(3)}},
		"an unknown key":                         {"gen_ai.zeta.said", "hi there", map[string]any{"gen_ai.zeta.said.length": int64(8)}},
		"an unknown key that is a text":          {"please tell me", "hi there", map[string]any{}},
		"a number under a key that is a text":    {"please tell me", 5, map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			var f Facts
			assert.Equal(t, tc.want, redactAttribute(t, redactor(t, Config{}), tc.key, tc.value, &f).AsRaw())
		})
	}
}

// TestSummaryIsBounded: a text with too many quotes is not summed up, rather than by half.
func TestSummaryIsBounded(t *testing.T) {
	message := func(n int, text string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"`+text+`"},`, n), ",") + "]"
	}
	for name, tc := range map[string]struct {
		text  string
		count int64
	}{
		"few messages":         {message(40, "x"), 40},
		"many messages":        {message(1000, "x"), 0},
		"some quotes":          {message(1, strings.Repeat(`\"a\" `, 60)), 1},
		"many quotes":          {message(1, strings.Repeat(`\"a\" `, 70)), 0},
		"backslashes":          {message(2, `\\\\`), 2},
		"a role within a text": {message(2, `\"role\":\"tool\"`), 2},
		"cut in a string":      {`[{"role":"user","content":"abc`, 1},
		"cut in a value":       {`[{"role":"us`, 0},
	} {
		var s summary
		s.json(tc.text)
		assert.Equal(t, tc.count, s.count, name)
		assert.LessOrEqual(t, len(s.roles), maxRoles, name)
	}
}

func TestMeasuresAreBounded(t *testing.T) {
	s := ptrace.NewSpan()
	for i := range 5000 {
		s.Attributes().PutStr("gen_ai.prompt."+itoa(i)+".content", "text")
	}
	var f Facts
	redactor(t, Config{}).Span(ModeStrip, s, &f)
	assert.EqualValues(t, 5000, f.Total())
	assert.Equal(t, maxMeasures, s.Attributes().Len())
}

func itoa(i int) string { b, _ := json.Marshal(i); return string(b) }

// The hash is HMAC-SHA-256 over the text, cut to 128 bits: anybody with the key can compute it.
// python3 -c "import hmac;print(hmac.new(b'0123456789abcdef','Füße'.encode(),'sha256').hexdigest()[:32])"
func TestHashVector(t *testing.T) {
	r := redactor(t, Config{Mode: ModeHash})
	assert.Equal(t, "hmac:6208419c6cef468c338f62d80be972e9", r.hash.text("Füße"))
	other, err := New(Config{Mode: ModeHash, HashKey: []byte("another key of 16+ bytes")})
	require.NoError(t, err)
	assert.NotEqual(t, r.hash.text("Füße"), other.hash.text("Füße"))
}

func TestEqualTextsHaveEqualHashes(t *testing.T) {
	r := redactor(t, Config{Mode: ModeHash})
	h := r.hash.text("机密")
	for name, v := range map[string]any{
		"plain":              "机密",
		"JSON":               `[{"content": "机密"}]`,
		"JSON in ASCII":      `[{"content": "\u673a\u5bc6"}]`,
		"a structured value": []any{map[string]any{"content": "机密"}},
		"JSON text":          `"\u673a\u5bc6"`,
	} {
		var f Facts
		got := redactAttribute(t, r, "gen_ai.prompt", v, &f)
		out, _ := got.Get("gen_ai.prompt")
		assert.Contains(t, out.AsString(), h, name)
	}
}

func TestHashKeepsTheSkeleton(t *testing.T) {
	r := redactor(t, Config{Mode: ModeHash})
	h := r.hash.text
	in := `[{"role":"assistant","finish_reason":"tool_calls","parts":[{"type":"tool_call","id":"call_1","name":"secret name","arguments":{"role":"user","q":1}}],` +
		`"tool_calls":[{"id":"call_2","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"x\"}"}}],"n":null,"custom key":true}]`
	want := []any{map[string]any{
		"role": "assistant", "finish_reason": "tool_calls",
		"parts":      []any{map[string]any{"type": "tool_call", "id": "call_1", "name": h("secret name"), "arguments": map[string]any{"role": h("user"), h("q"): h("1")}}},
		"tool_calls": []any{map[string]any{"id": "call_2", "type": "function", "function": map[string]any{"name": "get_weather", "arguments": h(`{"city":"x"}`)}}},
		h("n"):       nil, h("custom key"): h("true"),
	}}
	var f Facts
	got := redactAttribute(t, r, "gen_ai.output.messages", in, &f)
	out, _ := got.Get("gen_ai.output.messages")
	var doc any
	require.NoError(t, json.Unmarshal([]byte(out.Str()), &doc), out.Str())
	assert.Equal(t, want, doc)
	var raw any
	require.NoError(t, json.Unmarshal([]byte(in), &raw))
	structured := redactAttribute(t, r, "gen_ai.output.messages", raw, &f)
	out, _ = structured.Get("gen_ai.output.messages")
	assert.Equal(t, want, out.Slice().AsRaw(), "a structured value comes out the same")
}

func TestWhatIsNoJSONIsOneText(t *testing.T) {
	r := redactor(t, Config{Mode: ModeHash})
	for _, s := range []string{"[{'role': 'user'}]", `[{"role":"user"`, `{"a":1} {"b":2}`, `{"a":1,}`, `[1 2]`, "[\"a\x01\"]", strings.Repeat("[", 200) + strings.Repeat("]", 200), `{"a":"\ud800x\q"}`, "{}x", `["a",01]`} {
		var f Facts
		got := redactAttribute(t, r, "gen_ai.prompt", s, &f)
		assert.Equal(t, r.hash.text(s), got.AsRaw()["gen_ai.prompt"], s)
	}
}

func TestTruncate(t *testing.T) {
	r := redactor(t, Config{Mode: ModeTruncate, MaxLength: 4})
	for name, tc := range map[string]struct{ in, want any }{
		"cuts at characters":             {"机密文件と情報", "机密文件"},
		"leaves a short text":            {"机密", "机密"},
		"keeps JSON valid":               {`[{"role":"user","content":"a\"b\"c\"d"},12345.5,null,true]`, `[{"role":"user","content":"a\"b\""},12345.5,null,true]`},
		"leaves no data URL":             {"data:image/png;base64,AAAA", "[blob]"},
		"leaves no vector":               {`[0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1,1.1,1.2,1.3,1.4,1.5,1.6]`, `"[blob]"`},
		"leaves no bytes":                {[]byte("abcdefgh"), "[blob]"},
		"cuts every text of a structure": {map[string]any{"content": "abcdefgh", "parts": []any{"abcdefgh"}}, map[string]any{"content": "abcd", "parts": []any{"abcd"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var f Facts
			got := redactAttribute(t, r, "gen_ai.prompt", tc.in, &f)
			assert.Equal(t, tc.want, got.AsRaw()["gen_ai.prompt"])
		})
	}
	long := redactor(t, Config{Mode: ModeTruncate, MaxLength: 40})
	var f Facts
	got := redactAttribute(t, long, "gen_ai.prompt", "my key is sk-abcdefghijklmnopqrstuvwxyz0123456789 and more words follow here", &f)
	assert.Equal(t, "my key is [secret] and more words follow", got.AsRaw()["gen_ai.prompt"], "a credential is not cut into a shorter one")
	assert.True(t, utf8.ValidString(got.AsRaw()["gen_ai.prompt"].(string)))
}

func TestKeepStillRemovesSecrets(t *testing.T) {
	for key, tc := range map[string]struct{ in, want any }{
		"http.request.header.authorization": {[]any{"Bearer abcdefgh12345678"}, nil},
		"http.request.header.x-api-key":     {"abc", nil},
		"http.response.header.set-cookie":   {"a=b", nil},
		"http.request.header.x-user":        {"Zoë", "Zoë"},
		"gen_ai.headers":                    {"{'x-user': 'a', 'Authorization': 'Bearer abc'}", nil},
		"openai.api_key":                    {"abc", nil},
		"myOpenAIApiKey":                    {"abc", nil},
		"db.password":                       {"abc", nil},
		"gen_ai.prompt":                     {"use sk-proj-abcdefghijklmnop, or Bearer abcdefgh12345678!", "use [secret], or Bearer [secret]!"},
		"llm.invocation_parameters":         {`{"model":"m","api_key":"abc def","n":1}`, `{"model":"m","api_key":"[secret]","n":1}`},
		"ai.prompt":                         {map[string]any{"api_key": "x", "messages": []any{map[string]any{"Authorization": "x", "content": "hi hf_abcdefghijklmnop"}}}, map[string]any{"messages": []any{map[string]any{"content": "hi [secret]"}}}},
		"team":                              {"sk-abcdefghijklmnop", "[secret]"},
		"gen_ai.usage.output_tokens":        {3, int64(3)},
		"gen_ai.tool.call.arguments":        {"{'token_count': 3, 'password': 'x y z'}", "{'token_count': 3, 'password': '[secret]'}"},
	} {
		assert.Equal(t, tc.want, one(t, Config{Mode: ModeKeep}, key, tc.in), key)
	}
	// the same whatever is allowed
	for _, key := range []string{"http.request.header.authorization", "openai.api_key", "gen_ai.headers"} {
		assert.Nil(t, one(t, Config{Allow: []string{"*", key}}, key, "Bearer abcdefgh12345678"), key)
		assert.Nil(t, one(t, Config{Overrides: []Override{{Key: key, Mode: ModeKeep}}}, key, "Bearer abcdefgh12345678"), key)
	}
}

func TestIdentity(t *testing.T) {
	r := redactor(t, Config{HashIdentity: true})
	for _, key := range safeKeys[verbIdentity] {
		assert.Equal(t, "Zoë Müller", one(t, Config{}, key, "Zoë Müller"), "kept by default")
		var f Facts
		got := redactAttribute(t, r, key, "Zoë Müller", &f)
		assert.Equal(t, r.hash.text("Zoë Müller"), got.AsRaw()[key], "%s: hashed when asked for", key)
		assert.EqualValues(t, 1, f.ByClass[ClassIdentity])
		assert.Equal(t, r.hash.text("7"), redactAttribute(t, r, key, 7, &f).AsRaw()[key])
		assert.NotContains(t, redactAttribute(t, r, key, []any{"Zoë"}, &f).AsRaw(), "Zoë")
		assert.Nil(t, one(t, Config{}, key, "tell me\nwho I am"), "%s: several lines are no identity", key)
		assert.Nil(t, one(t, Config{}, key, "one two three four five six"), "%s: a sentence is no identity", key)
	}
}

func TestBodiesKeepTheSkeletonOfMessages(t *testing.T) {
	r := redactor(t, Config{})
	body := func(v any) (any, map[string]any) {
		ld := plog.NewLogs()
		lr := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		lr.SetEventName("gen_ai.choice")
		require.NoError(t, lr.Body().FromRaw(v))
		var f Facts
		r.Logs(ld, &f)
		assert.Equal(t, "gen_ai.choice", lr.EventName())
		return lr.Body().AsRaw(), lr.Attributes().AsRaw()
	}
	got, attrs := body(map[string]any{
		"index": 0, "finish_reason": "tool_calls", "content": "geheim", "custom": "x", "role": "assistant",
		"message": map[string]any{"role": "assistant", "content": "geheim", "tool_calls": []any{map[string]any{"id": "call_1", "type": "function", "function": map[string]any{"name": "get_weather", "arguments": `{"city":"x"}`}}}},
	})
	assert.Equal(t, map[string]any{
		"index": int64(0), "finish_reason": "tool_calls", "role": "assistant",
		"message": map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": "call_1", "type": "function", "function": map[string]any{"name": "get_weather"}}}},
	}, got)
	assert.Equal(t, int64(2), attrs["log.body.count"])
	assert.Positive(t, attrs["log.body.length"])
	got, attrs = body("a line of a log")
	assert.Nil(t, got)
	assert.Equal(t, map[string]any{"log.body.length": int64(15)}, attrs)
	got, _ = body([]byte("bytes"))
	assert.Nil(t, got)
	got, _ = body([]any{"x", []any{"y"}, map[string]any{"z": 1}})
	assert.Empty(t, got)
}

func TestMetricsGetNoMeasures(t *testing.T) {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	p := m.SetEmptySum().DataPoints().AppendEmpty()
	require.NoError(t, p.Attributes().FromRaw(map[string]any{
		"metadata.user_api_key_user_email": "a@example.org", "hidden_params": `{"a":1}`, "gen_ai.request.model": "a model that is none", "gen_ai.token.type": "input", "stream": true,
	}))
	p.Exemplars().AppendEmpty().FilteredAttributes().PutStr("prompt", "hi there")
	var f Facts
	redactor(t, Config{}).Metrics(md, &f)
	assert.Equal(t, map[string]any{"gen_ai.request.model": "_other", "gen_ai.token.type": "input", "stream": true}, p.Attributes().AsRaw())
	assert.Zero(t, p.Exemplars().At(0).FilteredAttributes().Len())
	assert.EqualValues(t, 4, f.Total())
}

func TestNothingIsKeptBetweenWalks(t *testing.T) {
	r := redactor(t, Config{})
	var f Facts
	redactAttribute(t, r, "gen_ai.prompt", "a long text that must not stay in memory", &f)
	for range 8 {
		w, ok := r.walks.Get().(*walk)
		if !ok {
			break
		}
		for _, s := range w.seen[:cap(w.seen)] {
			assert.Empty(t, s)
		}
		assert.Nil(t, w.f)
	}
}
