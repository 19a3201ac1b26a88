package redaction

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const canary = "cnry4711 the secret"

// cases are places and forms of a text in a request.
var cases = []struct {
	name string
	set  func(td ptrace.Traces, ld plog.Logs)
}{
	{"span attribute `gen_ai.input.messages`: text, JSON, map or slice", func(td ptrace.Traces, _ plog.Logs) {
		span(td).Attributes().PutEmptySlice("gen_ai.input.messages").AppendEmpty().SetEmptyMap().PutStr("content", canary)
	}},
	{"span attribute of another framework (`langfuse.observation.input`)", attr("langfuse.observation.input")},
	{"span attribute of another framework (`mlflow.spanInputs`)", attr("mlflow.spanInputs")},
	{"span attribute of another framework (`gcp.vertex.agent.llm_request`)", attr("gcp.vertex.agent.llm_request")},
	{"LiteLLM's raw request (`llm.openai.tools`)", attr("llm.openai.tools")},
	{"stop sequences (`gen_ai.request.stop_sequences`)", attr("gen_ai.request.stop_sequences")},
	{"a key nobody knows (`gen_ai.zeta.said`)", attr("gen_ai.zeta.said")},
	{"a bare key (`question`)", attr("question")},
	{"database query (`db.query.text`)", attr("db.query.text")},
	{"query of a URL (`url.full`)", func(td ptrace.Traces, _ plog.Logs) {
		span(td).Attributes().PutStr("url.full", "https://h.example/s?q=cnry4711")
	}},
	{"model name that is none (`gen_ai.request.model`)", attr("gen_ai.request.model")},
	{"authorization header (`http.request.header.authorization`)", func(td ptrace.Traces, _ plog.Logs) {
		span(td).Attributes().PutStr("http.request.header.authorization", "Bearer cnry4711cnry4711")
	}},
	{"span name", func(td ptrace.Traces, _ plog.Logs) { span(td).SetName("please tell me about " + canary) }},
	{"status message of an error", func(td ptrace.Traces, _ plog.Logs) {
		span(td).Status().SetCode(ptrace.StatusCodeError)
		span(td).Status().SetMessage(canary)
	}},
	{"status message without error code", func(td ptrace.Traces, _ plog.Logs) { span(td).Status().SetMessage(canary) }},
	{"event attribute `gen_ai.prompt`", func(td ptrace.Traces, _ plog.Logs) {
		span(td).Events().AppendEmpty().Attributes().PutStr("gen_ai.prompt", canary)
	}},
	{"event attribute nobody knows", func(td ptrace.Traces, _ plog.Logs) {
		span(td).Events().AppendEmpty().Attributes().PutStr("said", canary)
	}},
	{"event name", func(td ptrace.Traces, _ plog.Logs) {
		span(td).Events().AppendEmpty().SetName("please tell me about " + canary)
	}},
	{"link attribute", func(td ptrace.Traces, _ plog.Logs) {
		span(td).Links().AppendEmpty().Attributes().PutStr("gen_ai.prompt", canary)
	}},
	{"trace state", func(td ptrace.Traces, _ plog.Logs) { span(td).TraceState().FromRaw("chat=cnry4711") }},
	{"resource attribute `process.command_args`", func(td ptrace.Traces, _ plog.Logs) {
		td.ResourceSpans().At(0).Resource().Attributes().PutEmptySlice("process.command_args").AppendEmpty().SetStr(canary)
	}},
	{"scope name", func(td ptrace.Traces, _ plog.Logs) {
		td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().SetName("please tell me about " + canary)
	}},
	{"log body of a `gen_ai.*` event", func(_ ptrace.Traces, ld plog.Logs) {
		record(ld).SetEventName("gen_ai.user.message")
		record(ld).Body().SetEmptyMap().PutStr("content", canary)
	}},
	{"log body of another event", func(_ ptrace.Traces, ld plog.Logs) { record(ld).Body().SetStr(canary) }},
	{"log attribute `message.content`", func(_ ptrace.Traces, ld plog.Logs) { record(ld).Attributes().PutStr("message.content", canary) }},
	{"log attribute `arguments`", func(_ ptrace.Traces, ld plog.Logs) { record(ld).Attributes().PutStr("arguments", canary) }},
	{"log event name", func(_ ptrace.Traces, ld plog.Logs) { record(ld).SetEventName("please tell me about " + canary) }},
}

func attr(key string) func(ptrace.Traces, plog.Logs) {
	return func(td ptrace.Traces, _ plog.Logs) { span(td).Attributes().PutStr(key, canary) }
}

func span(td ptrace.Traces) ptrace.Span {
	return td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
}

func record(ld plog.Logs) plog.LogRecord {
	return ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
}

func export(t testing.TB, td ptrace.Traces, ld plog.Logs) []byte {
	a, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	b, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	require.NoError(t, err)
	return append(a, b...)
}

