package llmspanconnector

import (
	"context"
	"slices"
	"sync"
	"time"

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
	"github.com/otelcol-llm/otelcol-llm/internal/interval"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/record"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/sampling"
)

// portion is how many records are offered at a time, but for those of a batch, and up to how many requests memory is used again.
const portion = 1024

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
	leave    func()
	expire   interval.Loop

	// offering is held while the consumer is called. Who comes meanwhile waits for it, because his records may be among those on offer.
	offering sync.Mutex

	mu      sync.Mutex // guards all below; never held while the consumer is called, since the tracker waits for it
	outbox  []entry
	waiting int // requests in the outbox
	failing bool
	spare   []join.Logical // memory of requests whose records were accepted
}

// entry is the requests that were settled at one time. They are written when they are offered, and again when they are offered again: a
// consumer may change or keep the records that it is given.
type entry struct {
	now      time.Time
	requests []join.Logical
}

func newRecordsConnector(set connector.Settings, cfg *Config, next consumer.Logs, shared *trackers) (*recordsConnector, error) {
	tb, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	c := &recordsConnector{next: next, logger: set.Logger, telemetry: tb, mode: cfg.Records}
	c.baseline, c.anyBase = sampling.Ratio(cfg.RecordsBaselineRatio)
	c.tracker, c.leave, err = shared.attach(outputRecords, set.TelemetrySettings, cfg, c.take)
	if err != nil {
		return nil, err
	}
	err = tb.RegisterConnectorLlmspanRecordsWaitingCallback(func(_ context.Context, o metric.Int64Observer) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.failing {
			o.Observe(int64(c.waiting))
		} else {
			o.Observe(0) // what is in the outbox is on offer for the first time
		}
		return nil
	})
	if err != nil {
		c.leave()
		return nil, err
	}
	c.expire = interval.Loop{Every: tick(cfg.JoinWindow), Run: func(ctx context.Context) {
		c.tracker.expire(ctx)
		_ = c.offer(ctx) // what is refused stays in the outbox, and is said once in the log
	}}
	return c, nil
}

func (*recordsConnector) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (c *recordsConnector) Start(context.Context, component.Host) error {
	c.expire.Start()
	return nil
}

// Shutdown settles what waits, for all outputs, and offers the records a last time.
func (c *recordsConnector) Shutdown(ctx context.Context) error {
	c.expire.Stop()
	defer c.telemetry.Shutdown()
	c.tracker.drain(ctx)
	c.leave()
	if err := c.offer(ctx); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.drop(ctx, c.waiting, "shutdown")
		c.outbox, c.waiting = nil, 0
	}
	return nil
}

// ConsumeTraces fails when the records of the batch were refused, so that the sender keeps it. They stay in the outbox as well: when the
// sender comes again its spans are known, and the records leave once.
func (c *recordsConnector) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	c.tracker.add(ctx, td)
	return c.offer(ctx)
}

// take puts settled requests into the outbox.
func (c *recordsConnector) take(now time.Time, s *settled) {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests := c.wanted(s.Requests)
	if len(requests) == 0 {
		return
	}
	if c.failing {
		if room := max(0, maxWaiting-c.waiting); len(requests) > room {
			c.drop(context.Background(), len(requests)-room, "outbox_full")
			requests = requests[:room]
		}
		if len(requests) == 0 {
			return
		}
	}
	c.outbox = append(c.outbox, entry{now, requests})
	c.waiting += len(requests)
}

// wanted is a copy of the requests that get a record.
func (c *recordsConnector) wanted(all []join.Logical) []join.Logical {
	n := 0
	for i := range all {
		if c.wants(&all[i].Request) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	some := slices.Grow(c.spare, n)
	c.spare = nil
	if n == len(all) {
		return append(some, all...)
	}
	for i := range all {
		if c.wants(&all[i].Request) {
			some = append(some, all[i])
		}
	}
	return some
}

func (c *recordsConnector) wants(r *request.Request) bool {
	if c.mode == RecordsAll || r.Decision != names.DecisionDrop {
		return true
	}
	return c.anyBase && c.baseline.ShouldSample(sampling.ReadState(r.TraceID, r.TraceState).Randomness)
}

// offer gives the consumer the records of what is in the outbox, in portions. It ends when one is refused, but for good.
func (c *recordsConnector) offer(ctx context.Context) error {
	c.offering.Lock()
	defer c.offering.Unlock()
	c.mu.Lock()
	left := c.waiting // what comes meanwhile is offered by those who bring it
	c.mu.Unlock()
	var refused error
	for left > 0 {
		n, err := c.offerPortion(ctx)
		left -= n
		if err != nil {
			refused = err
		}
		if n == 0 || err != nil && !consumererror.IsPermanent(err) {
			break
		}
	}
	return refused
}

// offerPortion offers the first records of the outbox, and says how many.
func (c *recordsConnector) offerPortion(ctx context.Context) (n int, err error) {
	c.mu.Lock()
	box := c.outbox
	c.mu.Unlock()
	entries := 0
	for entries < len(box) && n < portion {
		n += len(box[entries].requests)
		entries++
	}
	if n == 0 {
		return 0, nil
	}
	box = box[:entries]
	out := plog.NewLogs()
	for _, e := range box {
		w := record.NewWriter(out, e.now)
		for i := range e.requests {
			w.Write(&e.requests[i])
		}
	}
	err = c.next.ConsumeLogs(ctx, out)
	c.mu.Lock()
	defer c.mu.Unlock()
	refused := "request records were refused; they are offered again"
	switch {
	case err == nil:
		c.empty(entries, n)
		c.telemetry.ConnectorLlmspanRecords.Add(ctx, int64(n))
		if c.failing {
			c.failing = false
			c.logger.Info("request records are accepted again")
		}
		return n, nil
	case consumererror.IsPermanent(err):
		c.empty(entries, n)
		c.drop(ctx, n, "refused")
		refused = "request records were refused for good and are dropped"
	}
	if !c.failing {
		c.failing = true
		c.logger.Warn(refused, zap.Int("records", n), zap.Error(err))
	}
	return n, err
}

// empty removes what was on offer from the outbox; behind it is what came meanwhile.
func (c *recordsConnector) empty(entries, requests int) {
	if last := c.outbox[entries-1].requests; cap(last) <= portion {
		clear(last)
		c.spare = last[:0]
	}
	c.outbox = slices.Delete(c.outbox, 0, entries)
	c.waiting -= requests
}

func (c *recordsConnector) drop(ctx context.Context, n int, reason string) {
	if n > 0 {
		c.telemetry.ConnectorLlmspanRecordsDropped.Add(ctx, int64(n), metric.WithAttributes(attribute.String("reason", reason)))
	}
}

// noRecords is the instance of a connector that was asked for no records.
type noRecords struct {
	component.StartFunc
	component.ShutdownFunc
}

func (noRecords) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (noRecords) ConsumeTraces(context.Context, ptrace.Traces) error { return nil }
