package quality

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/octets"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

const loop = "The answer is that the model is loaded. "

// The answer is found wherever a source puts it.
func TestFindsTheAnswer(t *testing.T) {
	bad := strings.Repeat(loop, 30)
	quoted := strings.TrimSpace(bad)
	for name, put := range map[string]func(ptrace.Span){
		"messages as JSON": func(s ptrace.Span) {
			s.Attributes().PutStr("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"`+quoted+`"}]}]`)
		},
		"messages of a chat API": func(s ptrace.Span) {
			s.Attributes().PutStr("gen_ai.output.messages", `[{"role":"assistant","content":"`+quoted+`"}]`)
		},
		"messages as a structure": func(s ptrace.Span) {
			m := s.Attributes().PutEmptySlice("gen_ai.output.messages").AppendEmpty().SetEmptyMap()
			p := m.PutEmptySlice("parts").AppendEmpty().SetEmptyMap()
			p.PutStr("type", "text")
			p.PutStr("content", bad)
		},
		"OpenLLMetry":         func(s ptrace.Span) { s.Attributes().PutStr("gen_ai.completion.0.content", bad) },
		"a second completion": func(s ptrace.Span) { s.Attributes().PutStr("gen_ai.completion.1.content", bad) },
		"a bare completion":   func(s ptrace.Span) { s.Attributes().PutStr("gen_ai.completion", bad) },
		"OpenInference":       func(s ptrace.Span) { s.Attributes().PutStr("llm.output_messages.0.message.content", bad) },
		"OpenInference, parts": func(s ptrace.Span) {
			s.Attributes().PutStr("llm.output_messages.0.message.contents.0.message_content.text", bad)
		},
		"OpenInference's plain value": func(s ptrace.Span) { s.Attributes().PutStr("output.value", bad) },
		"Vercel":                      func(s ptrace.Span) { s.Attributes().PutStr("ai.response.text", bad) },
		"OpenLIT":                     func(s ptrace.Span) { s.Attributes().PutStr("gen_ai.content.completion", bad) },
		"an event": func(s ptrace.Span) {
			e := s.Events().AppendEmpty()
			e.SetName("gen_ai.choice")
			e.Attributes().PutStr("message", `{"role":"assistant","content":"`+quoted+`"}`)
		},
		"an event of old": func(s ptrace.Span) {
			e := s.Events().AppendEmpty()
			e.SetName("gen_ai.content.completion")
			e.Attributes().PutStr("gen_ai.completion", bad)
		},
	} {
		span := ptrace.NewSpan()
		put(span)
		got := New(Config{Repetition: true}).Assess(span, &request.Request{Layer: request.LayerClient, Operation: "chat", Status: request.StatusOK})
		assert.Equal(t, request.IssueRepetition, got, name)
		got = New(Config{}).Assess(span, &request.Request{Layer: request.LayerClient, Operation: "chat", Status: request.StatusOK})
		assert.Zero(t, got, "%s: repetition is off", name)
	}
}

func TestWhatIsToldWithoutText(t *testing.T) {
	tok := request.Some[int64]
	for _, c := range []struct {
		name string
		r    request.Request
		want request.Flags
	}{
		{"stopped by itself", request.Request{Status: request.StatusOK, FinishReason: "stop", OutputTokens: tok(5)}, 0},
		{"reached its limit", request.Request{Status: request.StatusOK, FinishReason: "length", OutputTokens: tok(5)}, request.IssueTruncated},
		{"Gemini's spelling", request.Request{FinishReason: "MAX_TOKENS", OutputTokens: tok(5)}, request.IssueTruncated},
		{"no token at all", request.Request{Status: request.StatusOK, OutputTokens: tok(0)}, request.IssueEmpty},
		{"nobody counted", request.Request{Status: request.StatusOK}, 0},
		{"a failure has no answer", request.Request{Status: request.StatusError, OutputTokens: tok(0)}, 0},
		{"embeddings generate nothing", request.Request{Operation: "embeddings", Status: request.StatusOK, OutputTokens: tok(0)}, 0},
	} {
		for _, layer := range []request.Layer{request.LayerEngine, request.LayerClient} {
			c.r.Layer = layer
			assert.Equal(t, c.want, New(Config{Repetition: true, Refusal: true}).Assess(ptrace.NewSpan(), &c.r), c.name)
		}
	}
}

func TestToolCallsAreAnAnswer(t *testing.T) {
	a := New(Config{Repetition: true})
	r := &request.Request{Layer: request.LayerClient, Operation: "chat", Status: request.StatusOK}
	span := ptrace.NewSpan()
	span.Attributes().PutStr("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"tool_call","name":"f","arguments":{}}]}]`)
	assert.Zero(t, a.Assess(span, r))
	span.Attributes().PutStr("gen_ai.output.messages", `[{"role":"assistant","content":"","tool_calls":[{"id":"1"}]}]`)
	assert.Zero(t, a.Assess(span, r))
	span.Attributes().PutStr("gen_ai.output.messages", `[{"role":"assistant","content":"","tool_calls":[]}]`)
	assert.Equal(t, request.IssueEmpty, a.Assess(span, r))
}

// Structures that are not what they should be are no answer, and no reason to stop.
func TestSurvivesStrangeStructures(t *testing.T) {
	for name, put := range map[string]func(pcommon.Value){
		"a number":              func(v pcommon.Value) { v.SetInt(7) },
		"a list of numbers":     func(v pcommon.Value) { v.SetEmptySlice().AppendEmpty().SetInt(7) },
		"parts that are a text": func(v pcommon.Value) { v.SetEmptySlice().AppendEmpty().SetEmptyMap().PutStr("parts", "x") },
		"a part without a type": func(v pcommon.Value) {
			v.SetEmptySlice().AppendEmpty().SetEmptyMap().PutEmptySlice("parts").AppendEmpty().SetEmptyMap().PutStr("content", "x")
		},
		"a part that is a text": func(v pcommon.Value) {
			v.SetEmptySlice().AppendEmpty().SetEmptyMap().PutEmptySlice("parts").AppendEmpty().SetStr("x")
		},
		"no JSON": func(v pcommon.Value) { v.SetStr("[{") },
	} {
		span := ptrace.NewSpan()
		put(span.Attributes().PutEmpty("gen_ai.output.messages"))
		assert.Zero(t, New(Config{Repetition: true}).Assess(span, &request.Request{Layer: request.LayerClient}), name)
	}
}

// Of a long text both ends are read, and characters are not cut.
func TestReadsTheEndsOfALongText(t *testing.T) {
	middle := strings.Repeat("中间的文字", 100_000)
	end := strings.Repeat(loop, 2000)
	got := ends(middle + end)
	assert.LessOrEqual(t, len(got), 2*maxEnd+1)
	assert.False(t, strings.ContainsRune(got, '\uFFFD'))
	assert.True(t, strings.HasSuffix(got, loop))
	var words strings.Builder
	for i := range 60_000 {
		words.WriteString(string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + string(rune('a'+i/17576)) + " ")
	}
	require.Greater(t, words.Len(), 2*maxEnd)
	assert.Zero(t, New(Config{Repetition: true}).Text(words.String(), false))
	assert.Equal(t, request.IssueRepetition, New(Config{Repetition: true}).Text(words.String()+end, false), "a loop at the end of a long text")
}

func FuzzText(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(s.Text, s.JSON)
	}
	a := New(Config{Repetition: true, Refusal: true})
	f.Fuzz(func(t *testing.T, text string, wants bool) {
		got := a.Text(text, wants)
		require.Equal(t, got, a.Text(text, wants), "the same text, the same issues")
		require.Zero(t, got&(request.IssueTruncated|request.IssueEmpty), "they are not told by a text")
		span := ptrace.NewSpan()
		span.Attributes().PutStr("gen_ai.output.messages", text)
		span.Attributes().PutStr("gen_ai.completion", text)
		a.Assess(span, &request.Request{Layer: request.LayerClient})
	})
}

// Plain text is judged as it is when one other character stands in it.
func TestPlainTextIsJudgedLikeAnyOther(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool
	}{
		{"a sentence, and another\n\twith a tab", false},
		{strings.Repeat("word ", 20) + "\x01\x02", false},
		{strings.Repeat("word ", 20) + "\x01\x02\x03", true},
		{strings.Repeat("word ", 100) + "\x01\x02\x03", false},
		{strings.Repeat("\x1b[1mbold\x1b[0m ", 9), false},
		{"<pad><pad><pad><pad>", true},
	} {
		assert.Equal(t, c.want, garbled(c.text, true), "%q", c.text)
		assert.Equal(t, c.want, garbled(c.text, false), "%q", c.text)
		assert.Equal(t, c.want, garbled("é"+c.text, false), "%q", "é"+c.text)
	}
}

