package distribution_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/otelcol-llm/otelcol-llm/internal/child"
)

// Everything that the binary can say is turned on: its log at debug level, its metrics in detail, zpages, and the debug exporter.
const loud = `
exporters: {debug: {verbosity: detailed}}
extensions: {zpages: {endpoint: "%s"}}
connectors: {llmspan: {join_window: 1s}}
service:
  extensions: [health_check, quiet_errors, zpages]
  telemetry:
    logs: {level: debug}
    metrics: {level: detailed}
    traces: {level: detailed, processors: [{batch: {exporter: {console: {}}}}]} # zpages show its own traces only with a processor
  pipelines:
    traces/out: {exporters: [file/traces, debug]}
    metrics: {exporters: [prometheus, debug]}
    metrics/in: {exporters: [prometheus, debug]}
    logs/records: {exporters: [file/records, llmconsole, debug]}
    logs/in: {exporters: [file/logs, debug]}
`

// canaries are texts with a word each that occurs nowhere else.
type canaries struct{ words []string }

func (c *canaries) word() string {
	w := fmt.Sprintf("Cnry%03dQ7f3a91", len(c.words))
	c.words = append(c.words, w)
	return w
}

// text is a sentence with a line break. A single word under a harmless key would be no secret (docs/privacy.md).
func (c *canaries) text() string {
	return "please don't tell anybody about " + c.word() + ",\nit is a secret"
}

// attributes puts a text under keys of every kind, in every type.
func (c *canaries) attributes(a pcommon.Map) {
	for _, k := range []string{
		"gen_ai.prompt", "gen_ai.completion", "gen_ai.input.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions",
		"gen_ai.zeta.said", "input.value", "llm.prompts.0.content", "traceloop.entity.input", "langfuse.observation.output",
		"ai.prompt.messages", "question", "acme.query", "db.query.text", "exception.message", "url.full", "http.request.body",
		"user_agent.original", "gen_ai.request.stop_sequences", "gen_ai.agent.name", "error.type", "gen_ai.response.finish_reasons",
	} {
		a.PutStr(k, c.text())
	}
	a.PutStr("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"`+strings.ReplaceAll(c.text(), "\n", `\n`)+`"}]}]`)
	a.PutEmptyBytes("input").FromRaw([]byte(c.text()))
	a.PutEmptySlice("llm.input_messages").AppendEmpty().SetStr(c.text())
	a.PutEmptyMap("gen_ai.tool.call.arguments").PutEmptyMap("city").PutEmptySlice("names").AppendEmpty().SetEmptyMap().PutStr("value", c.text())
	a.PutStr("http.request.header.authorization", "Bearer "+c.word())
	a.PutStr("api_key", c.word())
}

func (c *canaries) traces() ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	c.attributes(rs.Resource().Attributes())
	rs.Resource().Attributes().PutStr("service.name", "app")
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName(c.text())
	c.attributes(ss.Scope().Attributes())
	s := ss.Spans().AppendEmpty()
	s.SetTraceID(pcommon.TraceID{15: 1})
	s.SetSpanID(pcommon.SpanID{7: 1})
	s.SetName(c.text())
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Unix(1_796_045_488, 0)))
	s.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Unix(1_796_045_490, 0)))
	s.SetKind(ptrace.SpanKindClient)
	s.Status().SetCode(ptrace.StatusCodeError)
	s.Status().SetMessage(c.text())
	s.TraceState().FromRaw("vendor=" + c.word())
	c.attributes(s.Attributes())
	a := s.Attributes()
	a.PutStr("gen_ai.operation.name", "chat")
	a.PutStr("gen_ai.request.model", "llama-3.1-8b")
	a.PutInt("gen_ai.usage.input_tokens", 12)
	a.PutInt("gen_ai.usage.output_tokens", 34)
	e := s.Events().AppendEmpty()
	e.SetName(c.text())
	c.attributes(e.Attributes())
	l := s.Links().AppendEmpty()
	l.TraceState().FromRaw("vendor=" + c.word())
	c.attributes(l.Attributes())
	refused := ss.Spans().AppendEmpty()
	s.CopyTo(refused)
	refused.SetSpanID(pcommon.SpanID{7: 2})
	refused.SetTraceID(pcommon.TraceID{15: 2})
	refused.Attributes().PutStr("gen_ai.request.model", c.text())
	return td
}

