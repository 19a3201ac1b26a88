package distribution_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/child"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/split"
	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
)

// patience is how long the process may take for one step on a busy machine. stopTime is the promise that the test is about.
const (
	patience = 60 * time.Second
	stopTime = 10 * time.Second
)

// standalone is the built binary with builtin:standalone, or builtin:demo, on ports of its own.
type standalone struct {
	*child.Process // its output is standard error
	data           string
	otlp, metrics  string // base URLs
	health, self   string
	sim            string
	grpc           string       // host:port
	stdout         bytes.Buffer // to be read after the end
}

// start starts the binary, with lines of YAML laid over the configuration. Its ports are free a moment before; when another process takes one in between, it starts again.
func start(t *testing.T, bin string, over ...string) *standalone {
	t.Helper()
	return startConfig(t, bin, "standalone", over)
}

func startConfig(t *testing.T, bin, config string, over []string) *standalone {
	t.Helper()
	for range 3 {
		s, err := tryStart(t, bin, config, over)
		if err == nil {
			return s
		}
		if !strings.Contains(err.Error(), "address already in use") {
			require.NoError(t, err)
		}
	}
	t.Fatal("no free ports in three attempts")
	return nil
}

func tryStart(t *testing.T, bin, config string, over []string) (*standalone, error) {
	ports := child.FreePorts(t, 6)
	s := &standalone{
		data:    filepath.Join(t.TempDir(), "data"),
		otlp:    "http://127.0.0.1:" + ports[1],
		metrics: "http://127.0.0.1:" + ports[2] + "/metrics",
		health:  "http://127.0.0.1:" + ports[3],
		self:    "http://127.0.0.1:" + ports[4] + "/metrics",
		grpc:    "127.0.0.1:" + ports[0],
		sim:     "http://127.0.0.1:" + ports[5],
	}
	args := []string{"--config", "builtin:" + config, "--config", "yaml:connectors::llmspan::metrics::interval: 100ms"}
	for _, o := range over {
		args = append(args, "--config", "yaml:"+o)
	}
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Stdout = t.TempDir(), &s.stdout
	cmd.Env = []string{
		"OTELCOL_LLM_HOST=127.0.0.1", "OTELCOL_LLM_DATA=" + s.data,
		"OTELCOL_LLM_ENGINE=http://127.0.0.1:1/metrics", // whatever else runs on the machine
		"OTELCOL_LLM_GRPC_PORT=" + ports[0], "OTELCOL_LLM_HTTP_PORT=" + ports[1], "OTELCOL_LLM_METRICS_PORT=" + ports[2],
		"OTELCOL_LLM_HEALTH_PORT=" + ports[3], "OTELCOL_LLM_SELF_PORT=" + ports[4], "OTELCOL_LLM_SIM_PORT=" + ports[5],
	}
	s.Process = child.StartCommand(t, "otelcol-llm", cmd, 0)
	return s, s.Until(patience, func() error { return child.Answers(s.health) })
}

func get(url string) (int, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// post sends one export request and says whether it was acknowledged.
func (s *standalone) post(contentType string, body []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.otlp+"/v1/traces", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// stop sends SIGTERM and waits for the end that the project promises.
func (s *standalone) stop(t *testing.T) {
	t.Helper()
	_, err := s.Stop(stopTime)
	require.NoError(t, err)
	assert.NoError(t, s.Wait(stopTime))
}

// lines are the lines of an output file of JSON.
func (s *standalone) lines(t *testing.T, file string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.data, file))
	require.NoError(t, err)
	var out [][]byte
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		out = append(out, bytes.Clone(sc.Bytes()))
	}
	require.NoError(t, sc.Err())
	return out
}

func (s *standalone) records(t *testing.T) []plog.LogRecord {
	t.Helper()
	var out []plog.LogRecord
	for _, l := range s.lines(t, "records.jsonl") {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(l)
		require.NoError(t, err)
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					out = append(out, lr)
				}
			}
		}
	}
	return out
}

// spans are the ids of the spans in traces.jsonl; stages is the number of our own.
func (s *standalone) spans(t *testing.T) (ids map[pcommon.SpanID]int, stages int) {
	t.Helper()
	ids = map[pcommon.SpanID]int{}
	for _, l := range s.lines(t, "traces.jsonl") {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(l)
		require.NoError(t, err)
		for scope, span := range spansOf(td) {
			if scope == split.ScopeName {
				stages++
				continue
			}
			ids[span.SpanID()]++
		}
	}
	return ids, stages
}

