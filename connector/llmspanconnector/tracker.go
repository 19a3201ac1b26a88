package llmspanconnector

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/dialect"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/split"
)

// rememberRetries is how long a request span is told from a retry. OTLP senders give up after five minutes by default.
const rememberRetries = 5 * time.Minute

// tracker joins the spans of batches to requests for one output, and counts what it does.
//
// The metrics and the records of one connector each have a tracker of their own: they are instances in pipelines of their own, and
// the same spans give both the same requests. What that costs is memory for the compact requests, never for text.
type tracker struct {
	now       func() time.Time
	telemetry *metadata.TelemetryBuilder
	attrs     metric.MeasurementOption

	mu     sync.Mutex // guards joiner, and orders what settle sees
	joiner *join.Joiner
	settle func(join.Result) // called with mu held
	// traces, when set, is called with mu held with one span of each trace that was decided on.
	traces func([]*request.Request)
}

func newTracker(cfg *Config, tb *metadata.TelemetryBuilder, output string, settle func(join.Result)) (*tracker, error) {
	set := attribute.NewSet(attribute.String("output", output))
	t := &tracker{
		now: time.Now, telemetry: tb, attrs: metric.WithAttributeSet(set), settle: settle,
		joiner: join.New(join.Config{Window: cfg.JoinWindow, Remember: rememberRetries, MaxSpans: cfg.MaxSpans}),
	}
	gauge := func(f func() int) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			o.Observe(int64(f()), t.attrs)
			return nil
		}
	}
	if err := tb.RegisterConnectorLlmspanHeldCallback(gauge(func() int { return t.joiner.Held() })); err != nil {
		return nil, err
	}
	return t, tb.RegisterConnectorLlmspanRememberedCallback(gauge(func() int { return t.joiner.Remembered() }))
}

// add takes a batch.
func (t *tracker) add(ctx context.Context, td ptrace.Traces) {
	b := readBatch(td)
	if len(b.spans) == 0 {
		return
	}
	t.telemetry.ConnectorLlmspanRequestSpans.Add(ctx, int64(b.requests), t.attrs)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.traces != nil {
		t.traces(b.decided)
	}
	t.report(ctx, t.joiner.Add(t.now(), b.spans, b.whole))
}

// expire settles what has waited long enough.
func (t *tracker) expire(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report(ctx, t.joiner.Expire(t.now()))
}

// drain settles everything.
func (t *tracker) drain(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report(ctx, t.joiner.Drain())
}

func (t *tracker) report(ctx context.Context, res join.Result) {
	t.settle(res)
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
			c.counter.Add(ctx, int64(c.n), t.attrs)
		}
	}
}

// batch is the spans of one call as the joiner needs them.
type batch struct {
	spans []join.Span
	// requests is the number of spans that report a request.
	requests int
	// whole says that the traces in the batch were assembled and decided on, so that nothing has to be waited for.
	whole bool
	// decided has one span of each such trace.
	decided []*request.Request
}

// readBatch reads the spans of a batch. Our own stage spans are left out.
func readBatch(td ptrace.Traces) batch {
	b := batch{spans: make([]join.Span, 0, td.SpanCount())}
	var traces map[pcommon.TraceID]struct{} // those of decided
	for _, rs := range td.ResourceSpans().All() {
		var source *request.Source
		for _, ss := range rs.ScopeSpans().All() {
			if ss.Scope().Name() == split.ScopeName {
				continue
			}
			if source == nil {
				source = dialect.ReadResource(rs.Resource())
			}
			for _, span := range ss.Spans().All() {
				s := join.Span{TraceID: span.TraceID(), SpanID: span.SpanID(), ParentID: span.ParentSpanID()}
				r, ok := dialect.Read(span, source)
				keep := func() *request.Request { // only what is kept goes to the heap
					kept := r
					return &kept
				}
				if r.Decision != "" {
					b.whole = true
					if _, seen := traces[r.TraceID]; !seen && !r.Partial {
						if traces == nil {
							traces = map[pcommon.TraceID]struct{}{}
						}
						traces[r.TraceID] = struct{}{}
						b.decided = append(b.decided, keep())
					}
				}
				switch {
				case ok && !r.LayerOnly:
					s.Request = keep()
					b.requests++
				case ok && r.Operation != "":
					s.Request = keep() // a plain layer around one call
				case leaf(span):
					continue
				}
				b.spans = append(b.spans, s)
			}
		}
	}
	return b
}

// leaf tells the spans of single ASGI events, of which a streamed answer has hundreds and below which nothing stands.
func leaf(span ptrace.Span) bool {
	if span.Kind() != ptrace.SpanKindInternal {
		return false
	}
	_, ok := span.Attributes().Get("asgi.event.type")
	return ok
}
