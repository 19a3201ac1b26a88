package llmspanprocessor

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor/internal/metadata"
)

// outbox passes decided traces on. What the next consumer refuses waits and is offered again, in order, up to a number of bytes; while
// something waits beyond half of it, new data is refused.
type outbox struct {
	next      consumer.Traces
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	maxBytes  int

	mu      sync.Mutex // guards all below, and orders what is passed on
	waiting []ptrace.Traces
	bytes   int
	count   int
	failing bool
	sizer   ptrace.ProtoMarshaler
}

// put passes batches on, behind what waits.
func (o *outbox) put(ctx context.Context, batches []ptrace.Traces) {
	if len(batches) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, td := range batches {
		if len(o.waiting) == 0 && o.send(ctx, td) {
			continue
		}
		size := o.sizer.TracesSize(td)
		if o.bytes+size > o.maxBytes {
			o.drop(ctx, td.SpanCount(), "undelivered")
			continue
		}
		o.waiting = append(o.waiting, td)
		o.bytes += size
		o.count += td.SpanCount()
	}
}

// offer offers again what waits, until something is refused.
func (o *outbox) offer(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush(ctx)
}

func (o *outbox) flush(ctx context.Context) {
	for len(o.waiting) > 0 {
		td := o.waiting[0]
		size, spans := o.sizer.TracesSize(td), td.SpanCount()
		if !o.send(ctx, td) {
			return
		}
		o.waiting[0] = ptrace.Traces{}
		o.waiting = o.waiting[1:]
		o.bytes -= size
		o.count -= spans
	}
	o.waiting, o.bytes, o.count = nil, 0, 0
}

// close offers a last time and counts what is lost.
func (o *outbox) close(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush(ctx)
	if o.count > 0 {
		o.drop(ctx, o.count, "shutdown")
		o.logger.Error("spans could not be passed on before the end", zap.Int("spans", o.count))
		o.waiting, o.bytes, o.count = nil, 0, 0
	}
}

// send passes one batch on. It is done with it when the consumer took it or will never take it.
func (o *outbox) send(ctx context.Context, td ptrace.Traces) bool {
	n := td.SpanCount()
	// A consumer may change what it refuses. Once it has refused something, what may have to be offered again is kept apart from what it
	// gets; copying every batch before that would double the cost of passing on.
	give := td
	if o.failing {
		give = ptrace.NewTraces()
		td.CopyTo(give)
	}
	err := o.next.ConsumeTraces(ctx, give)
	switch {
	case err == nil:
		o.telemetry.ProcessorLlmspanSpansOut.Add(ctx, int64(n))
		if o.failing {
			o.failing = false
			o.logger.Info("decided traces are accepted again")
		}
		return true
	case consumererror.IsPermanent(err):
		o.drop(ctx, n, "refused")
		o.fail(err)
		return true
	}
	o.fail(err)
	return false
}

func (o *outbox) fail(err error) {
	if !o.failing {
		o.failing = true
		o.logger.Warn("decided traces were refused; they wait and are offered again", zap.Error(err))
	}
}

func (o *outbox) drop(ctx context.Context, spans int, reason string) {
	o.telemetry.ProcessorLlmspanSpansDropped.Add(ctx, int64(spans), metric.WithAttributes(attribute.String("reason", reason)))
}

// full is an error while more waits than may be added to.
func (o *outbox) full() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bytes < o.maxBytes/2 {
		return nil
	}
	return fmt.Errorf("llmspan: %d spans that were decided on wait for a consumer that refuses them; send again later", o.count)
}

func (o *outbox) spans() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}
