//go:build e2e

package e2e

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/child"
	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

// stopLimit is how long the binary may take from SIGTERM to its end.
const stopLimit = 10 * time.Second

// acknowledged sends exports by several senders until stop was called and the collector refuses, or all is sent. It calls half when
// half of them are accepted, and returns the trace ids of the engine spans in accepted requests.
func acknowledged(t testing.TB, url string, exports []sim.Export, half func()) map[string]int {
	t.Helper()
	var next, accepted atomic.Int64
	var mu sync.Mutex
	var once sync.Once
	traces := map[string]int{}
	c := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	defer c.CloseIdleConnections()
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(exports) {
					return
				}
				body, err := ptraceotlp.NewExportRequestFromTraces(exports[i].Traces).MarshalProto()
				if err != nil {
					t.Error(err)
					return
				}
				r, err := c.Post(url, "application/x-protobuf", bytes.NewReader(body))
				if err != nil {
					return // it has stopped
				}
				_ = r.Body.Close()
				if r.StatusCode != http.StatusOK {
					continue
				}
				mu.Lock()
				for _, s := range spansOf(exports[i].Traces) {
					if s.Name() == "llm_request" {
						traces[s.TraceID().String()]++
					}
				}
				mu.Unlock()
				if int(accepted.Add(1)) == len(exports)/2 {
					once.Do(half)
				}
			}
		})
	}
	senders.Wait()
	return traces
}

// recordedExports are small export requests of simulated traffic.
func recordedExports(t testing.TB, seconds int) []sim.Export {
	t.Helper()
	cfg := load()
	cfg.Faults = nil
	w, err := sim.New(cfg, time.Now().Add(-time.Duration(seconds)*time.Second))
	require.NoError(t, err)
	var all []sim.Export
	for i := range seconds * 10 {
		w.Advance(time.Duration(i) * 100 * time.Millisecond)
		all = append(all, w.Drain().Exports...)
	}
	return all
}

func TestASIGTERMUnderLoadLosesNothingThatWasAcknowledged(t *testing.T) {
	modes := []mode{stateless}
	if supports(t, assembled) {
		modes = append(modes, assembled)
	}
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			out := newSink(t)
			s := &setup{Mode: m, Sink: out.URL}
			c := startCollector(t, s)
			stopped := make(chan struct{})
			var took time.Duration
			var stopErr error
			want := acknowledged(t, s.tracesURL(), recordedExports(t, 30), func() {
				go func() {
					defer close(stopped)
					took, stopErr = c.Stop(stopLimit)
				}()
			})
			<-stopped
			require.NoError(t, stopErr)
			require.NoError(t, c.Wait(stopLimit), "exit status")
			n := 0
			got := map[string]int{}
			for _, sp := range out.spans() {
				if sp.Name() == "llm_request" {
					got[sp.TraceID().String()]++
				}
			}
			records := out.records()
			lost, unrecorded := 0, 0
			for trace, k := range want {
				n += k
				if got[trace] < k {
					lost += k - got[trace]
				}
				if records[trace] == 0 {
					unrecorded++
				}
			}
			t.Logf("%s: %d engine spans of %d traces acknowledged, stopped in %v", m.name, n, len(want), took)
			assert.Greater(t, n, 1000)
			assert.Zero(t, lost, "acknowledged engine spans that did not come out")
			assert.Zero(t, unrecorded, "acknowledged requests without a record")
		})
	}
}

// portPattern finds the ports of addresses in a shipped configuration: host:4317, or the default of a variable, :-4317.
var portPattern = regexp.MustCompile(`(:-?)(\d{4,5})\b`)

// Every shipped configuration starts, takes traces, and stops cleanly. The ports are replaced by free ones, nothing else.
func TestShippedConfigurationsStartAndStop(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "distributions", "otelcol-llm", "configs", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".yaml"), func(t *testing.T) {
			raw, err := os.ReadFile(f)
			require.NoError(t, err)
			ports := map[string]string{}
			config := portPattern.ReplaceAllStringFunc(string(raw), func(m string) string {
				digits := strings.TrimLeft(m, ":-")
				if ports[digits] == "" {
					ports[digits] = child.FreePorts(t, 1)[0]
				}
				return strings.TrimSuffix(m, digits) + ports[digits]
			})
			data := t.TempDir()
			args := []string{"--config", write(t, filepath.Base(f), config), "--config", "yaml:service::telemetry::metrics::level: none"}
			port := ports["4318"]
			if !strings.Contains(config, "OTELCOL_LLM_HTTP_PORT") { // a gateway takes gRPC from agents alone; the recordings are sent by HTTP
				port = child.FreePorts(t, 1)[0]
				args = append(args, "--config", "yaml:receivers::otlp::protocols::http::endpoint: 127.0.0.1:"+port)
			}
			c := start(t, "otelcol-llm", binary(t), []string{"OTELCOL_LLM_DATA=" + data}, args...)
			require.NotEmpty(t, port, "the configuration takes OTLP/HTTP")
			require.NoError(t, c.Until(time.Minute, func() error {
				conn, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
				if err == nil {
					_ = conn.Close()
				}
				return err
			}))
			want := acknowledged(t, "http://127.0.0.1:"+port+"/v1/traces", recordedExports(t, 5), func() {})
			assert.NotEmpty(t, want)
			took, err := c.Stop(stopLimit)
			require.NoError(t, err)
			require.NoError(t, c.Wait(stopLimit), "exit status")
			t.Logf("stopped in %v after %d traces", took, len(want))
			if written, err := filepath.Glob(filepath.Join(data, "records*.jsonl")); assert.NoError(t, err) && len(written) > 0 {
				text := ""
				for _, w := range written {
					b, err := os.ReadFile(w)
					require.NoError(t, err)
					text += string(b)
				}
				missing := 0
				for trace := range want {
					if !strings.Contains(text, trace) {
						missing++
					}
				}
				assert.Zero(t, missing, "acknowledged requests without a record on disk")
			}
		})
	}
}
