package llmspanconnector

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/record"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/sampling"
)

// maxWaiting bounds the records that a consumer has refused and that wait to be offered again.
const maxWaiting = 10_000

// recordsConnector writes one record for each request. The record of an engine's request leaves before the batch that brought it is
// acknowledged; a request that only a client or gateway reported leaves when its wait is over.
type recordsConnector struct {
	next      consumer.Logs
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	mode      RecordsMode
	// baseline is the threshold of records_baseline_ratio; with none no dropped trace has a record.
	baseline sampling.Threshold
	anyBase  bool
	tracker  *tracker
	expire   ticker

	mu      sync.Mutex // guards outbox and failing, and orders the offers
	outbox  plog.Logs
	failing bool
}

func newRecordsConnector(set connector.Settings, cfg *Config, next consumer.Logs) (*recordsConnector, error) {
	tb, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	c := &recordsConnector{next: next, logger: set.Logger, telemetry: tb, mode: cfg.Records, outbox: plog.NewLogs()}
	c.baseline, c.anyBase = sampling.Ratio(cfg.RecordsBaselineRatio)
	c.tracker, err = newTracker(cfg, tb, "records", c.write)
	if err != nil {
		return nil, err
	}
	err = tb.RegisterConnectorLlmspanRecordsWaitingCallback(func(_ context.Context, o metric.Int64Observer) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.Observe(int64(c.outbox.LogRecordCount()))
		return nil
	})
	c.expire = ticker{interval: tick(cfg.JoinWindow), run: func(ctx context.Context) {
		c.tracker.expire(ctx)
		_ = c.offer(ctx) // what is refused stays in the outbox, and is said once in the log
	}}
	return c, err
}

func (*recordsConnector) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (c *recordsConnector) Start(context.Context, component.Host) error {
	c.expire.start()
	return nil
}

// Shutdown settles what waits and offers it a last time.
func (c *recordsConnector) Shutdown(ctx context.Context) error {
	c.expire.stop()
	defer c.telemetry.Shutdown()
	c.tracker.drain(ctx)
	if err := c.offer(ctx); err != nil {
		c.drop(ctx, c.outbox.LogRecordCount(), "shutdown")
	}
	return nil
}

// ConsumeTraces fails when the records of the batch were refused, so that the sender keeps it. They stay in the outbox as well: when the
// sender comes again its spans are known, and the records leave once.
func (c *recordsConnector) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if c.mode == RecordsNone {
		return nil
	}
	c.tracker.add(ctx, td)
	return c.offer(ctx)
}

// write puts the records of settled requests into the outbox.
func (c *recordsConnector) write(res join.Result) {
	if len(res.Requests) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := record.NewWriter(c.outbox, c.tracker.now())
	for i := range res.Requests {
		if !c.wanted(&res.Requests[i].Request) {
			continue
		}
		if c.failing && c.outbox.LogRecordCount() >= maxWaiting {
			c.drop(context.Background(), 1, "outbox_full")
			continue
		}
		w.Write(&res.Requests[i])
	}
}

// wanted tells whether a request gets a record.
func (c *recordsConnector) wanted(r *request.Request) bool {
	if c.mode == RecordsAll || r.Decision != names.DecisionDrop {
		return true
	}
	return c.anyBase && c.baseline.ShouldSample(sampling.ReadState(r.TraceID, r.TraceState).Randomness)
}

// offer gives the outbox to the consumer.
func (c *recordsConnector) offer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.outbox.LogRecordCount()
	if n == 0 {
		return nil
	}
	// A consumer may change or keep what it is given, so it gets a copy of what may have to be offered again.
	out := plog.NewLogs()
	c.outbox.CopyTo(out)
	err, refused := c.next.ConsumeLogs(ctx, out), "request records were refused; they are offered again"
	switch {
	case err == nil:
		c.outbox = plog.NewLogs()
		c.telemetry.ConnectorLlmspanRecords.Add(ctx, int64(n))
		if c.failing {
			c.failing = false
			c.logger.Info("request records are accepted again")
		}
		return nil
	case consumererror.IsPermanent(err):
		c.outbox = plog.NewLogs()
		c.drop(ctx, n, "refused")
		refused = "request records were refused for good and are dropped"
	}
	if !c.failing {
		c.failing = true
		c.logger.Warn(refused, zap.Int("records", n), zap.Error(err))
	}
	return err
}

func (c *recordsConnector) drop(ctx context.Context, n int, reason string) {
	if n > 0 {
		c.telemetry.ConnectorLlmspanRecordsDropped.Add(ctx, int64(n), metric.WithAttributes(attribute.String("reason", reason)))
	}
}
