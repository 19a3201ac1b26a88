package chains

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// input is one kind of traffic.
type input struct {
	name string
	// spans a trace; every textEvery-th of them has a prompt and an answer of so many bytes, none when it is 0.
	spans, textEvery, prompt, answer int
	traces                           int // a batch
}

var inputs = []input{
	{name: "3 spans, 4 KB + 2 KB of text on each", spans: 3, textEvery: 1, prompt: 4096, answer: 2048, traces: 20},
	{name: "20 spans, text on every third", spans: 20, textEvery: 3, prompt: 4096, answer: 2048, traces: 3},
	{name: "3 spans, no text", spans: 3, traces: 20},
}

// words are pseudo-words that are drawn with a Zipf law, so that text compresses about as English does.
var words = func() []string {
	r := rand.New(rand.NewPCG(7, 7))
	out := make([]string, 6000)
	for i := range out {
		b := make([]byte, 2+r.IntN(9))
		for j := range b {
			b[j] = "etaoinshrdlucmfwypvbgk"[min(r.IntN(22), r.IntN(22))]
		}
		out[i] = string(b)
	}
	return out
}()

func text(r *rand.Rand, n int, mail bool) string {
	var b strings.Builder
	b.WriteString(`[{"role":"user","parts":[{"type":"text","content":"`)
	z := rand.NewZipf(r, 1.1, 8, uint64(len(words)-1))
	for k := 1; b.Len() < n-20; k++ {
		b.WriteString(words[z.Uint64()])
		b.WriteByte(' ')
		if mail && k%150 == 0 {
			fmt.Fprintf(&b, "user%d@example.com ", r.IntN(1000))
		}
	}
	b.WriteString(`"}]}]`)
	return b.String()
}

// batch is one export request of the input: an agent's span, the chat spans and tool spans below it, about 25 attributes each, 2 % errors.
func (in input) batch(r *rand.Rand) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	for k, v := range map[string]string{
		"service.name": "chat-api", "service.namespace": "prod", "service.version": "1.4.2", "k8s.pod.name": "chat-api-6f7d-abcde",
		"k8s.namespace.name": "llm", "deployment.environment.name": "prod", "telemetry.sdk.language": "python",
	} {
		rs.Resource().Attributes().PutStr(k, v)
	}
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("opentelemetry.instrumentation.openai_v2")
	now := time.Now()
	for range in.traces {
		trace := pcommon.TraceID(bytes16(r))
		var root pcommon.SpanID
		for s := range in.spans {
			sp := ss.Spans().AppendEmpty()
			sp.SetTraceID(trace)
			id := bytes16(r)
			sp.SetSpanID(pcommon.SpanID(id[:8]))
			if s == 0 {
				root = sp.SpanID()
			} else {
				sp.SetParentSpanID(root)
			}
			in.fill(r, sp, s, now)
		}
	}
	return td
}

func (in input) fill(r *rand.Rand, sp ptrace.Span, s int, now time.Time) {
	model := []string{"gpt-4o", "llama-3.1-70b-instruct", "qwen2.5-32b", "mistral-large"}[r.IntN(4)]
	operation, name := "chat", "chat "+model
	switch {
	case s == 0:
		operation, name = "invoke_agent", "invoke_agent support"
	case s%3 == 2:
		operation, name = "execute_tool", "execute_tool search"
	}
	sp.SetName(name)
	sp.SetKind(ptrace.SpanKindClient)
	sp.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
	sp.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Duration(200+r.IntN(4000)) * time.Millisecond)))
	a := sp.Attributes()
	a.EnsureCapacity(28)
	if r.IntN(50*in.spans) == 0 {
		sp.Status().SetCode(ptrace.StatusCodeError)
		a.PutStr("error.type", "timeout")
	}
	a.PutStr("gen_ai.operation.name", operation)
	a.PutStr("gen_ai.provider.name", "vllm")
	a.PutStr("gen_ai.request.model", model)
	a.PutStr("gen_ai.response.model", model)
	a.PutStr("gen_ai.response.id", fmt.Sprintf("chatcmpl-%016x", r.Uint64()))
	a.PutEmptySlice("gen_ai.response.finish_reasons").AppendEmpty().SetStr("stop")
	a.PutDouble("gen_ai.request.temperature", 0.7)
	a.PutDouble("gen_ai.request.top_p", 0.95)
	a.PutInt("gen_ai.request.max_tokens", 1024)
	a.PutInt("gen_ai.usage.input_tokens", int64(r.IntN(4000)))
	a.PutInt("gen_ai.usage.output_tokens", int64(r.IntN(1000)))
	a.PutInt("gen_ai.usage.cache_read.input_tokens", int64(r.IntN(1000)))
	a.PutStr("gen_ai.conversation.id", fmt.Sprintf("conv-%d", r.IntN(100000)))
	a.PutStr("gen_ai.agent.name", "support")
	a.PutStr("gen_ai.output.type", "text")
	a.PutStr("server.address", "vllm.llm.svc.cluster.local")
	a.PutInt("server.port", 8000)
	a.PutStr("user.id", fmt.Sprintf("u-%d", r.IntN(10000)))
	a.PutStr("session.id", fmt.Sprintf("s-%d", r.IntN(10000)))
	a.PutStr("tenant", fmt.Sprintf("tenant-%d", r.IntN(20)))
	a.PutBool("gen_ai.request.stream", true)
	a.PutDouble("gen_ai.server.time_to_first_token", r.Float64())
	a.PutStr("http.request.method", "POST")
	a.PutInt("http.response.status_code", 200)
	if in.textEvery > 0 && s%in.textEvery == 0 {
		a.PutStr("gen_ai.input.messages", text(r, in.prompt, true))
		a.PutStr("gen_ai.output.messages", text(r, in.answer, false))
	}
}

func bytes16(r *rand.Rand) (b [16]byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
