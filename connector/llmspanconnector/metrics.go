package llmspanconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector/internal/series"
	"github.com/otelcol-llm/otelcol-llm/internal/interval"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/measure"
)

// metricsConnector measures all requests and exports cumulative series at an interval and at the end.
type metricsConnector struct {
	next      consumer.Metrics
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	tracker   *tracker
	leave     func()
	store     *series.Store // guarded by tracker.mu
	expire    interval.Loop
	export    interval.Loop
	failing   bool // of the export goroutine, and of Shutdown after it

	reportedOverflow, reportedExpired int64
}

func newMetricsConnector(set connector.Settings, cfg *Config, next consumer.Metrics, shared *trackers) (*metricsConnector, error) {
	tb, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	c := &metricsConnector{
		next: next, logger: set.Logger, telemetry: tb,
		store: series.New(series.Config{
			MaxSeries: cfg.Metrics.MaxSeries, Expiry: cfg.Metrics.Expiry, Exponential: cfg.Histograms.Exponential,
		}),
	}
	m := measure.New(c.store)
	c.tracker, c.leave, err = shared.attach(outputMetrics, set.TelemetrySettings, cfg, func(now time.Time, s *settled) {
		c.store.SetNow(now)
		for _, r := range s.decided {
			m.Trace(r)
		}
		for _, r := range s.Engines {
			m.Engine(r)
		}
		for i := range s.Requests {
			m.Request(&s.Requests[i])
		}
		for i := range s.Notes {
			m.Note(&s.Notes[i])
		}
	})
	if err != nil {
		return nil, err
	}
	err = tb.RegisterConnectorLlmspanSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
		c.tracker.mu.Lock()
		defer c.tracker.mu.Unlock()
		o.Observe(int64(c.store.Len()))
		return nil
	})
	if err != nil {
		c.leave()
		return nil, err
	}
	c.expire = interval.Loop{Every: tick(cfg.JoinWindow), Run: c.tracker.expire}
	c.export = interval.Loop{Every: cfg.Metrics.Interval, Run: c.flush}
	return c, nil
}

// tick is how often held spans are looked at: often enough that a window is not overstayed by more than a tenth.
func tick(window time.Duration) time.Duration { return max(window/10, 100*time.Millisecond) }

func (*metricsConnector) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (c *metricsConnector) Start(context.Context, component.Host) error {
	if c.tracker.leads(outputMetrics) {
		c.expire.Start()
	}
	c.export.Start()
	return nil
}

// Shutdown settles what waits, for all outputs, and exports the last figures.
func (c *metricsConnector) Shutdown(ctx context.Context) error {
	c.expire.Stop()
	c.export.Stop()
	defer c.telemetry.Shutdown()
	c.tracker.drain(ctx)
	c.flush(ctx)
	c.leave()
	return nil
}

// ConsumeTraces has nothing to do where records are made as well: what their instance is given is measured with it.
func (c *metricsConnector) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if c.tracker.leads(outputMetrics) {
		c.tracker.add(ctx, td)
	}
	return nil
}

// flush exports every series. A failed export loses nothing: the series are cumulative and the next export carries them.
func (c *metricsConnector) flush(ctx context.Context) {
	md := c.collect(ctx)
	if md.ResourceMetrics().Len() == 0 {
		return
	}
	err := c.next.ConsumeMetrics(ctx, md)
	if err == nil {
		c.tracker.mu.Lock()
		c.store.Taken()
		c.tracker.mu.Unlock()
	}
	switch {
	case err != nil && !c.failing:
		c.failing = true
		c.logger.Warn("metrics were refused; they are offered again at the next interval", zap.Error(err))
	case err == nil && c.failing:
		c.failing = false
		c.logger.Info("metrics are accepted again")
	}
}

func (c *metricsConnector) collect(ctx context.Context) pmetric.Metrics {
	c.tracker.mu.Lock()
	defer c.tracker.mu.Unlock()
	md := c.store.Export(c.tracker.now())
	if d := c.store.Overflowed - c.reportedOverflow; d > 0 {
		c.telemetry.ConnectorLlmspanSeriesOverflowed.Add(ctx, d)
		c.reportedOverflow += d
	}
	if d := c.store.Expired - c.reportedExpired; d > 0 {
		c.telemetry.ConnectorLlmspanSeriesExpired.Add(ctx, d)
		c.reportedExpired += d
	}
	return md
}