// The words of plain text are the same words to both ways of splitting, and a run is seen wherever it begins.
func TestPlainTextIsSplitLikeAnyOther(t *testing.T) {
	check := func(text string) {
		if !octets.ASCII(text) {
			return
		}
		var a, b grams
		a.splitASCII(text)
		require.Zero(t, b.split(text))
		require.Len(t, a.units, len(b.units), "%q", text)
		// Equal where the others are.
		other := map[uint64]uint64{}
		for i, u := range a.units {
			if v, ok := other[u]; ok {
				require.Equal(t, v, b.units[i], "%q", text)
			}
			other[u] = b.units[i]
		}
		distinct := map[uint64]bool{}
		for _, u := range b.units {
			distinct[u] = true
		}
		require.Len(t, other, len(distinct), "%q", text)
		require.Equal(t, garbled(text, false), garbled(text, true), "%q", text)
		require.Equal(t, repetitive(text, false), repetitive(text, true), "%q", text)
	}
	for _, s := range samples(t) {
		check(s.Text)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		text := make([]byte, r.IntN(120))
		for i := range text {
			text[i] = "ab \n\x00\x7f~"[r.IntN(7)]
		}
		check(string(text))
	}
	for at := range 100 {
		check(strings.Repeat("a b ", 25)[:at] + strings.Repeat("x", maxRun) + " c")
		check(strings.Repeat("a b ", 25)[:at] + strings.Repeat("x", maxRun-1) + " c")
	}
}

