//go:build sdk

package sdk

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-llm/otelcol-llm/internal/child"
)

const simModel = "llama-3.1-8b"

// The default rules behind every kind of output that the binary has, its log at debug level and its metrics in detail. The simulator
// sends no spans of its own: the applications are asked.
var configuration = template.Must(template.New("config").Parse(`
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{{.GRPC}}"}, http: {endpoint: "127.0.0.1:{{.HTTP}}", middlewares: [{id: quiet_errors}]}}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 512, spike_limit_mib: 128}
  llmspan: {}
  llmspan/assembled: {sampling: {enabled: true, baseline_ratio: 1, decision_delay: 100ms, idle_timeout: 1s}}
connectors:
  llmspan: {records: all, join_window: 1s, metrics: {interval: 500ms}}
  llmspan/assembled: {records: all, metrics: {interval: 500ms}}
exporters:
  file/traces: {path: "{{.Dir}}/traces.jsonl"}
  file/assembled: {path: "{{.Dir}}/assembled.proto", format: proto}
  file/records: {path: "{{.Dir}}/records.jsonl"}
  file/logs: {path: "{{.Dir}}/logs.jsonl"}
  file/metrics: {path: "{{.Dir}}/metrics.jsonl"}
  otlp_http: {endpoint: "{{.Sink}}", compression: none}
  debug: {verbosity: detailed}
  prometheus: {endpoint: "127.0.0.1:{{.Metrics}}", enable_open_metrics: true, resource_to_telemetry_conversion: {enabled: true}}
  llmconsole: {max_lines_per_second: 0}
extensions:
  llmsim: {rate: 0, server: {endpoint: "127.0.0.1:{{.Simulator}}"}, export: {endpoint: ""}}
  health_check: {endpoint: "127.0.0.1:{{.Health}}"}
  zpages: {endpoint: "127.0.0.1:{{.Zpages}}"}
  quiet_errors: {}
service:
  extensions: [llmsim, health_check, zpages, quiet_errors]
  telemetry:
    logs: {level: debug}
    traces: {level: detailed, processors: [{batch: {exporter: {console: {}}}}]} # zpages show its own traces only with a processor
    metrics: {level: detailed, readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: {{.Self}}}}}}]}
  pipelines:
    traces/in: {receivers: [otlp], processors: [memory_limiter, llmspan], exporters: [llmspan]}
    traces/out: {receivers: [llmspan], exporters: [file/traces, otlp_http, debug]}
    traces/assembled: {receivers: [otlp], processors: [memory_limiter, llmspan/assembled], exporters: [llmspan/assembled]}
    traces/assembled-out: {receivers: [llmspan/assembled], exporters: [file/assembled, otlp_http, debug]}
    logs/records: {receivers: [llmspan], exporters: [file/records, otlp_http, llmconsole, debug]}
    logs/assembled: {receivers: [llmspan/assembled], exporters: [otlp_http, llmconsole, debug]}
    logs/in: {receivers: [otlp], processors: [memory_limiter, llmspan], exporters: [file/logs, otlp_http, debug]}
    metrics/in: {receivers: [otlp], processors: [memory_limiter, llmspan], exporters: [file/metrics, otlp_http, prometheus, debug]}
    metrics/requests: {receivers: [llmspan], exporters: [file/metrics, otlp_http, prometheus, debug]}
    metrics/assembled: {receivers: [llmspan/assembled], exporters: [file/metrics, otlp_http, debug]}
`))

// collector is the built binary, with the simulator inside it.
type collector struct {
	process                                              *child.Process
	Dir, Sink                                            string
	Middlewares, Extensions, Started                     string
	GRPC, HTTP, Metrics, Simulator, Health, Self, Zpages string

	front     string // where the applications send to: keeps the bytes, passes them on
	simulator string
	out       *sink // what the binary's otlp_http exporter sends
	answers   map[string]string
}

// sink keeps the bodies and headers that it is sent.
type sink struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func newSink(testing.TB) *sink { return &sink{} }

func (s *sink) keep(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(&s.all, r.Method, r.URL, r.Header)
	s.all.Write(b)
	return b, err
}

func (s *sink) bytes() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

