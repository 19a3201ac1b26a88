package vllmreceiver

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/metadatatest"
)

// rig is a scraper that is asked by hand, on a clock that is moved by hand.
type rig struct {
	*engineScraper
	telemetry *componenttest.Telemetry
	logs      *consumertest.LogsSink
	zap       *observer.ObservedLogs
	status    *statusHost
	clock     time.Time
}

type statusHost struct {
	mu     sync.Mutex
	events []componentstatus.Status
}

func (*statusHost) GetExtensions() map[component.ID]component.Component { return nil }
func (h *statusHost) Report(e *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e.Status())
}

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	change(cfg)
	require.NoError(t, cfg.Validate())
	core, logs := observer.New(zap.InfoLevel)
	r := &rig{telemetry: componenttest.NewTelemetry(), logs: new(consumertest.LogsSink), zap: logs, status: &statusHost{}, clock: scrapedAt}
	set := receiver.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: r.telemetry.NewTelemetrySettings()}
	set.Logger = zap.New(core)
	s, err := newScraper(set, cfg)
	require.NoError(t, err)
	s.now = func() time.Time { return r.clock }
	s.logs = r.logs
	require.NoError(t, s.Start(t.Context(), r.status))
	r.engineScraper = s
	t.Cleanup(func() {
		s.cancel()
		s.close()
		require.NoError(t, r.telemetry.Shutdown(context.Background()))
	})
	return r
}

func (r *rig) scrape(t *testing.T) pmetric.Metrics {
	t.Helper()
	r.clock = r.clock.Add(10 * time.Second)
	md, err := r.ScrapeMetrics(t.Context())
	require.NoError(t, err)
	return md
}

func (r *rig) events() (names []string) {
	for _, ld := range r.logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					name := lr.EventName()
					if state, ok := lr.Attributes().Get("llm.engine.state"); ok {
						name += " " + state.Str()
					}
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// page serves whatever handler is set; it can be changed while it runs.
type page struct {
	*httptest.Server
	handler atomic.Pointer[http.HandlerFunc]
}

func newPage(t *testing.T, h http.HandlerFunc) *page {
	t.Helper()
	p := &page{}
	p.handler.Store(&h)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*p.handler.Load())(w, r) }))
	t.Cleanup(p.Close)
	return p
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// upLine is the line of the state the endpoint is in.
func upLine(md pmetric.Metrics) string {
	for line := range strings.SplitSeq(flatten(md), "\n") {
		if strings.HasPrefix(line, "gauge llm.engine.up ") && !strings.HasSuffix(line, "gone") {
			return line
		}
	}
	return ""
}

func TestAnswersOfServers(t *testing.T) {
	vllm := readPage(t, "testdata/pages/vllm-0.32.0-end.prom")
	hang := make(chan struct{})
	defer close(hang)
	lines := vllm[:strings.LastIndexByte(vllm[:30000], '\n')+1] // a cut that does not show in the text
	tests := []struct {
		name    string
		handler http.HandlerFunc
		change  func(*Config)
		want    string // the state's series
	}{
		{"a page", text(vllm), nil, "{llm.engine.state=ok} = 1"},
		{"a page of OpenMetrics with carriage returns", text(strings.ReplaceAll(readPage(t, "testdata/pages/synthetic_vllm_rust_frontend_openmetrics.prom"), "\n", "\r\n")), nil, "{llm.engine.state=ok} = 1"},
		{"no such page", status(404), nil, "{llm.engine.state=not_found} = 0"},
		{"loading", status(503), nil, "{llm.engine.state=unreachable} = 0"},
		{"a page of something else", text("go_goroutines 1\n"), nil, "{llm.engine.state=not_an_engine} = 0"},
		{"a server that does not answer in time", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}, func(c *Config) { c.HTTP.Timeout = 20 * time.Millisecond }, "{llm.engine.state=unreachable} = 0"},
		{"a connection that breaks off in the middle", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write([]byte(lines))
		}, nil, "{llm.engine.state=incomplete} = 1"},
		{"a page as large as the cap", text(vllm), func(c *Config) { c.MaxPageBytes = int64(len(vllm)) }, "{llm.engine.state=ok} = 1"},
		{"a page beyond the cap on its size", text(vllm), func(c *Config) { c.MaxPageBytes = int64(len(lines)) }, "{llm.engine.state=incomplete} = 1"},
		{"a header that is asked for", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_, _ = w.Write([]byte(vllm))
		}, func(c *Config) { c.HTTP.Headers.Set("Authorization", "Bearer secret") }, "{llm.engine.state=ok} = 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPage(t, tt.handler)
			r := newRig(t, func(c *Config) {
				c.Endpoints = []string{p.URL}
				if tt.change != nil {
					tt.change(c)
				}
			})
			assert.Equal(t, "gauge llm.engine.up 1 "+tt.want, upLine(r.scrape(t)))
			for _, e := range r.zap.All() {
				assert.NotContains(t, e.Message+e.ContextMap()["detail"].(string), "secret")
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	r := newRig(t, func(c *Config) { c.Endpoints = []string{address} })
	assert.Contains(t, upLine(r.scrape(t)), "{llm.engine.state=unreachable} = 0")
	require.Equal(t, 1, r.zap.Len())
	assert.Contains(t, r.zap.All()[0].ContextMap()["detail"], "refused")
}