// TestSideBySide prints what leaks where. llmspan must leak nothing; that the stock configuration leaks somewhere shows that
// the search works.
func TestSideBySide(t *testing.T) {
	var out strings.Builder
	fmt.Fprintln(&out, "| place | transform + redaction | llmspan |\n| --- | --- | --- |")
	leaked := map[string]int{}
	for _, c := range cases {
		fmt.Fprintf(&out, "| %s |", c.name)
		for _, s := range systems(t) {
			td, ld := ptrace.NewTraces(), plog.NewLogs()
			td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("chat m")
			ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			c.set(td, ld)
			require.Contains(t, string(export(t, td, ld)), "cnry4711")
			s.traces(td)
			s.logs(ld)
			if bytes.Contains(export(t, td, ld), []byte("cnry4711")) {
				leaked[s.name]++
				fmt.Fprint(&out, " **out** |")
			} else {
				fmt.Fprint(&out, " held |")
			}
		}
		fmt.Fprintln(&out)
	}
	fmt.Fprintf(&out, "| places with text out | %d of %d | %d of %d |\n", leaked["transform + redaction"], len(cases), leaked["llmspan"], len(cases))

	texts := map[string]int{}
	total := 0
	files, err := filepath.Glob("../../llm/content/testdata/recordings/*.jsonl")
	require.NoError(t, err)
	if more := os.Getenv("OTELCOL_LLM_SHARED"); more != "" {
		files, err = filepath.Glob(filepath.Join(more, "corpus/captured/sdk/*.jsonl"))
		require.NoError(t, err)
	}
	require.NotEmpty(t, files)
	used := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		if strings.Contains(f, ".metrics.") {
			continue // the stock pipeline has nothing for metrics
		}
		used++
		total += len(markers(b))
		for _, s := range systems(t) {
			var after []byte
			for line := range bytes.Lines(b) {
				td, ld := ptrace.NewTraces(), plog.NewLogs()
				if strings.Contains(f, ".traces.") {
					td, err = (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
				} else {
					ld, err = (&plog.JSONUnmarshaler{}).UnmarshalLogs(line)
				}
				require.NoError(t, err)
				s.traces(td)
				s.logs(ld)
				after = append(after, export(t, td, ld)...)
			}
			texts[s.name] += len(markers(after))
		}
	}
	fmt.Fprintf(&out, "| recorded texts out, of %d in %d recordings of SDKs | %d | %d |\n", total, used, texts["transform + redaction"], texts["llmspan"])
	t.Log("\n" + out.String())
	assert.Zero(t, leaked["llmspan"])
	assert.Zero(t, texts["llmspan"])
	assert.Positive(t, leaked["transform + redaction"])
}

var marker = regexp.MustCompile(`CANARY-[A-Za-z0-9-]+-(001|002|004|005|006|009|010|011|013|014|016|017|018|019|020|021|022|023|024|025|027|028|029)`)

func markers(b []byte) (out []string) {
	for _, m := range marker.FindAllString(string(b), -1) {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// BenchmarkSpan is the cost of one span of an SDK with size bytes of messages, batches of 64 spans as they arrive.
func BenchmarkSpan(b *testing.B) {
	for _, size := range []int{0, 4 << 10, 100 << 10} {
		orig := ptrace.NewTraces()
		ss := orig.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
		for range 64 {
			clientSpan(ss.Spans().AppendEmpty(), size)
		}
		for _, s := range systems(b) {
			b.Run(fmt.Sprintf("%s/%dKB", strings.ReplaceAll(s.name, " ", ""), size>>10), func(b *testing.B) {
				td := ptrace.NewTraces()
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					orig.CopyTo(td)
					b.StartTimer()
					s.traces(td)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/span")
			})
		}
	}
}

func clientSpan(s ptrace.Span, size int) {
	s.SetName("chat llama-3-8b")
	a := s.Attributes()
	put := func(kv ...string) {
		for i := 0; i < len(kv); i += 2 {
			a.PutStr(kv[i], kv[i+1])
		}
	}
	put("gen_ai.operation.name", "chat", "gen_ai.request.model", "llama-3-8b", "gen_ai.response.model", "llama-3-8b", "gen_ai.provider.name", "openai", "server.address", "10.0.0.7", "gen_ai.response.id", "chatcmpl-a9a4ad541e2afbea")
	a.PutInt("server.port", 8000)
	a.PutInt("gen_ai.usage.input_tokens", 212)
	a.PutInt("gen_ai.usage.output_tokens", 47)
	finish(a)
	if size > 0 {
		put("gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"`+strings.Repeat(`Zusammenfassung: \u673a\u5bc6 the quick brown fox, \"quoted\". `, size/63)+`"}]}]`,
			"gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"Gern."}],"finish_reason":"stop"}]`)
	}
}

func finish(a pcommon.Map) {
	a.PutEmptySlice("gen_ai.response.finish_reasons").AppendEmpty().SetStr("stop")
}