func spansOf(td ptrace.Traces) func(func(string, ptrace.Span) bool) {
	return func(yield func(string, ptrace.Span) bool) {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					if !yield(ss.Scope().Name(), span) {
						return
					}
				}
			}
		}
	}
}

// requestLine is one line of the console: time of day, status, model or service, first token.
var requestLine = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d{3} ok +\S+ +ttft `)

// recorded is a recording as one batch.
func recorded(t *testing.T, name string) ptrace.Traces {
	t.Helper()
	all := ptrace.NewTraces()
	batches, err := recordings.Traces(name)
	require.NoError(t, err)
	for _, td := range batches {
		td.ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
	}
	return all
}

// A stranger points an engine at the standalone configuration: recordings go in over OTLP/HTTP, and the same requests come out as metrics,
// records, traces and lines.
func TestStandaloneTurnsTracesIntoMetricsRecordsAndLines(t *testing.T) {
	s := start(t, binary(t), "connectors::llmspan::join_window: 1s") // a beam search is counted when it is over
	// What their clients were told (internal/recordings/truth_test.go). The last recording has a request with n = 2, two prompts in one
	// call and a beam search, so that it has more spans of the engine than requests.
	const requests, sequences, input, output = 6 + 32 + 6, 6 + 32 + 22, 400 + 7074 + 294, 180 + 3200 + 108
	// The gateway's recording comes as one batch, so that its six requests have an ingress, and a return of the gateway's.
	const stageSpans = 5*sequences + 6
	spans := map[pcommon.SpanID]int{}
	for _, td := range []ptrace.Traces{recorded(t, "gateway/vllm-0.32.0-gw-idle"), recorded(t, "vllm/vllm-0.32.0-queue"), recorded(t, "vllm/vllm-0.32.0-api")} {
		for _, span := range spansOf(td) {
			spans[span.SpanID()]++
		}
		body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
		require.NoError(t, err)
		require.NoError(t, s.post("application/x-protobuf", body))
	}

	var page string
	require.Eventually(t, func() bool {
		_, body, err := get(s.metrics)
		page = body
		return err == nil && sum(body, "llm_requests_total") == requests
	}, patience, 50*time.Millisecond, "llm_requests_total at /metrics")
	assert.InDelta(t, input, sum(page, "llm_input_tokens_total"), 0)
	assert.InDelta(t, output, sum(page, "llm_output_tokens_total"), 0)
	assert.InDelta(t, sequences, sum(page, "gen_ai_server_time_to_first_token_seconds_count"), 0)

	s.stop(t)
	var in, out int64
	records := s.records(t)
	for _, lr := range records {
		assert.Equal(t, "llm.request", lr.EventName())
		in += intOf(lr.Attributes(), "gen_ai.usage.input_tokens")
		out += intOf(lr.Attributes(), "gen_ai.usage.output_tokens")
	}
	assert.Len(t, records, requests)
	assert.Equal(t, []int64{input, output}, []int64{in, out}, "tokens of the records")
	ids, stages := s.spans(t)
	assert.Equal(t, spans, ids, "every span that came in went out, once")
	assert.Equal(t, stageSpans, stages, "stage spans")
	lines := len(requestLine.FindAllString(s.stdout.String(), -1))
	assert.Equal(t, requests, lines, "lines on the terminal: %s", &s.stdout)
	assert.Empty(t, withoutMachine(s.Output()), "nothing to warn about")
	info, err := os.Stat(s.data)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "only this user may read the folder")
}

// rare is a request, as OTLP/JSON, with what no recording has: a wait for another engine's cache, and a figure that cannot be true.
const rare = `{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{"name":"vllm"},"spans":[
{"traceId":"01000000000000000000000000000001","spanId":"0200000000000002","name":"llm_request","kind":2,"startTimeUnixNano":"1796045488000000000","endTimeUnixNano":"1796045489000000000","attributes":[
 {"key":"gen_ai.latency.e2e","value":{"doubleValue":0.9}},{"key":"gen_ai.latency.time_to_first_token","value":{"doubleValue":0.4}},{"key":"gen_ai.latency.time_in_queue","value":{"doubleValue":-1}}]},
{"traceId":"01000000000000000000000000000001","spanId":"0300000000000003","parentSpanId":"0200000000000002","name":"vllm_async_kv_transfer","kind":1,"startTimeUnixNano":"1796045488100000000","endTimeUnixNano":"1796045488150000000"}
]}]}]}`

// eventful is an engine that starts and then answers from a warm cache, an answer that was cut off, a call that failed after half an answer,
// and a call of a model without a price.
const eventful = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"vllm-new"}},{"key":"service.instance.id","value":{"stringValue":"1"}}]},
"scopeSpans":[{"scope":{"name":"vllm.tracing.otel"},"spans":[
{"traceId":"01000000000000000000000000000011","spanId":"0200000000000011","name":"Overall Loading","kind":1,"startTimeUnixNano":"1796045400000000000","endTimeUnixNano":"1796045480000000000"},
{"traceId":"01000000000000000000000000000012","spanId":"0200000000000012","name":"llm_request","kind":2,"startTimeUnixNano":"1796045488000000000","endTimeUnixNano":"1796045489000000000","attributes":[
 {"key":"gen_ai.response.model","value":{"stringValue":"priced"}},{"key":"gen_ai.latency.e2e","value":{"doubleValue":0.9}},{"key":"gen_ai.latency.time_to_first_token","value":{"doubleValue":0.4}},
 {"key":"gen_ai.usage.prompt_tokens","value":{"intValue":"65"}},{"key":"gen_ai.usage.completion_tokens","value":{"intValue":"30"}}]}]}]},
{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"app"}}]},"scopeSpans":[{"scope":{"name":"opentelemetry.instrumentation.openai_v2"},"spans":[
{"traceId":"01000000000000000000000000000013","spanId":"0200000000000013","name":"chat priced","kind":3,"startTimeUnixNano":"1796045488000000000","endTimeUnixNano":"1796045489000000000","attributes":[
 {"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.model","value":{"stringValue":"priced"}},{"key":"gen_ai.response.finish_reasons","value":{"arrayValue":{"values":[{"stringValue":"length"}]}}},
 {"key":"gen_ai.usage.input_tokens","value":{"intValue":"65"}},{"key":"gen_ai.usage.cache_read.input_tokens","value":{"intValue":"64"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"30"}}]},
{"traceId":"01000000000000000000000000000014","spanId":"0200000000000014","name":"chat priced","kind":3,"startTimeUnixNano":"1796045488000000000","endTimeUnixNano":"1796045489000000000","status":{"code":2},"attributes":[
 {"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.model","value":{"stringValue":"priced"}},
 {"key":"gen_ai.usage.input_tokens","value":{"intValue":"65"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"30"}}]},
{"traceId":"01000000000000000000000000000015","spanId":"0200000000000015","name":"chat free","kind":3,"startTimeUnixNano":"1796045488000000000","endTimeUnixNano":"1796045489000000000","attributes":[
 {"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.model","value":{"stringValue":"free"}},
 {"key":"gen_ai.usage.input_tokens","value":{"intValue":"9"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"3"}}]}]}]}]}`

