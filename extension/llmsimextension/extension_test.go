package llmsimextension

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-llm/otelcol-llm/extension/llmsimextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/extension/llmsimextension/internal/metadatatest"
	"github.com/otelcol-llm/otelcol-llm/internal/sim/live"
)

// sink is an OTLP/HTTP receiver that counts spans by name and tells of the first engine span.
type sink struct {
	*httptest.Server
	mu    sync.Mutex
	names map[string]int
	first chan struct{}
	once  sync.Once
}

func newSink(t *testing.T) *sink {
	s := &sink{names: map[string]int{}, first: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		req := ptraceotlp.NewExportRequest()
		if !assert.NoError(t, req.UnmarshalProto(body)) || !assert.Equal(t, "/v1/traces", r.URL.Path) {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, rs := range req.Traces().ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, sp := range ss.Spans().All() {
					s.names[sp.Name()]++
					if sp.Name() == "llm_request" {
						s.once.Do(func() { close(s.first) })
					}
				}
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sink) total() (all, engine int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, n := range s.names {
		all += n
		if name == "llm_request" {
			engine += n
		}
	}
	return all, engine
}

// freeAddress is one that nobody listens on now.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// started is a running extension through the factory, with the given endpoint.
func started(t *testing.T, endpoint string, tel *componenttest.Telemetry, change func(*Config)) (*simulator, string) {
	cfg := createDefaultConfig()
	cfg.Server.NetAddr.Endpoint = freeAddress(t)
	cfg.Export.HTTP.Endpoint = endpoint
	cfg.Export.Interval = 20 * time.Millisecond
	cfg.Rate = 100
	if change != nil {
		change(cfg)
	}
	set := extensiontest.NewNopSettings(metadata.Type)
	if tel != nil {
		set.TelemetrySettings = tel.NewTelemetrySettings()
	}
	e, err := NewFactory().Create(t.Context(), set, cfg)
	require.NoError(t, err)
	s := e.(*simulator)
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	return s, "http://" + cfg.Server.NetAddr.Endpoint
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get(url)
	require.NoError(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(b)
}

func TestItPushesSpansServesAndCounts(t *testing.T) {
	out := newSink(t)
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	s, url := started(t, out.URL, tel, nil)
	code, body := get(t, url+"/health")
	assert.Equal(t, http.StatusServiceUnavailable, code, body)

	require.NoError(t, s.Ready())
	select {
	case <-out.first:
	case <-time.After(30 * time.Second):
		t.Fatal("no engine span arrived")
	}
	code, body = get(t, url+"/engines/vllm-chat/metrics")
	assert.Equal(t, 200, code)
	assert.Contains(t, body, "vllm:num_requests_running")

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"llama-3.1-8b","messages":[{"role":"user","content":"x"}],"max_tokens":4,"stream":true}`))
	require.NoError(t, err)
	stream, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	assert.Contains(t, string(stream), "data: [DONE]")

	_, body = get(t, url+"/sim/truth?limit=0")
	var truth live.Truths
	require.NoError(t, json.Unmarshal([]byte(body), &truth))
	assert.Positive(t, truth.Totals.Ended)

	require.NoError(t, s.NotReady())
	all, engine := out.total()
	assert.Positive(t, engine)
	ended := int64(0)
	m, err := tel.GetMetric("otelcol_extension_llmsim_requests")
	require.NoError(t, err)
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		ended += p.Value
	}
	assert.GreaterOrEqual(t, ended, truth.Totals.Ended)
	metadatatest.AssertEqualExtensionLlmsimSpansSent(t, tel, []metricdata.DataPoint[int64]{{Value: int64(all)}}, metricdatatest.IgnoreTimestamp())
	code, _ = get(t, url+"/health")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	require.NoError(t, s.Shutdown(context.Background()))
	require.NoError(t, s.Shutdown(context.Background()), "twice is safe")
}

func TestSpansThatTheEndpointRefusesAreCounted(t *testing.T) {
	arrived := make(chan struct{})
	var once sync.Once
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		once.Do(func() { close(arrived) })
	}))
	defer refusing.Close()
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	s, _ := started(t, refusing.URL, tel, nil)
	require.NoError(t, s.Ready())
	select {
	case <-arrived:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was sent")
	}
	require.NoError(t, s.NotReady())
	m, err := tel.GetMetric("otelcol_extension_llmsim_spans_dropped")
	require.NoError(t, err)
	points := m.Data.(metricdata.Sum[int64]).DataPoints
	require.Len(t, points, 1)
	assert.Positive(t, points[0].Value)
	reason, _ := points[0].Attributes.Value("reason")
	assert.Equal(t, attribute.StringValue("refused"), reason)
	_, err = tel.GetMetric("otelcol_extension_llmsim_spans_sent")
	require.Error(t, err, "nothing was accepted")
	require.NoError(t, s.Shutdown(context.Background()))
}

func TestAnAddressInUseAndABadReplayAreErrorsOfTheStart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for name, change := range map[string]func(*Config){
		"address": func(c *Config) { c.Server.NetAddr.Endpoint = l.Addr().String() },
		"replay":  func(c *Config) { c.ReplayFile = "testdata/config.yaml" },
		"missing": func(c *Config) { c.ReplayFile = "testdata/none.jsonl" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig()
			cfg.Server.NetAddr.Endpoint = "127.0.0.1:0"
			change(cfg)
			e, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(metadata.Type), cfg)
			require.NoError(t, err)
			require.Error(t, e.Start(t.Context(), componenttest.NewNopHost()))
			require.NoError(t, e.Shutdown(context.Background()))
		})
	}
}

func TestARequestWaitsForTheFirstReady(t *testing.T) {
	s, url := started(t, "", nil, nil)
	codes := make(chan int)
	go func() {
		r, err := http.Get(url + "/dcgm/metrics")
		if !assert.NoError(t, err) {
			close(codes)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		codes <- r.StatusCode
	}()
	select {
	case code := <-codes:
		t.Fatalf("it was answered with %d before the simulation ran", code)
	case <-time.After(100 * time.Millisecond):
	}
	require.NoError(t, s.Ready())
	assert.Equal(t, http.StatusOK, <-codes)
	require.NoError(t, s.NotReady())
	code, _ := get(t, url+"/dcgm/metrics")
	assert.Equal(t, http.StatusServiceUnavailable, code, "and once it has stopped nothing waits")
	require.NoError(t, s.Shutdown(context.Background()))
	http.DefaultClient.CloseIdleConnections()
}

func TestReadyTwiceAfterAReload(t *testing.T) {
	out := newSink(t)
	s, _ := started(t, out.URL, nil, nil)
	for range 2 {
		require.NoError(t, s.Ready())
		require.NoError(t, s.NotReady())
	}
	require.NoError(t, s.NotReady(), "without Ready")
	require.NoError(t, s.Shutdown(context.Background()))
}
