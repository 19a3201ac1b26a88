// Package warmup tells the first requests of an engine, which pay for compiled kernels and empty caches, from the others.
//
// An engine is new when it reports its own start (vLLM's start-up spans), or when a process that was never heard of appears in a service
// (service.instance.id) after this process has listened for a while. Whatever is heard first when this process starts may have run for
// days, so that it is no start.
package warmup

import (
	"container/list"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Config bounds a Tracker.
type Config struct {
	// Requests is the number of first requests that are marked.
	Requests int
	// Settle is how long what is heard for the first time counts as old.
	Settle time.Duration
	// Max is the number of engines that are remembered, the most recently heard.
	Max int
	// Within ends the warm-up of an engine that is hardly used, by time from its start.
	Within time.Duration
}

// Tracker remembers engines. It is safe for concurrent use.
type Tracker struct {
	cfg Config

	mu      sync.Mutex // guards all below
	first   time.Time
	engines map[key]*list.Element // of *engine
	order   *list.List            // least recently heard first
}

type key struct{ namespace, service, instance string }

type engine struct {
	key
	left    int
	until   time.Time
	started pcommon.Timestamp // of the engine's process; 0 when it is not known
	cold    bool              // nothing was served since then
}

// New returns a tracker that has heard of nothing.
func New(cfg Config) *Tracker {
	return &Tracker{cfg: cfg, engines: map[key]*list.Element{}, order: list.New()}
}

// startSpan is the name of the span that stands around vLLM's start. Source: recordings of vLLM 0.20 and 0.32.
const startSpan = "Overall Loading"

// IsStart tells the span that an engine makes of its own start.
func IsStart(s ptrace.Span) bool {
	return s.Name() == startSpan && s.Kind() == ptrace.SpanKindInternal && s.Status().Code() != ptrace.StatusCodeError
}

// Started notes that an engine has reported its start.
func (t *Tracker) Started(now time.Time, s *request.Source, at pcommon.Timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, _ := t.hear(now, s)
	if at <= e.started {
		return // a span that came twice, or of an earlier start
	}
	e.left, e.until, e.started, e.cold = t.cfg.Requests, now.Add(t.cfg.Within), at, true
}

// Request notes a request of an engine. warm says that it is one of the first; cold is the time in seconds from the start to the end of
// the first one, where the start is known.
func (t *Tracker) Request(now time.Time, r *request.Request) (warm bool, cold request.Seconds) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, known := t.hear(now, r.Source)
	if !known && r.Source.Instance != "" && now.Sub(t.first) >= t.cfg.Settle {
		e.left, e.until = t.cfg.Requests, now.Add(t.cfg.Within)
	}
	if e.cold && r.End > e.started {
		e.cold = false
		cold = request.Some(float64(r.End-e.started) / 1e9)
	}
	if e.left > 0 && r.Start >= e.started {
		if now.After(e.until) {
			e.left = 0
		} else {
			e.left--
			warm = true
		}
	}
	return warm, cold
}

// hear finds or makes what is remembered of an engine.
func (t *Tracker) hear(now time.Time, s *request.Source) (e *engine, known bool) {
	if t.first.IsZero() {
		t.first = now
	}
	k := key{s.Namespace, s.Service, s.Instance}
	if el, ok := t.engines[k]; ok {
		t.order.MoveToBack(el)
		return el.Value.(*engine), true
	}
	for t.order.Len() >= t.cfg.Max {
		el := t.order.Front()
		delete(t.engines, el.Value.(*engine).key)
		t.order.Remove(el)
	}
	e = &engine{key: k}
	t.engines[k] = t.order.PushBack(e)
	return e, false
}

// Len is the number of engines that are remembered.
func (t *Tracker) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.order.Len()
}