func TestOneBadEndpointDoesNotStopTheOthers(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	slow := newPage(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	good := newPage(t, text(readPage(t, "testdata/pages/sglang-0.5.23-end.prom")))
	r := newRig(t, func(c *Config) {
		c.Endpoints = []string{slow.URL, good.URL, good.URL + "/metrics"}
		c.HTTP.Timeout = 50 * time.Millisecond
	})
	md := r.scrape(t)
	assert.Equal(t, 2, md.ResourceMetrics().Len(), "the same page is scraped once")
	input, _ := totals(md, "llm.engine.input_tokens")
	assert.Equal(t, 957.0, input)
	assert.Empty(t, r.status.events, "one engine of two is up")
}

func TestChangesAreToldOnceInLogsRecordsAndStatus(t *testing.T) {
	vllm := readPage(t, "testdata/pages/vllm-0.32.0-end.prom")
	p := newPage(t, text(vllm))
	r := newRig(t, func(c *Config) { c.Endpoints = []string{p.URL} })
	serve := func(h http.HandlerFunc) { p.handler.Store(&h) }
	for range 3 {
		r.scrape(t)
	}
	serve(status(500))
	for range 3 {
		r.scrape(t)
	}
	serve(text(vllm))
	r.scrape(t)

	assert.Equal(t, []string{
		"llm.engine.state ok", "llm.engine.advice", "llm.engine.advice", "llm.engine.advice",
		"llm.engine.state unreachable", "llm.engine.state ok",
	}, r.events())
	assert.Equal(t, 6, r.zap.Len(), "the log says the same")
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, r.status.events)

	record := r.logs.AllLogs()[0].ResourceLogs().At(0)
	assert.Equal(t, "{llm.engine.kind=vllm,llm.engine.version=>=0.32,", flatAttrs(record.Resource().Attributes())[:len("{llm.engine.kind=vllm,llm.engine.version=>=0.32,")])
	advice := record.ScopeLogs().At(0).LogRecords().At(2)
	assert.Equal(t, "{llm.advice.flag=--kv-cache-metrics,llm.advice=block_metrics_off}", flatAttrs(advice.Attributes()))
	assert.Equal(t, "INFO", advice.SeverityText())
}

func TestRefusedEventsAreLogged(t *testing.T) {
	p := newPage(t, text("go_goroutines 1\n"))
	r := newRig(t, func(c *Config) { c.Endpoints = []string{p.URL} })
	r.engineScraper.logs = consumertest.NewErr(consumererror.NewPermanent(assert.AnError))
	r.scrape(t)
	assert.Equal(t, 1, r.zap.FilterMessage("engine events were refused").Len())
}

func TestItsOwnMetrics(t *testing.T) {
	p := newPage(t, text(readPage(t, "testdata/pages/llamacpp_2024-12_nan_real.prom")))
	r := newRig(t, func(c *Config) {
		c.Endpoints = []string{p.URL}
		c.MaxSeries = 5
	})
	r.scrape(t)
	h := status(500)
	p.handler.Store(&h)
	r.scrape(t)

	point := func(v int64, attrs ...attribute.KeyValue) []metricdata.DataPoint[int64] {
		return []metricdata.DataPoint[int64]{{Value: v, Attributes: attribute.NewSet(attrs...)}}
	}
	ignore := metricdatatest.IgnoreTimestamp()
	metadatatest.AssertEqualReceiverVllmScrapes(t, r.telemetry, []metricdata.DataPoint[int64]{
		{Value: 1, Attributes: attribute.NewSet(attribute.String("state", "ok"))},
		{Value: 1, Attributes: attribute.NewSet(attribute.String("state", "unreachable"))},
	}, ignore)
	metadatatest.AssertEqualReceiverVllmLinesBad(t, r.telemetry, point(1), ignore)
	metadatatest.AssertEqualReceiverVllmSeriesDropped(t, r.telemetry, point(1), ignore)
	metadatatest.AssertEqualReceiverVllmSeries(t, r.telemetry, point(5+6+1), ignore)
	metadatatest.AssertEqualReceiverVllmEndpoints(t, r.telemetry, point(1), ignore)

	r.cancel()
	r.close()
	metadatatest.AssertEqualReceiverVllmSeries(t, r.telemetry, point(0), ignore)
	metadatatest.AssertEqualReceiverVllmEndpoints(t, r.telemetry, point(0), ignore)
	r.client = nil // closed
}

