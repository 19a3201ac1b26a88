//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/child"
)

// exemplar is one that Prometheus holds.
type exemplar struct {
	Labels struct {
		TraceID string `json:"trace_id"`
		SpanID  string `json:"span_id"`
	}
	Value string
}

// promExemplars asks Prometheus for the exemplars of all of our histograms.
func promExemplars(base string) ([]exemplar, error) {
	now := time.Now()
	b, err := fetch(base + "/api/v1/query_exemplars?" + url.Values{
		"query": {`{__name__=~"llm_.+_bucket"}`},
		"start": {fmt.Sprint(now.Add(-time.Hour).Unix())}, "end": {fmt.Sprint(now.Add(time.Hour).Unix())},
	}.Encode())
	if err != nil {
		return nil, err
	}
	var r struct {
		Data []struct{ Exemplars []exemplar }
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, err
	}
	var all []exemplar
	for _, d := range r.Data {
		all = append(all, d.Exemplars...)
	}
	return all, nil
}

// exemplars holds that each exemplar points to a span that was kept: one that arrived at the test's own receiver and, where Jaeger runs, one that
// Jaeger finds.
func (b backends) exemplars(r *report, kept []span) {
	all, err := promExemplars(b.prometheus)
	if err != nil {
		r.add("exemplars: %v", err)
		return
	}
	if len(all) == 0 {
		r.add("Prometheus holds no exemplar")
	}
	spans := map[string]map[string]bool{} // by trace id
	for _, s := range kept {
		id := s.TraceID().String()
		if spans[id] == nil {
			spans[id] = map[string]bool{}
		}
		spans[id][s.SpanID().String()] = true
	}
	asked := map[string]bool{}
	for _, e := range all {
		if !spans[e.Labels.TraceID][e.Labels.SpanID] {
			r.add("an exemplar points to span %s of trace %s, which was not kept", e.Labels.SpanID, e.Labels.TraceID)
			continue
		}
		if b.jaeger == nil || asked[e.Labels.TraceID] {
			continue
		}
		asked[e.Labels.TraceID] = true
		if n, err := b.jaeger.spans(e.Labels.TraceID); err != nil || n != len(spans[e.Labels.TraceID]) {
			r.add("an exemplar points to trace %s, of which Jaeger has %d spans of %d: %v", e.Labels.TraceID, n, len(spans[e.Labels.TraceID]), err)
		}
	}
}

// jaeger is a Jaeger that keeps traces in memory.
type jaeger struct {
	otlp, query string // base addresses
}

// startJaeger starts the program that OTELCOL_LLM_JAEGER names; with none there is no Jaeger.
func startJaeger(t testing.TB) *jaeger {
	t.Helper()
	if os.Getenv("OTELCOL_LLM_JAEGER") == "" {
		return nil
	}
	p := child.FreePorts(t, 3)
	j := &jaeger{otlp: "http://127.0.0.1:" + p[0], query: "http://127.0.0.1:" + p[1]}
	config := fmt.Sprintf(`
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {receivers: [otlp], exporters: [jaeger_storage_exporter]}
  telemetry: {metrics: {level: none}, logs: {level: warn}}
extensions:
  jaeger_storage: {backends: {memory: {memory: {max_traces: 1000000}}}}
  jaeger_query: {storage: {traces: memory}, http: {endpoint: "127.0.0.1:%s"}, grpc: {endpoint: "127.0.0.1:%s"}}
receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:%s"}}}
exporters:
  jaeger_storage_exporter: {trace_storage: memory}
`, p[1], p[2], p[0])
	c := start(t, "jaeger", child.FromEnv(t, "OTELCOL_LLM_JAEGER", "../..", ".cache/backends/jaeger", "make test-jaeger builds it"), []string{"OTEL_TRACES_SAMPLER=always_off"}, "--config", "file:"+write(t, "jaeger.yaml", config))
	c.Ready(t, time.Minute, j.query+"/api/services")
	return j
}

// spans is the number of spans that Jaeger has of a trace.
func (j *jaeger) spans(traceID string) (int, error) {
	b, err := fetch(j.query + "/api/traces/" + traceID)
	if err != nil {
		return 0, err
	}
	var r struct {
		Data []struct{ Spans []json.RawMessage }
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return 0, err
	}
	n := 0
	for _, d := range r.Data {
		n += len(d.Spans)
	}
	return n, nil
}
