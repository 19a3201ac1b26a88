package content

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// engineSpan is the span that vLLM writes for a request: twelve attributes, no text.
func engineSpan(s ptrace.Span) {
	s.SetName("llm_request")
	a := s.Attributes()
	a.PutDouble("gen_ai.latency.time_to_first_token", 0.021)
	a.PutDouble("gen_ai.latency.e2e", 0.143)
	a.PutDouble("gen_ai.latency.time_in_queue", 0.0079)
	a.PutInt("gen_ai.usage.prompt_tokens", 212)
	a.PutInt("gen_ai.usage.completion_tokens", 47)
	a.PutDouble("gen_ai.latency.time_in_model_prefill", 0.008)
	a.PutDouble("gen_ai.latency.time_in_model_decode", 0.12)
	a.PutDouble("gen_ai.latency.time_in_model_inference", 0.131)
	a.PutStr("gen_ai.request.id", "chatcmpl-a9a4ad541e2afbea")
	a.PutDouble("gen_ai.request.temperature", 1)
	a.PutInt("gen_ai.request.max_tokens", 64)
	a.PutInt("gen_ai.request.n", 1)
}

// clientSpan is the span of an instrumented SDK with size bytes of messages, as JSON with escaped non-ASCII.
func clientSpan(s ptrace.Span, size int) {
	s.SetName("chat llama-3-8b")
	a := s.Attributes()
	a.PutStr("gen_ai.operation.name", "chat")
	a.PutStr("gen_ai.request.model", "llama-3-8b")
	a.PutStr("gen_ai.response.model", "llama-3-8b")
	a.PutStr("gen_ai.provider.name", "openai")
	a.PutStr("server.address", "10.0.0.7")
	a.PutInt("server.port", 8000)
	a.PutStr("gen_ai.response.id", "chatcmpl-a9a4ad541e2afbea")
	a.PutInt("gen_ai.usage.input_tokens", 212)
	a.PutInt("gen_ai.usage.output_tokens", 47)
	a.PutEmptySlice("gen_ai.response.finish_reasons").AppendEmpty().SetStr("stop")
	if size > 0 {
		text := strings.Repeat(`Zusammenfassung: \u673a\u5bc6 the quick brown fox, \"quoted\". `, size/63+1)
		a.PutStr("gen_ai.input.messages", fmt.Sprintf(`[{"role":"system","parts":[{"type":"text","content":"You are helpful."}]},{"role":"user","parts":[{"type":"text","content":"%s"}]}]`, text[:size/63*63]))
		a.PutStr("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"Gern."}],"finish_reason":"stop"}]`)
	}
}

func BenchmarkSpan(b *testing.B) {
	for _, mode := range []Mode{ModeStrip, ModeHash, ModeTruncate, ModeKeep} {
		r, err := New(Config{Mode: mode, HashKey: []byte("0123456789abcdef")})
		if err != nil {
			b.Fatal(err)
		}
		for _, shape := range []struct {
			name string
			make func(ptrace.Span)
		}{
			{"engine", engineSpan},
			{"client-0", func(s ptrace.Span) { clientSpan(s, 0) }},
			{"client-4KB", func(s ptrace.Span) { clientSpan(s, 4<<10) }},
			{"client-100KB", func(s ptrace.Span) { clientSpan(s, 100<<10) }},
		} {
			b.Run(string(mode)+"/"+shape.name, func(b *testing.B) {
				orig, s := ptrace.NewSpan(), ptrace.NewSpan()
				shape.make(orig)
				var f Facts
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					orig.CopyTo(s)
					b.StartTimer()
					r.Span(mode, s, &f)
				}
			})
		}
	}
}

// TestNoAllocation: a span without text costs no allocation.
func TestNoAllocation(t *testing.T) {
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(ptrace.Span){"engine": engineSpan, "client": func(s ptrace.Span) { clientSpan(s, 0) }} {
		s := ptrace.NewSpan()
		make(s)
		var f Facts
		if n := testing.AllocsPerRun(100, func() { r.Span(ModeStrip, s, &f) }); n != 0 {
			t.Errorf("%s span: %v allocations, want 0", name, n)
		}
		if f.Total() != 0 {
			t.Errorf("%s span: %d values redacted, want 0", name, f.Total())
		}
	}
}
