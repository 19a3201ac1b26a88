package llmspanconnector

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// rememberRetries is how long a request span is told from a retry. OTLP senders give up after five minutes by default.
const rememberRetries = 5 * time.Minute

// settled is what one call of a tracker settled.
type settled struct {
	join.Result
	// decided has one span of each trace that was decided on.
	decided []*request.Request
}

// sink takes what was settled at a time, with tracker.mu held: it must be quick, and keep nothing of it but copies.
type sink func(time.Time, *settled)

// tracker joins the spans of batches to requests, once for all outputs of a connector, and counts what it does.
//
// Every pipeline of traces that ends in a connector feeds each of its instances with the same batches. The tracker takes them from one
// instance, which leads: that of the records, because it has to refuse a batch whose records are refused, else that of the metrics.
type tracker struct {
	now       func() time.Time
	telemetry *metadata.TelemetryBuilder
	recorded  atomic.Bool // there is an instance of records

	mu     sync.Mutex // guards all below, and orders what the sinks see
	joiner *join.Joiner
	sinks  [numOutputs]sink // nil where there is no instance
}

func newTracker(cfg *Config, set component.TelemetrySettings) (*tracker, error) {
	tb, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	t := &tracker{
		now: time.Now, telemetry: tb,
		joiner: join.New(join.Config{Window: cfg.JoinWindow, Remember: rememberRetries, MaxSpans: cfg.MaxSpans}),
	}
	gauge := func(f func() int) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			o.Observe(int64(f()))
			return nil
		}
	}
	if err := tb.RegisterConnectorLlmspanHeldCallback(gauge(func() int { return t.joiner.Held() })); err != nil {
		return nil, err
	}
	return t, tb.RegisterConnectorLlmspanRememberedCallback(gauge(func() int { return t.joiner.Remembered() }))
}

// leads tells whether the batches are taken from the instance of an output.
func (t *tracker) leads(o output) bool { return o == outputRecords || !t.recorded.Load() }

func (t *tracker) has(o output) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sinks[o] != nil
}

func (t *tracker) set(o output, to sink) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sinks[o] = to
	t.recorded.Store(t.sinks[outputRecords] != nil)
}

// add takes a batch.
func (t *tracker) add(ctx context.Context, td ptrace.Traces) {
	b := batches.Get().(*batch)
	defer b.done()
	b.read(td)
	if len(b.spans) == 0 {
		return
	}
	t.telemetry.ConnectorLlmspanRequestSpans.Add(ctx, int64(b.requests))
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.report(ctx, now, &settled{t.joiner.Add(now, b.spans, b.whole), b.decided})
}

// expire settles what has waited long enough.
func (t *tracker) expire(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.joiner.Expire(now, func(res join.Result) { t.report(ctx, now, &settled{Result: res}) })
}

// drain settles everything.
func (t *tracker) drain(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.joiner.Drain(func(res join.Result) { t.report(ctx, now, &settled{Result: res}) })
}

func (t *tracker) report(ctx context.Context, now time.Time, res *settled) {
	for _, to := range t.sinks {
		if to != nil {
			to(now, res)
		}
	}
	defer t.joiner.Reuse(res.Result)
	requests := 0
	for i := range res.Requests {
		if res.Requests[i].First {
			requests++
		}
	}
	for _, c := range [...]struct {
		counter metric.Int64Counter
		n       int
	}{
		{t.telemetry.ConnectorLlmspanRequests, requests},
		{t.telemetry.ConnectorLlmspanSettled, res.Settled},
		{t.telemetry.ConnectorLlmspanDuplicates, res.Duplicates},
		{t.telemetry.ConnectorLlmspanUnresolved, res.Unresolved},
		{t.telemetry.ConnectorLlmspanSettledEarly, res.Early},
	} {
		if c.n > 0 {
			c.counter.Add(ctx, int64(c.n))
		}
	}
}