func TestShutdownBreaksOffAScrape(t *testing.T) {
	asked := make(chan struct{}, 1)
	p := newPage(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoints = []string{p.URL}
	cfg.HTTP.Timeout = time.Hour
	sink := new(consumertest.MetricsSink)
	set := receiver.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	rcv, err := NewFactory().CreateMetrics(t.Context(), set, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, rcv.Start(t.Context(), componenttest.NewNopHost()))
	<-asked
	require.NoError(t, rcv.Shutdown(context.Background()))
	require.NoError(t, rcv.Shutdown(context.Background()), "twice")
	assert.Zero(t, sink.DataPointCount(), "a scrape that was broken off says nothing of the engine")
}

// Without end_series a receiver that is stopped, and started anew with its collector, says nothing at its end.
func TestShutdownSaysNothing(t *testing.T) {
	p := newPage(t, text(readPage(t, "testdata/pages/vllm-0.32.0-end.prom")))
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoints = []string{p.URL}
	cfg.Controller.CollectionInterval = time.Hour
	sink := new(consumertest.MetricsSink)
	set := receiver.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	rcv, err := NewFactory().CreateMetrics(t.Context(), set, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, rcv.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return len(sink.AllMetrics()) == 1 }, 10*time.Second, time.Millisecond)
	require.NoError(t, rcv.Shutdown(context.Background()))
	assert.Len(t, sink.AllMetrics(), 1)
}

// With end_series whatever was last said of an engine ends with the receiver, which receiver_creator stops when the pod is gone.
func TestShutdownEndsTheSeries(t *testing.T) {
	p := newPage(t, text(readPage(t, "testdata/pages/vllm-0.32.0-end.prom")))
	for name, next := range map[string]consumer.Metrics{"taken": new(consumertest.MetricsSink), "refused": consumertest.NewErr(assert.AnError)} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.Endpoints, cfg.EndSeries = []string{p.URL, "127.0.0.1:1"}, true
			cfg.Controller.CollectionInterval = time.Hour
			core, logs := observer.New(zap.WarnLevel)
			set := receiver.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
			set.Logger = zap.New(core)
			rcv, err := NewFactory().CreateMetrics(t.Context(), set, cfg, next)
			require.NoError(t, err)
			scraped := rcv.(*vllmReceiver).scraper
			require.NoError(t, rcv.Start(t.Context(), componenttest.NewNopHost()))
			sink, ok := next.(*consumertest.MetricsSink)
			if ok {
				require.Eventually(t, func() bool { return len(sink.AllMetrics()) == 1 }, 10*time.Second, time.Millisecond)
			} else {
				require.Eventually(t, func() bool { return logs.Len() > 0 }, 10*time.Second, time.Millisecond)
			}
			require.NoError(t, rcv.Shutdown(context.Background()))
			require.NotEmpty(t, scraped.endpoints)
			if !ok {
				assert.Equal(t, 1, logs.FilterMessageSnippet("the end of the series was refused").Len())
				return
			}
			all := sink.AllMetrics()
			require.Len(t, all, 2)
			first, last := flatLines(all[0]), flatLines(all[1])
			require.Len(t, last, len(first))
			for i := range last {
				series, _, _ := strings.Cut(first[i], " = ")
				assert.True(t, strings.HasPrefix(last[i], series), "%s, then %s", first[i], last[i])
				assert.True(t, strings.HasSuffix(last[i], "  gone"), last[i])
			}
		})
	}
}

func TestMetricsAndLogsShareTheirScrapes(t *testing.T) {
	var asked atomic.Int32
	body := readPage(t, "testdata/pages/vllm-0.32.0-end.prom")
	p := newPage(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(body))
	})
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoints = []string{p.URL}
	cfg.Controller.CollectionInterval = time.Hour
	f := NewFactory()
	set := receiver.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	metrics := new(consumertest.MetricsSink)
	logs := new(consumertest.LogsSink)
	m, err := f.CreateMetrics(t.Context(), set, cfg, metrics)
	require.NoError(t, err)
	l, err := f.CreateLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	assert.Same(t, m, l)
	require.NoError(t, m.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, l.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return metrics.DataPointCount() > 0 && logs.LogRecordCount() == 4 }, 10*time.Second, time.Millisecond)
	require.NoError(t, l.Shutdown(context.Background()))
	require.NoError(t, m.Shutdown(context.Background()))
	assert.EqualValues(t, 1, asked.Load())

	again, err := f.CreateLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	assert.NotSame(t, m, again, "a receiver that was shut down is not used again")
	require.NoError(t, again.Shutdown(context.Background()), "without Start")
}