func BenchmarkAssess(b *testing.B) {
	prose := "The scheduler picks the oldest waiting request whose blocks fit into the cache, number "
	words := func(size int) string {
		var s strings.Builder
		for i := 0; s.Len() < size; i++ {
			s.WriteString(prose + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + ". ")
		}
		return s.String()[:size]
	}
	chars := func(size int) string {
		var s strings.Builder
		for i := 0; s.Len() < size; i++ {
			s.WriteRune(rune(0x4E00 + (i*7919)%3000))
		}
		return s.String()
	}
	a := New(Config{Repetition: true, Refusal: true})
	for _, c := range []struct{ name, text string }{
		{"1KB-en", words(1 << 10)}, {"1KB-zh", chars(1 << 10)}, {"100KB-en", words(100 << 10)}, {"100KB-zh", chars(100 << 10)}, {"1MB-en", words(1 << 20)},
	} {
		b.Run(c.name, func(b *testing.B) {
			span := ptrace.NewSpan()
			span.Attributes().PutStr("gen_ai.completion.0.content", c.text)
			r := &request.Request{Layer: request.LayerClient, Operation: "chat", Status: request.StatusOK}
			b.ReportAllocs()
			for b.Loop() {
				a.Assess(span, r)
			}
		})
	}
	b.Run("no-text", func(b *testing.B) {
		span := ptrace.NewSpan()
		for _, k := range []string{"gen_ai.request.id", "gen_ai.latency.e2e", "gen_ai.usage.prompt_tokens", "gen_ai.request.model"} {
			span.Attributes().PutStr(k, "x")
		}
		r := &request.Request{Layer: request.LayerEngine, FinishReason: "stop"}
		b.ReportAllocs()
		for b.Loop() {
			a.Assess(span, r)
		}
	})
}
