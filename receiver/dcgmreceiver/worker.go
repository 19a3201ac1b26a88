package dcgmreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

const (
	backoffMin = time.Second
	backoffMax = 30 * time.Second
)

var errStopped = errors.New("stopped")

// worker owns a source. All calls into it come from here, one at a time and each with a deadline, because a library
// call takes no context and may hang with its driver.
//
//	           Open ok                Read ok
//	down ───────────────────▶ open ◀──────────┐
//	 ▲  ▲  backoff 1 s…30 s     │ Read ───────┘
//	 │  └───── Close ◀──────────┤ error
//	 │                          │ no answer in time
//	 └── both calls returned ◀─ hung: Close is called beside the stuck call, to end it
//
// Only run's goroutine touches the fields below; condition is also read by others.
type worker struct {
	src     gpu.Source
	timeout time.Duration
	enrich  func(context.Context, *gpu.Reading) // adds what others know of the devices; may be nil

	open    bool
	hung    chan struct{} // closed when the stuck call and its Close have returned
	lastErr error
	backoff time.Duration
	retryAt time.Time

	condition atomic.Value // string, a gpu.Source… constant

	requests chan struct{}
	outcomes chan outcome
}

// outcome is the answer to one request: a reading, or why there is none.
type outcome struct {
	reading   *gpu.Reading
	err       error
	condition string
	opened    bool // the source was opened since the last outcome
	took      time.Duration
	timedOut  bool
}

func newWorker(src gpu.Source, timeout time.Duration) *worker {
	w := &worker{
		src: src, timeout: timeout, backoff: backoffMin,
		requests: make(chan struct{}, 1), outcomes: make(chan outcome, 1),
	}
	w.condition.Store(gpu.SourceStarting)
	return w
}

// run answers requests until ctx ends, then closes the source. It keeps trying to open a source that is down.
func (w *worker) run(ctx context.Context) {
	defer w.stop()
	retry := time.NewTimer(0)
	defer retry.Stop()
	opened := false
	for {
		var o outcome
		select {
		case <-ctx.Done():
			return
		case <-retry.C:
			if w.open {
				continue
			}
			opened = w.tryOpen(ctx) || opened
		case <-w.requests:
			o = w.read(ctx)
			o.opened, opened = o.opened || opened, false
			select {
			case w.outcomes <- o:
			case <-ctx.Done():
				return
			}
		}
		if !w.open {
			retry.Reset(max(0, time.Until(w.retryAt)))
		}
	}
}

// tryOpen opens the source if its backoff is over, and reports whether it did.
func (w *worker) tryOpen(ctx context.Context) bool {
	if w.open || time.Now().Before(w.retryAt) || !w.recovered() {
		return false
	}
	if _, err := call(ctx, w, func(ctx context.Context) (struct{}, error) { return struct{}{}, w.src.Open(ctx) }); err != nil {
		w.fail(ctx, err)
		return false
	}
	w.open = true
	return true
}

// read reads an open source. A source that is down answers at once with why it is.
func (w *worker) read(ctx context.Context) outcome {
	start := time.Now()
	o := outcome{opened: w.tryOpen(ctx)}
	if w.open {
		r, err := call(ctx, w, func(ctx context.Context) (*gpu.Reading, error) { return w.src.Read(ctx, time.Now()) })
		if err != nil {
			w.fail(ctx, err)
		} else {
			if w.enrich != nil {
				w.enrich(ctx, r)
			}
			o.reading = r
			w.condition.Store(gpu.SourceOK)
			w.backoff, w.lastErr = backoffMin, nil
		}
	}
	o.took, o.condition = time.Since(start), w.condition.Load().(string)
	if o.reading == nil {
		o.err, o.timedOut = w.lastErr, o.condition == gpu.SourceHung
	}
	return o
}

// fail notes why the source is down, lets go of it and sets the time of the next try.
func (w *worker) fail(ctx context.Context, err error) {
	w.lastErr = err
	w.condition.Store(gpu.ConditionOf(err))
	w.open = false
	w.retryAt = time.Now().Add(w.backoff)
	w.backoff = min(2*w.backoff, backoffMax)
	if w.hung == nil {
		// Even a failed Open may have left a library loaded or half a connection.
		_, _ = call(ctx, w, func(context.Context) (struct{}, error) { return struct{}{}, w.src.Close() })
		if w.hung != nil {
			w.condition.Store(gpu.SourceHung)
		}
	}
}

// recovered reports whether no call is stuck any more.
func (w *worker) recovered() bool {
	if w.hung == nil {
		return true
	}
	select {
	case <-w.hung:
		w.hung = nil
		return true
	default:
		w.retryAt = time.Now().Add(w.backoff)
		return false
	}
}

// call runs f with a deadline. When f does not return in time, Close is called beside it, which ends a DCGM call that
// waits for a host engine, and the worker stays away from the source until both have returned.
//
// The result travels by channel only: a call that was given up shares nothing with the worker.
func call[T any](ctx context.Context, w *worker, f func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	done := make(chan result, 1)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		v, err := f(ctx)
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	var none T
	// A source that honours the context returns now; a library call does not.
	grace := time.NewTimer(time.Second)
	defer grace.Stop()
	select {
	case r := <-done:
		if r.err == nil {
			r.err = ctx.Err()
		}
		return none, r.err
	case <-grace.C:
	}
	hung := make(chan struct{})
	w.hung = hung
	go func() {
		defer close(hung)
		_ = w.src.Close()
		<-returned
	}()
	return none, &gpu.Down{Condition: gpu.SourceHung, Err: fmt.Errorf("no answer within %s; is the driver or the host engine stuck?", w.timeout)}
}

// stop closes the source. It waits for a stuck call no longer than the deadline: the process must be able to end.
func (w *worker) stop() {
	w.lastErr = errStopped
	limit := time.NewTimer(w.timeout)
	defer limit.Stop()
	if w.hung != nil {
		select {
		case <-w.hung:
			w.hung = nil
		case <-limit.C:
			return
		}
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = w.src.Close()
	}()
	select {
	case <-closed:
	case <-limit.C:
	}
}