// business configures what is off without a configuration: objectives, prices, and the size of a request that is too large.
const business = "processors::llmspan: {slo: [{model: '*', ttft: 500ms, e2e: 10s}], oversize_tokens: 90, " +
	"prices: {models: [{model: priced, input: 0.5, cached_input: 0.05, output: 1.5}]}}"

// withoutMachine leaves out what the receivers say of the machine that the test runs on: no GPU, and no engine at the port that is named.
func withoutMachine(log string) string {
	var out []string
	for line := range strings.SplitSeq(log, "\n") {
		if !strings.Contains(line, "dcgmreceiver/") && !strings.Contains(line, "vllmreceiver/") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// machine are the metrics of engines and GPUs, which have pages of their own.
var machine = regexp.MustCompile(`^(llm_engine|dcgm|hw|nvidia)_`)

// The names on the page that Prometheus scrapes, without and with whole traces, with and without objectives and prices, are those of
// docs/metrics.md: all of them and no others.
func TestStandaloneServesTheMetricsOfTheDocumentation(t *testing.T) {
	printed := map[string]string{}
	recording, err := ptraceotlp.NewExportRequestFromTraces(recorded(t, "gateway/vllm-0.32.0-gw-idle")).MarshalProto()
	require.NoError(t, err)
	const stateless = "processors::llmspan::sampling::enabled: false"
	const whole = "processors::llmspan::sampling: {enabled: true, decision_delay: 100ms, answer_delay: 100ms, idle_timeout: 1s}"
	for _, run := range []struct {
		over     []string
		json     string
		requests float64
	}{
		{[]string{stateless}, rare, 7},
		{[]string{whole}, rare, 7},
		{[]string{stateless, business}, eventful, 10},
	} {
		s := start(t, binary(t), run.over...)
		require.NoError(t, s.post("application/x-protobuf", recording))
		require.NoError(t, s.post("application/json", []byte(run.json)))
		var page string
		require.Eventually(t, func() bool {
			_, body, err := get(s.metrics)
			page = body
			return err == nil && sum(body, "llm_requests_total") == run.requests
		}, patience, 50*time.Millisecond, run.over)
		s.stop(t)
		for line := range strings.SplitSeq(page, "\n") {
			if f := strings.Fields(line); len(f) == 4 && f[1] == "TYPE" && f[2] != "target_info" && !machine.MatchString(f[2]) {
				printed[f[2]] = f[3]
			}
		}
	}

	raw, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(raw), "| in Prometheus |\n|---|---|---|---|---|---|\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n<!-- end -->")
	documented := map[string]string{}
	for line := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(line, " | ")
		documented[strings.Trim(cells[len(cells)-1], "` |")] = cells[1]
	}
	assert.Equal(t, documented, printed)
}