func (c *canaries) logs() plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	c.attributes(rl.Resource().Attributes())
	ls := rl.ScopeLogs().AppendEmpty().LogRecords()
	ls.AppendEmpty().Body().SetStr(c.text())
	ls.AppendEmpty().Body().SetEmptyBytes().FromRaw([]byte(c.text()))
	ls.AppendEmpty().Body().SetEmptySlice().AppendEmpty().SetStr(c.text())
	ls.AppendEmpty().Body().SetEmptyMap().PutEmptyMap("message").PutStr("content", c.text())
	for i, l := range ls.All() {
		l.SetEventName([]string{"gen_ai.user.message", "llm.request", c.text(), ""}[i])
		l.SetSeverityText(c.text())
		c.attributes(l.Attributes())
	}
	return ld
}

func (c *canaries) metrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	c.attributes(rm.Resource().Attributes())
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("sdk.calls")
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := sum.DataPoints().AppendEmpty()
	p.SetIntValue(1)
	p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	c.attributes(p.Attributes())
	x := p.Exemplars().AppendEmpty()
	x.SetIntValue(1)
	x.SetTimestamp(p.Timestamp())
	c.attributes(x.FilteredAttributes())
	return md
}

// send posts a body and returns the answer as a whole.
func send(t *testing.T, url, contentType string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", contentType)
	r, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, fmt.Sprint(r.Header, string(b))
}

// noise is what a gRPC client sends instead of a message.
type noise []byte

func (noise) Name() string                  { return "proto" }
func (n noise) Marshal(any) ([]byte, error) { return n, nil }
func (n noise) Unmarshal([]byte, any) error { return nil }

