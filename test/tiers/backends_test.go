//go:build e2e

package tiers

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/golang/snappy"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// backends stand for Tempo, Loki and Prometheus: OTLP/HTTP and remote write, on one port.
type backends struct {
	url    string
	server *httptest.Server

	mu sync.Mutex // guards all below
	// down makes every request fail with 503, as a proxy in front of backends that are away.
	down    bool
	refused int
	traces  map[pcommon.TraceID]*trace
	// spans counts the spans of sources by id, records the request records by the id of their span.
	spans, records map[pcommon.SpanID]int
	recordsOf      map[pcommon.SpanID]record
	series         *series
	faults         []string
}

// trace is what arrived of one trace.
type trace struct {
	spans           int    // of sources, not our stages
	state           string // tracestate
	partial         bool
	stages          int
	states, reasons map[string]bool
}

type record struct{ input, output int64 }

func newBackends(t testing.TB) *backends {
	t.Helper()
	b := &backends{
		traces: map[pcommon.TraceID]*trace{}, spans: map[pcommon.SpanID]int{}, records: map[pcommon.SpanID]int{},
		recordsOf: map[pcommon.SpanID]record{}, series: newSeries(),
	}
	b.server = httptest.NewServer(http.HandlerFunc(b.serve))
	b.url = b.server.URL
	t.Cleanup(func() {
		b.server.CloseClientConnections()
		b.server.Close()
	})
	return b
}

func (b *backends) setDown(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

func (b *backends) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := body(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.down:
		b.refused++
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	case err == nil && strings.HasSuffix(r.URL.Path, "/v1/traces"):
		err = b.takeTraces(raw)
	case err == nil && strings.HasSuffix(r.URL.Path, "/v1/logs"):
		err = b.takeLogs(raw)
	case err == nil && r.URL.Path == "/api/v1/write":
		if raw, err = snappy.Decode(nil, raw); err == nil {
			err = b.series.take(raw)
		}
	}
	if bytes.Contains(raw, []byte(canary)) {
		b.faults = append(b.faults, r.URL.Path+": text arrived")
	}
	if err != nil {
		b.faults = append(b.faults, r.URL.Path+": "+err.Error())
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func body(r *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.Header.Get("Content-Encoding") != "gzip" {
		return raw, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func (b *backends) takeTraces(raw []byte) error {
	req := ptraceotlp.NewExportRequest()
	if err := req.UnmarshalProto(raw); err != nil {
		return err
	}
	for _, rs := range req.Traces().ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				tr := b.traces[s.TraceID()]
				if tr == nil {
					tr = &trace{states: map[string]bool{}, reasons: map[string]bool{}}
					b.traces[s.TraceID()] = tr
				}
				if _, stage := s.Attributes().Get("llmspan.stage"); stage {
					tr.stages++
					continue
				}
				tr.spans++
				b.spans[s.SpanID()]++
				tr.state = s.TraceState().AsRaw()
				tr.states[tr.state] = true
				if v, ok := s.Attributes().Get("llmspan.sampling.reason"); ok {
					tr.reasons[v.Str()] = true
				}
				if v, ok := s.Attributes().Get("llmspan.sampling.partial"); ok {
					tr.partial = tr.partial || v.Bool()
				}
			}
		}
	}
	return nil
}

func (b *backends) takeLogs(raw []byte) error {
	req := plogotlp.NewExportRequest()
	if err := req.UnmarshalProto(raw); err != nil {
		return err
	}
	for _, rl := range req.Logs().ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, l := range sl.LogRecords().All() {
				if l.EventName() != "llm.request" {
					continue
				}
				b.records[l.SpanID()]++
				b.recordsOf[l.SpanID()] = record{
					input: integer(l.Attributes(), "gen_ai.usage.input_tokens"), output: integer(l.Attributes(), "gen_ai.usage.output_tokens"),
				}
			}
		}
	}
	return nil
}

func integer(a pcommon.Map, key string) int64 {
	v, ok := a.Get(key)
	if !ok {
		return 0
	}
	return v.Int()
}

// counter is the sum of a counter's increase over all series, restarts of writers included.
func (b *backends) counter(name string, parts ...string) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.series.total(name, parts)
}

// split counts the traces that arrived in parts: without a span, or with spans that were decided on apart.
func (b *backends) split(sent []sentTrace) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range sent {
		if tr := b.traces[traceID(s.number)]; tr != nil && (tr.spans < spansPerTrace || len(tr.reasons) > 1) {
			n++
		}
	}
	return n
}