// The lines that README.md shows are what a replay of the samples prints, but for the time of day.
func TestStandalonePrintsTheLinesOfTheReadme(t *testing.T) {
	s := start(t, binary(t))
	samples, err := filepath.Glob(filepath.Join(root, "cmd", "llmreplay", "samples", "*.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, samples)
	for _, file := range samples {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range bytes.SplitSeq(bytes.TrimSpace(raw), []byte("\n")) {
			require.NoError(t, s.post("application/json", line))
		}
	}
	s.stop(t)
	raw, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	_, block, ok := strings.Cut(string(raw), "```text\n15:")
	require.True(t, ok)
	block, _, _ = strings.Cut("15:"+block, "```")
	want := requestLines(strings.ReplaceAll(block, "\n    ", " "))
	require.Len(t, want, 2)
	got := requestLines(s.stdout.String())
	for _, line := range want {
		assert.Contains(t, got, line)
	}
}

// requestLines are lines without their time of day, with single spaces.
func requestLines(text string) (out []string) {
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if f := strings.Fields(line); len(f) > 1 {
			out = append(out, strings.Join(f[1:], " "))
		}
	}
	return out
}

// SIGTERM comes in the middle of traffic: every span that was acknowledged is in the file, and so is the record of every request.
func TestStandaloneLosesNothingThatItAcknowledged(t *testing.T) {
	s := start(t, binary(t))
	source, err := recordings.Traces("vllm/vllm-0.32.0-one")
	require.NoError(t, err)
	var (
		mu     sync.Mutex
		acked  = map[pcommon.SpanID]bool{}
		wg     sync.WaitGroup
		enough = make(chan struct{})
		once   sync.Once
	)
	for worker := range 4 {
		wg.Go(func() {
			for i := range 100_000 {
				td := ptrace.NewTraces()
				source[0].CopyTo(td)
				var ids []pcommon.SpanID
				for _, span := range spansOf(td) {
					id := pcommon.SpanID{byte(worker + 1), byte(i >> 16), byte(i >> 8), byte(i), byte(len(ids) + 1), 1, 1, 1}
					span.SetSpanID(id)
					span.SetTraceID(pcommon.TraceID{byte(worker + 1), byte(i >> 16), byte(i >> 8), byte(i), byte(len(ids) + 1), 15: 1})
					span.SetParentSpanID(pcommon.SpanID{})
					span.Attributes().PutStr("gen_ai.request.id", "chatcmpl-"+id.String()) // else they are sequences of one call
					ids = append(ids, id)
				}
				body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
				if !assert.NoError(t, err) || s.post("application/x-protobuf", body) != nil {
					return // it stops
				}
				mu.Lock()
				for _, id := range ids {
					acked[id] = true
				}
				if len(acked) >= 200 {
					once.Do(func() { close(enough) })
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-enough:
	case <-time.After(patience):
		t.Fatal("200 spans were not acknowledged in time")
	}
	s.stop(t)
	wg.Wait()
	ids, _ := s.spans(t)
	recorded := map[pcommon.SpanID]int{}
	for _, lr := range s.records(t) {
		recorded[lr.SpanID()]++
	}
	for id := range acked {
		assert.Equal(t, 1, ids[id], "span %s was acknowledged", id)
		assert.Equal(t, 1, recorded[id], "record of span %s", id)
	}
	assert.GreaterOrEqual(t, len(acked), 200)
}

// sum adds up the samples of one name on a page of Prometheus' text format.
func sum(page, name string) (total float64) {
	for line := range strings.SplitSeq(page, "\n") {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || !strings.HasPrefix(rest, "{") {
			continue
		}
		v, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err == nil {
			total += v
		}
	}
	return total
}

func intOf(a pcommon.Map, key string) int64 {
	v, ok := a.Get(key)
	if !ok {
		return 0
	}
	return v.Int()
}
