package vllmreceiver

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/scraper/scraperhelper"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/metadata"
)

// vllmReceiver is one configuration's receiver, shared by its metrics and its logs pipelines. Consumers are set before Start and not changed.
type vllmReceiver struct {
	cfg     *Config
	set     receiver.Settings
	metrics consumer.Metrics // nil when there is no metrics pipeline
	logs    consumer.Logs    // nil when there is no logs pipeline
	leave   func()
	scraper *engineScraper

	start, stop sync.Once
	controller  receiver.Metrics
}

func newReceiver(set receiver.Settings, cfg *Config) (*vllmReceiver, error) {
	s, err := newScraper(set, cfg)
	if err != nil {
		return nil, err
	}
	return &vllmReceiver{cfg: cfg, set: set, scraper: s, leave: func() {}}, nil
}

// Start begins to scrape; the second of the two pipelines finds it started.
func (r *vllmReceiver) Start(ctx context.Context, host component.Host) error {
	var err error
	r.start.Do(func() {
		next := r.metrics
		if next == nil {
			if next, err = consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return nil }); err != nil {
				return
			}
		}
		r.scraper.logs = r.logs
		controller := r.cfg.Controller
		controller.Timeout = 0 // every request has its own
		if r.controller, err = scraperhelper.NewMetricsController(&controller, r.set, next,
			scraperhelper.AddMetricsScraper(metadata.Type, r.scraper)); err != nil {
			return
		}
		err = r.controller.Start(ctx, host)
	})
	return err
}

// Shutdown breaks off the scrape that runs and waits for it. With end_series it says of every series that it ends: that is how the series of a pod
// that is gone end under receiver_creator, instead of standing still for Prometheus' five minutes. Safe twice and without Start.
func (r *vllmReceiver) Shutdown(ctx context.Context) error {
	var err error
	r.stop.Do(func() {
		r.leave()
		r.scraper.cancel()
		r.start.Do(func() {}) // a Start that comes later does nothing
		if r.controller != nil {
			err = r.controller.Shutdown(ctx)
			r.end(ctx)
		}
		r.scraper.close()
	})
	return err
}

// end sends the last points.
func (r *vllmReceiver) end(ctx context.Context) {
	if r.metrics == nil || !r.cfg.EndSeries {
		return
	}
	md := pmetric.NewMetrics()
	for _, e := range r.scraper.endpoints {
		r.scraper.end(md, e)
	}
	if md.ResourceMetrics().Len() == 0 {
		return
	}
	if err := r.metrics.ConsumeMetrics(ctx, md); err != nil {
		r.set.Logger.Warn("the end of the series was refused; they stand still until their backend forgets them", zap.Error(err))
	}
}
