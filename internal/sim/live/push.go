package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

// Pusher sends export requests by OTLP/HTTP (protobuf), in order, with retries. Its queue is bounded; a request that does not
// fit, is refused for good, or fails for longer than its patience is dropped and reported.
type Pusher struct {
	client  *http.Client
	url     string
	report  func(Sent)
	queue   chan sim.Export
	backoff time.Duration
	tries   int

	mu      sync.Mutex
	pending int
	idle    []chan struct{} // closed when nothing is pending
}

// Sent is what became of one export request. Err is nil when it was accepted.
type Sent struct {
	Service string
	Spans   int
	Tries   int
	Err     error
}

// Reason is why an export request was dropped.
type Reason string

// Reasons.
const (
	ReasonQueueFull   Reason = "queue_full"
	ReasonRefused     Reason = "refused"     // the receiver does not want it
	ReasonUnreachable Reason = "unreachable" // no try was answered, or all were answered "later"
	ReasonShutdown    Reason = "shutdown"
)

var (
	errQueueFull = errors.New("the queue is full")
	errRefused   = errors.New("refused")
)

// Reason says why; empty when it was accepted.
func (s Sent) Reason() Reason {
	switch {
	case s.Err == nil:
		return ""
	case errors.Is(s.Err, errQueueFull):
		return ReasonQueueFull
	case errors.Is(s.Err, context.Canceled):
		return ReasonShutdown
	case errors.Is(s.Err, errRefused):
		return ReasonRefused
	}
	return ReasonUnreachable
}

// NewPusher sends to url, the full address of a traces endpoint. At most capacity requests wait. Report is called for every
// request, from Push or from Run.
func NewPusher(client *http.Client, url string, capacity int, report func(Sent)) *Pusher {
	return &Pusher{client: client, url: url, report: report, queue: make(chan sim.Export, capacity), backoff: 250 * time.Millisecond, tries: 7}
}

// Push queues requests. It does not block.
func (p *Pusher) Push(all []sim.Export) {
	for _, e := range all {
		p.mu.Lock()
		p.pending++
		p.mu.Unlock()
		select {
		case p.queue <- e:
		default:
			p.done(e, 0, errQueueFull)
		}
	}
}

// Run sends until ctx ends. What is left in the queue then is reported as dropped.
func (p *Pusher) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			for {
				select {
				case e := <-p.queue:
					p.done(e, 0, ctx.Err())
				default:
					return
				}
			}
		case e := <-p.queue:
			tries, err := p.send(ctx, e)
			p.done(e, tries, err)
		}
	}
}

// Flush waits until nothing is pending: all was sent or dropped, or ctx ends.
func (p *Pusher) Flush(ctx context.Context) error {
	empty := make(chan struct{})
	p.mu.Lock()
	if p.pending == 0 {
		close(empty)
	} else {
		p.idle = append(p.idle, empty)
	}
	p.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Pusher) done(e sim.Export, tries int, err error) {
	p.report(Sent{Service: e.Service, Spans: e.Traces.SpanCount(), Tries: tries, Err: err})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending--; p.pending == 0 {
		for _, c := range p.idle {
			close(c)
		}
		p.idle = nil
	}
}

// send tries until the request is accepted. 429, 502, 503, 504 and transport errors are worth another try (OTLP).
func (p *Pusher) send(ctx context.Context, e sim.Export) (int, error) {
	body, err := ptraceotlp.NewExportRequestFromTraces(e.Traces).MarshalProto()
	if err != nil {
		return 0, err
	}
	wait := p.backoff
	for try := 1; ; try++ {
		again, err := p.post(ctx, body)
		if err == nil || !again || try == p.tries {
			return try, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return try, errors.Join(err, ctx.Err())
		case <-timer.C:
		}
		wait = min(2*wait, 10*time.Second)
	}
}

func (p *Pusher) post(ctx context.Context, body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := p.client.Do(req)
	if err != nil {
		return ctx.Err() == nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return true, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		r := ptraceotlp.NewExportResponse()
		if err := r.UnmarshalProto(answer); err == nil && r.PartialSuccess().RejectedSpans() > 0 {
			return false, fmt.Errorf("%w: %d spans", errRefused, r.PartialSuccess().RejectedSpans())
		}
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true, fmt.Errorf("the receiver answered %d", resp.StatusCode)
	}
	return false, fmt.Errorf("%w: the receiver answered %d", errRefused, resp.StatusCode)
}