// unreadable are the answers to exports that no receiver can read, each with a text at another place.
func (c *canaries) unreadable(t *testing.T, s *standalone) map[string]string {
	t.Helper()
	answers := map[string]string{}
	span := func(more string) string {
		return `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a",` + more + `}]}]}]}`
	}
	for what, x := range map[string]struct{ signal, body string }{
		"cut":         {"traces", `{"resourceSpans":[{"resource":{"attributes":[{"key":"gen_ai.prompt","value":{"stringValue":"` + c.word()},
		"a time":      {"traces", span(`"startTimeUnixNano":"` + c.word() + `"`)},
		"an id":       {"traces", span(`"traceId":"` + c.word() + `"`)},
		"a kind":      {"traces", span(`"kind":"` + c.word() + `"`)},
		"an integer":  {"traces", span(`"attributes":[{"key":"a","value":{"intValue":"` + c.word() + `"}}]`)},
		"bytes":       {"traces", span(`"attributes":[{"key":"a","value":{"bytesValue":"` + c.word() + `!"}}]`)},
		"no JSON":     {"logs", c.word()},
		"no list":     {"logs", `{"resourceLogs":"` + c.word() + `"}`},
		"a severity":  {"logs", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"severityNumber":"` + c.word() + `"}]}]}]}`},
		"temporality": {"metrics", `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"sum":{"aggregationTemporality":"` + c.word() + `"}}]}]}]}`},
	} {
		code, answer := send(t, s.otlp+"/v1/"+x.signal, "application/json", []byte(x.body))
		assert.Equal(t, http.StatusBadRequest, code, what)
		answers["answer to "+what] = answer
	}
	code, answer := send(t, s.otlp+"/v1/traces", "application/x-protobuf", []byte(c.word()))
	assert.Equal(t, http.StatusBadRequest, code)
	answers["answer to no protobuf"] = answer
	conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	for _, method := range []string{"trace.v1.TraceService", "logs.v1.LogsService", "metrics.v1.MetricsService"} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := conn.Invoke(ctx, "/opentelemetry.proto.collector."+method+"/Export", &struct{}{}, &struct{}{}, grpc.ForceCodec(noise("\n\xff"+c.word())))
		cancel()
		assert.Equal(t, codes.Internal, status.Code(err), "%v", err)
		answers["gRPC's answer of "+method] = fmt.Sprint(err)
	}
	return answers
}

// The shipped configuration, by the binary as it is shipped: no text comes out anywhere, and what must survive does.
func TestNoTextLeavesTheBinary(t *testing.T) {
	for name, sampling := range map[string]string{
		"span by span": "",
		"whole traces": "processors: {llmspan: {sampling: {enabled: true, baseline_ratio: 1, decision_delay: 100ms, answer_delay: 100ms}}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			zpages := "127.0.0.1:" + child.FreePorts(t, 1)[0]
			s := start(t, binary(t), fmt.Sprintf(loud, zpages)+sampling)
			c := &canaries{}
			traces, err := ptraceotlp.NewExportRequestFromTraces(c.traces()).MarshalProto()
			require.NoError(t, err)
			logs, err := plogotlp.NewExportRequestFromLogs(c.logs()).MarshalJSON()
			require.NoError(t, err)
			metrics, err := pmetricotlp.NewExportRequestFromMetrics(c.metrics()).MarshalProto()
			require.NoError(t, err)
			places := map[string]string{}
			for signal, body := range map[string][]byte{"traces": traces, "logs": logs, "metrics": metrics} {
				contentType := "application/x-protobuf"
				if signal == "logs" {
					contentType = "application/json"
				}
				code, answer := send(t, s.otlp+"/v1/"+signal, contentType, body)
				require.Equal(t, http.StatusOK, code, answer)
				places["answer to "+signal] = answer
			}
			for k, v := range c.unreadable(t, s) {
				places[k] = v
			}
			require.Eventually(t, func() bool {
				_, page, err := get(s.metrics)
				return err == nil && sum(page, "llm_requests_total") == 2 && strings.Contains(page, "sdk_calls")
			}, patience, 50*time.Millisecond)
			for place, url := range map[string]string{
				"metrics page": s.metrics, "self-metrics": s.self, "zpages: service": "http://" + zpages + "/debug/servicez",
				"zpages: pipelines": "http://" + zpages + "/debug/pipelinez", "zpages: traces": "http://" + zpages + "/debug/tracez",
			} {
				code, page, err := get(url)
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, code, place)
				places[place] = page
			}
			s.stop(t)
			places["console"], places["log"] = s.stdout.String(), s.Output()
			require.NoError(t, filepath.WalkDir(s.data, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				b, err := os.ReadFile(path)
				places["file "+filepath.Base(path)] = string(b)
				return err
			}))
			require.Greater(t, len(c.words), 200)
			for place, content := range places {
				require.NotEmpty(t, content, place)
				for _, w := range c.words {
					if strings.Contains(content, w) || strings.Contains(content, base64.StdEncoding.EncodeToString([]byte(w))[:16]) {
						t.Errorf("%s is in %s", w, place)
					}
				}
			}
			assert.Contains(t, places["log"], "debug", "the log is at debug level")
			assert.Contains(t, places["log"], "Body: ", "the debug exporter prints records")
			assert.Contains(t, places["console"], " error ", "the console prints the request")
			assert.Contains(t, places["self-metrics"], "otelcol_processor_llmspan_redacted")
			assert.Contains(t, places["self-metrics"], "otelcol_extension_quiet_errors_answers")
			tokens := int64(0)
			for _, r := range s.records(t) {
				tokens += intOf(r.Attributes(), "llm.total_tokens")
			}
			assert.EqualValues(t, 2*(12+34), tokens, "usage survives")
			assert.Contains(t, places["file records.jsonl"], "llama-3.1-8b", "the model survives")
		})
	}
}
