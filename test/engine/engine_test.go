//go:build engine

package engine

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/child"
)

// model is the served name. The engine's resource states it: vLLM's spans name no model.
const model = "tiny-llama"

// Two ways side by side: whole traces, all kept, as a gateway of the fleet sees them; and span by span, as builtin:standalone does. The
// first counts refused calls as errors, so that they can be told from the others.
var configuration = template.Must(template.New("config").Parse(`
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{{.GRPC}}"}, http: {endpoint: "127.0.0.1:{{.HTTP}}"}}}
  vllm: {endpoints: ["http://127.0.0.1:{{.Engine}}/metrics"], collection_interval: 1s}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 512, spike_limit_mib: 128}
  llmspan/assembled: {sampling: {enabled: true, apply: tag, baseline_ratio: 1, client_errors: true}}
  llmspan/stateless: {}
connectors:
  llmspan/assembled: {records: all, metrics: {interval: 1s, expiry: 0}}
  llmspan/stateless: {records: all, metrics: {interval: 1s, expiry: 0}}
exporters:
  file/traces: {path: "{{.Dir}}/traces.jsonl"}
{{- range .Ways}}
  file/{{.}}-records: {path: "{{$.Dir}}/{{.}}-records.jsonl"}
  file/{{.}}-metrics: {path: "{{$.Dir}}/{{.}}-metrics.jsonl"}
{{- end}}
  file/engine: {path: "{{.Dir}}/engine.jsonl"}
  nop: {}
extensions:
  health_check: {endpoint: "127.0.0.1:{{.Health}}"}
service:
  extensions: [health_check]
  telemetry:
    logs: {level: warn}
    metrics: {level: none}
  pipelines:
{{- range .Ways}}
    traces/{{.}}: {receivers: [otlp], processors: [memory_limiter, llmspan/{{.}}], exporters: [llmspan/{{.}}]}
    traces/{{.}}-out: {receivers: [llmspan/{{.}}], exporters: [{{if eq . "assembled"}}file/traces{{else}}nop{{end}}]}
    logs/{{.}}: {receivers: [llmspan/{{.}}], exporters: [file/{{.}}-records]}
    metrics/{{.}}: {receivers: [llmspan/{{.}}], exporters: [file/{{.}}-metrics]}
{{- end}}
    metrics/engine: {receivers: [vllm], exporters: [file/engine]}
`))

type setup struct {
	Dir                                 string
	GRPC, HTTP, Engine, Health, Gateway string
	Ways                                []string
}

func (s *setup) path(name string) string { return filepath.Join(s.Dir, name+".jsonl") }

