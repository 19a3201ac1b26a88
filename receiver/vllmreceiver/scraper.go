package vllmreceiver

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/target"
)

const (
	// seriesExpiry is how long a series that is gone is remembered: a busy llama.cpp may miss scrapes for a minute, a model takes minutes to load.
	seriesExpiry = 15 * time.Minute
	// maxFamilies bounds the families that raw remembers for one endpoint; a page has some 100.
	maxFamilies = 2000
	// maxParallel bounds the requests in flight.
	maxParallel = 64
)

// engineScraper asks all endpoints at once and waits for them. It is used by one goroutine, the controller's.
type engineScraper struct {
	cfg       *Config
	set       receiver.Settings
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	logs      consumer.Logs
	now       func() time.Time

	ctx    context.Context // ends with Shutdown
	cancel context.CancelFunc
	client *http.Client

	endpoints []*endpoint
	finder    *finder // nil when only configured endpoints are scraped
	health    health
	held      int
}

// endpoint is one page and what is known of it.
type endpoint struct {
	url    *url.URL
	found  bool // by discovery
	target *target.Target
	report target.Report
	answer target.Answer
	body   bytes.Buffer // of the last answer, for its memory
	at     time.Time
}

func newScraper(set receiver.Settings, cfg *Config) (*engineScraper, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	pages, discover, err := cfg.targets()
	if err != nil {
		return nil, err
	}
	s := &engineScraper{cfg: cfg, set: set, logger: set.Logger, telemetry: telemetry, now: time.Now}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, u := range pages {
		s.endpoints = append(s.endpoints, s.endpoint(u))
	}
	if discover {
		s.finder = newFinder(pages)
	}
	return s, nil
}

func (s *engineScraper) endpoint(u *url.URL) *endpoint {
	pin := s.cfg.Engine
	if pin == auto {
		pin = ""
	}
	return &endpoint{url: u, target: target.New(target.Options{
		Pin: pin, Path: u.Path, Raw: s.cfg.Raw, MaxSeries: s.cfg.MaxSeries, MaxFamilies: maxFamilies, Expiry: seriesExpiry,
	})}
}

// Start builds the HTTP client.
func (s *engineScraper) Start(ctx context.Context, host component.Host) error {
	client, err := s.cfg.HTTP.ToClient(ctx, host.GetExtensions(), s.set.TelemetrySettings)
	if err != nil {
		return err
	}
	s.client = client
	s.health.host = host
	s.telemetry.ReceiverVllmEndpoints.Add(ctx, int64(len(s.endpoints)))
	return nil
}

// Shutdown has nothing to do: the receiver closes the scraper, started or not.
func (s *engineScraper) Shutdown(context.Context) error { return nil }

func (s *engineScraper) close() {
	if s.client != nil {
		s.client.CloseIdleConnections()
		s.telemetry.ReceiverVllmSeries.Add(context.Background(), -int64(s.held))
		s.telemetry.ReceiverVllmEndpoints.Add(context.Background(), -int64(len(s.endpoints)))
	}
	s.telemetry.Shutdown()
}

// ScrapeMetrics never fails: what is wrong with an endpoint is a state of it, told once.
func (s *engineScraper) ScrapeMetrics(context.Context) (pmetric.Metrics, error) {
	md := pmetric.NewMetrics()
	s.discover(md)
	s.ask(s.endpoints)
	if s.ctx.Err() != nil {
		return md, nil //nolint:nilerr // the receiver is shutting down, which is no failure of a scrape
	}
	ld := plog.NewLogs()
	held := 0
	for _, e := range s.endpoints {
		before := e.report
		e.report = e.target.Observe(e.at, e.answer)
		e.answer.Body = ""
		s.encode(md, ld, e, before)
		held += e.report.Held
	}
	s.telemetry.ReceiverVllmSeries.Add(s.ctx, int64(held-s.held))
	s.held = held
	s.health.report(s.endpoints)
	if s.logs != nil && ld.LogRecordCount() > 0 {
		if err := s.logs.ConsumeLogs(s.ctx, ld); err != nil {
			s.logger.Warn("engine events were refused", zap.Error(err), zap.Int("log_records", ld.LogRecordCount()))
		}
	}
	return md, nil
}

// ask fills in the answers of endpoints, all at once.
func (s *engineScraper) ask(endpoints []*endpoint) {
	free := make(chan struct{}, maxParallel)
	var wg sync.WaitGroup
	for _, e := range endpoints {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			started := s.now()
			e.answer = fetch(s.ctx, s.client, e.url, s.cfg.MaxPageBytes, &e.body)
			e.at = s.now()
			e.answer.Took = e.at.Sub(started)
		})
	}
	wg.Wait()
}

// discover adds engines that have come up on the usual ports and drops those that have been away for long, whose series end.
func (s *engineScraper) discover(md pmetric.Metrics) {
	if s.finder == nil {
		return
	}
	now := s.now()
	kept := s.endpoints[:0]
	for _, e := range s.endpoints {
		if e.found && e.report.State != "" && !e.report.State.Up() && s.finder.away(e.url, now) {
			s.telemetry.ReceiverVllmEndpoints.Add(s.ctx, -1)
			s.held -= e.report.Held
			s.telemetry.ReceiverVllmSeries.Add(s.ctx, -int64(e.report.Held))
			s.end(md, e)
			s.logger.Info("engine forgotten", zap.String("endpoint", e.url.Host), zap.Duration("away", forgetAfter))
			continue
		}
		if e.found && e.report.State.Up() {
			s.finder.here(e.url, now)
		}
		kept = append(kept, e)
	}
	clear(s.endpoints[len(kept):])
	s.endpoints = kept

	for _, candidates := range s.finder.due(now) {
		probes := make([]*endpoint, len(candidates))
		for i, u := range candidates {
			probes[i] = &endpoint{url: u, target: target.New(target.Options{MaxSeries: s.cfg.MaxSeries})}
		}
		s.ask(probes)
		for _, p := range probes {
			r := p.target.Observe(p.at, p.answer)
			if !r.State.Up() || r.Kind == "" || s.cfg.Engine != auto && s.cfg.Engine != r.Kind {
				continue
			}
			e := s.endpoint(p.url)
			e.found = true
			s.finder.here(e.url, now)
			s.endpoints = append(s.endpoints, e)
			s.telemetry.ReceiverVllmEndpoints.Add(s.ctx, 1)
			break // one page a port
		}
	}
}

func (s *engineScraper) count(e *endpoint) {
	s.telemetry.ReceiverVllmScrapes.Add(s.ctx, 1, metric.WithAttributes(attribute.String("state", string(e.report.State))))
	if e.report.BadLines > 0 {
		s.telemetry.ReceiverVllmLinesBad.Add(s.ctx, int64(e.report.BadLines))
	}
	if e.report.Dropped > 0 {
		s.telemetry.ReceiverVllmSeriesDropped.Add(s.ctx, int64(e.report.Dropped))
	}
}