func startCollector(t *testing.T, bin string, raw *sink) *collector {
	t.Helper()
	p := child.FreePorts(t, 7)
	c := &collector{
		Dir: t.TempDir(), out: newSink(t), answers: map[string]string{},
		GRPC: p[0], HTTP: p[1], Metrics: p[2], Simulator: p[3], Health: p[4], Self: p[5], Zpages: p[6],
	}
	out := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = c.out.keep(r) }))
	t.Cleanup(out.Close)
	c.Sink = out.URL
	c.simulator = "http://127.0.0.1:" + c.Simulator
	to, err := url.Parse("http://127.0.0.1:" + c.HTTP)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := raw.keep(r)
		if err != nil {
			http.Error(w, "cannot read", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
		r.ContentLength = int64(len(b))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	c.front = front.URL
	var b strings.Builder
	require.NoError(t, configuration.Execute(&b, c))
	file := filepath.Join(c.Dir, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	c.process = child.Start(t, "otelcol-llm", nil, bin, "--config", file)
	c.process.Ready(t, time.Minute, "http://127.0.0.1:"+c.Health+"/")
	return c
}

// recorded adds up the tokens of the request records so far.
func (c *collector) recorded(t *testing.T) (in, out int) {
	t.Helper()
	b, _ := os.ReadFile(filepath.Join(c.Dir, "records.jsonl"))
	for l := range bytes.Lines(b[:bytes.LastIndexByte(b, '\n')+1]) {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(l)
		require.NoError(t, err)
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					if v, ok := lr.Attributes().Get("gen_ai.usage.input_tokens"); ok {
						in += int(v.Int())
					}
					if v, ok := lr.Attributes().Get("gen_ai.usage.output_tokens"); ok {
						out += int(v.Int())
					}
				}
			}
		}
	}
	return in, out
}

// export is a request that the receiver cannot read.
type export struct{ path, contentType, encoding, body string }

// malformed are requests with a text in them that no receiver can read, each in another way.
func malformed(text string) (all []export) {
	span := func(s string) string {
		return `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a",` + s + `}]}]}]}`
	}
	const j = "application/json"
	return append(all,
		export{"/v1/traces", j, "", `{"resourceSpans":[{"resource":{"attributes":[{"key":"gen_ai.prompt","value":{"stringValue":"` + text},
		export{"/v1/traces", j, "", span(`"startTimeUnixNano":"` + text + `"`)},
		export{"/v1/traces", j, "", span(`"traceId":"` + text + `"`)},
		export{"/v1/traces", j, "", span(`"kind":"` + text + `"`)},
		export{"/v1/traces", j, "", span(`"attributes":[{"key":"a","value":{"intValue":"` + text + `"}}]`)},
		export{"/v1/logs", j, "", text},
		export{"/v1/logs", j, "", `{"resourceLogs":"` + text + `"}`},
		export{"/v1/metrics", j, "", `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"sum":{"aggregationTemporality":"` + text + `"}}]}]}]}`},
		export{"/v1/traces", "application/x-protobuf", "", text},
		export{"/v1/traces", j, "gzip", text},
		export{"/v1/traces", "text/plain", "", text},
	)
}

// keepAnswer sends such a request and keeps the answer.
func (c *collector) keepAnswer(t *testing.T, x export) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:"+c.HTTP+x.path, strings.NewReader(x.body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", x.contentType)
	if x.encoding != "" {
		req.Header.Set("Content-Encoding", x.encoding)
	}
	r, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.StatusCode, 400, "%s", b)
	c.answers[fmt.Sprintf("answer %d", len(c.answers))] = fmt.Sprint(r.StatusCode, r.Header, string(b))
}

// keepPages keeps what the binary's own pages say.
func (c *collector) keepPages(t *testing.T) {
	t.Helper()
	for name, u := range map[string]string{
		"self-metrics":      "http://127.0.0.1:" + c.Self + "/metrics",
		"prometheus page":   "http://127.0.0.1:" + c.Metrics + "/metrics",
		"zpages: service":   "http://127.0.0.1:" + c.Zpages + "/debug/servicez",
		"zpages: pipelines": "http://127.0.0.1:" + c.Zpages + "/debug/pipelinez",
		"zpages: features":  "http://127.0.0.1:" + c.Zpages + "/debug/featurez",
		"zpages: traces":    "http://127.0.0.1:" + c.Zpages + "/debug/tracez",
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, http.NoBody)
		require.NoError(t, err)
		r, err := http.DefaultClient.Do(req)
		require.NoError(t, err, "%s", name)
		b, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		cancel()
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.StatusCode, "%s", name)
		require.NotEmpty(t, b, "%s", name)
		c.answers[name] = string(b)
	}
}

// outputs is everything that the binary wrote and answered.
func (c *collector) outputs(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"its log and console": c.process.Output(), "what otlp_http sent": c.out.bytes()}
	for _, f := range []string{"traces.jsonl", "assembled.proto", "records.jsonl", "logs.jsonl", "metrics.jsonl"} {
		b, err := os.ReadFile(filepath.Join(c.Dir, f))
		require.NoError(t, err)
		all[f] = string(b)
	}
	for k, v := range c.answers {
		all[k] = v
	}
	return all
}