// page is the engine's own page now.
func (s *setup) page(t *testing.T) page {
	t.Helper()
	r, err := http.Get("http://127.0.0.1:" + s.Engine + "/metrics")
	require.NoError(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return parsePage(string(b))
}

// idle waits until the engine runs nothing and its page no longer changes, and returns the page.
func (s *setup) idle(t *testing.T) page {
	t.Helper()
	var p page
	child.Eventually(t, time.Minute, "the engine is not idle", func() error {
		p = s.page(t)
		if p["vllm:num_requests_running"]+p["vllm:num_requests_waiting"] > 0 {
			return errors.New("requests are running")
		}
		return nil
	})
	return p
}

func scale(t *testing.T) float64 {
	t.Helper()
	v := os.Getenv("OTELCOL_LLM_ENGINE_SCALE")
	if v == "" {
		return 1
	}
	f, err := strconv.ParseFloat(v, 64)
	require.NoError(t, err, "OTELCOL_LLM_ENGINE_SCALE")
	return f
}

// The proof on a real engine: the client's truth, the engine's page, and what the binary makes of the spans agree.
func TestRealEngineAgreesWithItsClient(t *testing.T) {
	bin := child.FromEnv(t, "OTELCOL_LLM_BIN", "../..", "bin/otelcol-llm", "make build")
	installed := child.FromEnv(t, "OTELCOL_LLM_ENGINE", "../..", ".cache/engine", "make test-engine installs it")
	venv := filepath.Join(installed, "venv", "bin")
	ports := child.FreePorts(t, 5)
	dir := os.Getenv("OTELCOL_LLM_ENGINE_OUT")
	if dir == "" {
		dir = t.TempDir()
	}
	require.NoError(t, os.MkdirAll(dir, 0o700))
	s := &setup{
		Dir: dir, Ways: []string{"assembled", "stateless"},
		GRPC: ports[0], HTTP: ports[1], Engine: ports[2], Health: ports[3], Gateway: ports[4],
	}
	var config strings.Builder
	require.NoError(t, configuration.Execute(&config, s))
	file := filepath.Join(s.Dir, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config.String()), 0o600))

	collector := child.Start(t, "otelcol-llm", nil, bin, "--config", file)
	engine := child.Start(t, "vllm", []string{
		"PATH=" + venv + ":" + os.Getenv("PATH"),
		"VLLM_CACHE_ROOT=" + filepath.Join(installed, "cache"), "VLLM_CPU_KVCACHE_SPACE=1", "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "VLLM_NO_USAGE_STATS=1",
		"OTEL_SERVICE_NAME=vllm-chat", "OTEL_RESOURCE_ATTRIBUTES=gen_ai.request.model=" + model,
		"OTEL_EXPORTER_OTLP_TRACES_INSECURE=true", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc",
	}, filepath.Join(venv, "vllm"), "serve", filepath.Join(installed, "model"), "--served-model-name", model,
		"--load-format", "dummy", "--dtype", "bfloat16", "--max-model-len", "2048", "--max-num-seqs", "8",
		"--host", "127.0.0.1", "--port", s.Engine, "--enable-prompt-tokens-details",
		"--otlp-traces-endpoint", "http://127.0.0.1:"+s.GRPC)
	gateway := child.Start(t, "gateway", []string{
		"OTEL_SERVICE_NAME=llm-gateway", "OTEL_SEMCONV_STABILITY_OPT_IN=http",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:" + s.HTTP,
	}, filepath.Join(venv, "python"), "gateway.py", "http://127.0.0.1:"+s.Engine, s.Gateway)
	collector.Ready(t, time.Minute, "http://127.0.0.1:"+s.Health+"/")
	gateway.Ready(t, 2*time.Minute, "http://127.0.0.1:"+s.Gateway+"/ready")
	engine.Ready(t, 8*time.Minute, "http://127.0.0.1:"+s.Engine+"/health")

	c := &client{base: "http://127.0.0.1:" + s.Gateway, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
	defer c.http.CloseIdleConnections()
	before := s.idle(t)
	begin := time.Now()
	c.answered(scale(t))
	after := s.idle(t)
	c.cancelled(scale(t))
	end := s.idle(t)
	ended := time.Now()
	for _, x := range c.all {
		require.NoError(t, x.err, "%s", x.kind)
		require.NotEmpty(t, x.trace)
	}
	t.Logf("%d requests in %.0f s", len(c.all), ended.Sub(begin).Seconds())

	// Exporters of Python send every 5 s, the binary waits for answers, the receiver reads every second.
	waited := func(what string, enough func() bool) {
		limit := time.After(2 * time.Minute)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for !enough() {
			select {
			case <-limit:
				t.Logf("%s: not in two minutes; the table tells the rest", what)
				return
			case <-tick.C:
			}
		}
	}
	waited("all records", func() bool {
		rs, err := readRecords(s.path("assembled-records"))
		seen := map[string]bool{}
		for _, r := range rs {
			seen[r.trace] = true
		}
		return err == nil && len(seen) >= len(c.all)
	})
	waited("a page after the last request", func() bool {
		ps, err := readSeries(s.path("engine"))
		for _, p := range ps {
			if p.name == "llm.engine.output_tokens" && p.time.AsTime().After(ended) {
				return err == nil
			}
		}
		return false
	})
	_, err := gateway.Stop(20 * time.Second)
	require.NoError(t, err)
	took, err := collector.Stop(20 * time.Second)
	require.NoError(t, err)
	t.Logf("the binary stopped within %v", took.Round(time.Millisecond))

	var o outcome
	o.client, o.engine, o.enginePage = c.all, after.since(before), end
	o.cancelledEngine = end.since(after)
	for i, way := range s.Ways {
		o.metrics[i], err = readSeries(s.path(way + "-metrics"))
		require.NoError(t, err)
		o.records[i], err = readRecords(s.path(way + "-records"))
		require.NoError(t, err)
	}
	o.receiver, err = readSeries(s.path("engine"))
	require.NoError(t, err)
	o.traces, err = readTraces(s.path("traces"))
	require.NoError(t, err)
	table, faults := o.compare()
	t.Logf("\n%s", table)
	for _, f := range faults {
		t.Error(f)
	}
}
