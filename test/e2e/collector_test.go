//go:build e2e

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/child"
)

// sink is an OTLP/HTTP receiver that keeps what it is sent.
type sink struct {
	*httptest.Server
	mu     sync.Mutex
	traces []ptrace.Traces
	logs   []plog.Logs
}

func newSink(t testing.TB) *sink {
	s := &sink{}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/traces", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		req := ptraceotlp.NewExportRequest()
		if err == nil {
			err = req.UnmarshalProto(body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.traces = append(s.traces, req.Traces())
	})
	mux.HandleFunc("/v1/logs", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		req := plogotlp.NewExportRequest()
		if err == nil {
			err = req.UnmarshalProto(body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.logs = append(s.logs, req.Logs())
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// spans are all spans that came, with the name of their service.
func (s *sink) spans() (all []span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, td := range s.traces {
		all = append(all, spansOf(td)...)
	}
	return all
}

// records counts log records by trace id.
func (s *sink) records() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := map[string]int{}
	for _, ld := range s.logs {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, l := range sl.LogRecords().All() {
					n[l.TraceID().String()]++
				}
			}
		}
	}
	return n
}

// span is a span with the service that it comes from.
type span struct {
	ptrace.Span
	service string
}

func spansOf(td ptrace.Traces) (all []span) {
	for _, rs := range td.ResourceSpans().All() {
		service, _ := rs.Resource().Attributes().Get("service.name")
		for _, ss := range rs.ScopeSpans().All() {
			for _, sp := range ss.Spans().All() {
				all = append(all, span{sp, service.Str()})
			}
		}
	}
	return all
}

// setup is what a configuration of the binary is written from.
type setup struct {
	OTLP, Scrape, Health, Telemetry string // ports
	Sink                            string
	Backends                        *backends // nil: only the sink
	Mode                            mode
	Double                          bool   // one request is sent twice; a planted fault
	Transform                       string // a transform processor's statements on what comes in; a planted fault
	TransformOut                    string // the same on traces that go out
}

var configuration = template.Must(template.New("config").Parse(`
receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:{{.OTLP}}", max_request_body_size: 67108864}}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 1024, spike_limit_mib: 128}
  llmspan: {{.Mode.Processor}}
{{- if .Transform}}
  transform/planted: {{.Transform}}
{{- end}}
{{- if .TransformOut}}
  transform/out: {{.TransformOut}}
{{- end}}
connectors:
  llmspan: {records: all, metrics: {interval: 1s}}
exporters:
  otlp_http/sink: {endpoint: "{{.Sink}}", compression: none}
{{- with .Backends}}
  prometheus:
    endpoint: "127.0.0.1:{{$.Scrape}}"
    enable_open_metrics: true
    resource_constant_labels: {included: [service.name]}
    without_scope_info: true
  prometheus_remote_write:
    endpoint: "{{.Prometheus}}/api/v1/write"
    external_labels: {via: remote_write}
  otlp_http/metrics: {metrics_endpoint: "{{.VictoriaMetrics}}/opentelemetry/v1/metrics", compression: none}
  otlp_http/logs: {logs_endpoint: "{{.VictoriaLogs}}/insert/opentelemetry/v1/logs", compression: none}
{{- if .Jaeger}}
  otlp_http/jaeger: {endpoint: "{{.Jaeger}}"}
{{- end}}
{{- end}}
extensions:
  health_check: {endpoint: "127.0.0.1:{{.Health}}"}
service:
  extensions: [health_check]
  telemetry:
    logs: {level: warn}
    metrics:
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: {{.Telemetry}}}}}}]
  pipelines:
    traces/in: {receivers: [otlp], processors: [memory_limiter, {{if .Transform}}transform/planted, {{end}}llmspan], exporters: [llmspan]}
    traces/out: {receivers: [llmspan], {{if .TransformOut}}processors: [transform/out], {{end}}exporters: [otlp_http/sink{{with .Backends}}{{if .Jaeger}}, otlp_http/jaeger{{end}}{{end}}]}
{{- if .Backends}}
    metrics: {receivers: [llmspan], exporters: [prometheus, prometheus_remote_write, otlp_http/metrics]}
    logs: {receivers: [llmspan], exporters: [otlp_http/logs, otlp_http/sink]}
{{- else}}
    logs: {receivers: [llmspan], exporters: [otlp_http/sink]}
{{- end}}
`))

// Accessors for the template.
func (m mode) Processor() string           { return m.processor }
func (b backends) Prometheus() string      { return b.prometheus }
func (b backends) VictoriaMetrics() string { return b.victoriaMetrics }
func (b backends) VictoriaLogs() string    { return b.victoriaLogs }

func (b backends) Jaeger() string {
	if b.jaeger == nil {
		return ""
	}
	return b.jaeger.otlp
}

// startCollector starts the binary with a configuration for s, whose free fields are filled in, and waits until it receives.
func startCollector(t testing.TB, s *setup) *child.Process {
	t.Helper()
	p := child.FreePorts(t, 3)
	s.OTLP, s.Health, s.Telemetry = p[0], p[1], p[2]
	var b strings.Builder
	require.NoError(t, configuration.Execute(&b, s))
	c := start(t, "otelcol-llm", binary(t), nil, "--config", write(t, "config.yaml", b.String()))
	c.Ready(t, time.Minute, "http://127.0.0.1:"+s.Health+"/")
	return c
}

func (s *setup) tracesURL() string { return "http://127.0.0.1:" + s.OTLP + "/v1/traces" }