func TestEnginesAreFoundOnThisHost(t *testing.T) {
	engine := newPage(t, text(readPage(t, "testdata/pages/sglang-0.5.23-end.prom")))
	other := newPage(t, text("go_goroutines 1\n"))
	r := newRig(t, func(c *Config) { c.Endpoints = []string{"auto"} })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	at := func(host string) []*url.URL { return []*url.URL{{Scheme: "http", Host: host, Path: "/metrics"}} }
	r.finder.places = []place{
		{candidates: at(strings.TrimPrefix(other.URL, "http://"))},
		{candidates: at(closed.Addr().String())},
		{candidates: at(strings.TrimPrefix(engine.URL, "http://"))},
	}
	md := r.scrape(t)
	assert.Equal(t, 1, md.ResourceMetrics().Len(), "neither a closed port nor another program is an endpoint")
	input, _ := totals(md, "llm.engine.input_tokens")
	assert.Equal(t, 957.0, input)
	require.Equal(t, 2, r.zap.Len())
	assert.Contains(t, r.zap.All()[0].ContextMap()["detail"], "found SGLang", "it says what it found")

	h := status(503)
	engine.handler.Store(&h)
	assert.Contains(t, upLine(r.scrape(t)), "{llm.engine.state=unreachable} = 0", "an engine that was found has states like any other")
	assert.Empty(t, r.status.events, "but an engine nobody asked for is no fault of the receiver's")

	r.clock = r.clock.Add(forgetAfter)
	last := flatLines(r.scrape(t))
	require.NotEmpty(t, last)
	assert.Contains(t, strings.Join(last, "\n"), "llm.engine.up")
	for _, line := range last {
		assert.True(t, strings.HasSuffix(line, "  gone"), line)
	}
	assert.Equal(t, 0, r.scrape(t).ResourceMetrics().Len(), "in the end it is forgotten, and its series have ended")
	h = text(readPage(t, "testdata/pages/sglang-0.5.23-end.prom"))
	engine.handler.Store(&h)
	r.clock = r.clock.Add(lookAgain)
	assert.Equal(t, 1, r.scrape(t).ResourceMetrics().Len(), "and found again")
}

func TestAPinLimitsWhatIsFound(t *testing.T) {
	engine := newPage(t, text(readPage(t, "testdata/pages/sglang-0.5.23-end.prom")))
	r := newRig(t, func(c *Config) { c.Engine = "vllm" })
	u, err := url.Parse(engine.URL + "/metrics")
	require.NoError(t, err)
	r.finder.places = []place{{candidates: []*url.URL{u}}}
	assert.Equal(t, 0, r.scrape(t).ResourceMetrics().Len())
}

func TestWhereItLooks(t *testing.T) {
	configured, err := url.Parse("http://localhost:8000/metrics")
	require.NoError(t, err)
	f := newFinder([]*url.URL{configured})
	var places []string
	now := scrapedAt
	for _, candidates := range f.due(now) {
		for _, u := range candidates {
			places = append(places, u.String())
		}
	}
	assert.Equal(t, []string{
		"http://127.0.0.1:30000/metrics", "http://127.0.0.1:8080/metrics", "http://127.0.0.1:8002/metrics", "http://127.0.0.1:23333/metrics",
		"http://127.0.0.1:8081/metrics", "http://127.0.0.1:3000/metrics",
	}, places, "all but the port that is configured")
	assert.Empty(t, f.due(now.Add(lookAgain-time.Second)), "not at every scrape")
	assert.Len(t, f.due(now.Add(lookAgain)), 6)
	assert.Equal(t, []string{"http://127.0.0.1:8000/metrics", "http://127.0.0.1:8000/prometheus/metrics"},
		[]string{newFinder(nil).due(now)[0][0].String(), newFinder(nil).due(now)[0][1].String()})
}

// flatLines are all points of a batch, a line each, in the order of the metrics.
func flatLines(md pmetric.Metrics) (lines []string) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				lines = append(lines, flatMetric(m)...)
			}
		}
	}
	return lines
}
