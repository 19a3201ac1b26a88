package live

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

// Options of a Live. Zero values are replaced by the defaults named.
type Options struct {
	// KeepTruths is how many ended calls /sim/truth still knows; 10000.
	KeepTruths int
	// ExportEvery is how often a process exports its spans; 5 s, the Python SDK's schedule delay.
	ExportEvery time.Duration
	// Push takes the export requests of one moment. It must not block. nil: spans are dropped.
	Push func([]sim.Export)
	// Ended is told of every ended call, in order. It must not block.
	Ended func(*sim.Truth)
	// Fault is told when the set of active faults changes.
	Fault func(active []sim.Fault)
}

// Live is a world that follows the clock. Safe for concurrent use.
type Live struct {
	opts    Options
	chunks  float64 // share of real callers' calls with chunk spans
	started time.Time
	wake    chan struct{}

	mu       sync.Mutex
	world    *sim.World
	watchers map[uint64]*watcher
	truths   []sim.Truth // ring
	next     int64       // number of the next truth
	faults   []sim.Fault
}

// minTick bounds how often the world is advanced.
const minTick = 2 * time.Millisecond

// New makes a world that begins now. Run makes it move.
func New(cfg sim.Config, opts Options) (*Live, error) {
	if opts.KeepTruths <= 0 {
		opts.KeepTruths = 10000
	}
	if opts.ExportEvery <= 0 {
		opts.ExportEvery = 5 * time.Second
	}
	if opts.Push == nil {
		opts.Push = func([]sim.Export) {}
	}
	if opts.Ended == nil {
		opts.Ended = func(*sim.Truth) {}
	}
	if opts.Fault == nil {
		opts.Fault = func([]sim.Fault) {}
	}
	l := &Live{opts: opts, chunks: cfg.Gateway.Chunks, started: time.Now(), wake: make(chan struct{}, 1), watchers: map[uint64]*watcher{}}
	w, err := sim.New(cfg, l.started)
	if err != nil {
		return nil, err
	}
	l.world = w
	return l, nil
}

// Run follows the clock until ctx ends, then exports what is left and ends every watched call. It returns when all is done.
func (l *Live) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	exported := l.started
	for {
		select {
		case <-ctx.Done():
			l.step()
			l.export()
			l.abandon()
			return
		case <-timer.C:
		case <-l.wake:
		}
		next := l.step()
		now := time.Now()
		if now.Sub(exported) >= l.opts.ExportEvery {
			exported = now
			l.export()
		}
		next = min(next, exported.Add(l.opts.ExportEvery).Sub(l.started))
		timer.Reset(max(time.Until(l.started.Add(next)), minTick))
	}
}

// Drain stops arrivals and waits until every call has ended and its spans are exported, or ctx ends.
func (l *Live) Drain(ctx context.Context) error {
	l.mu.Lock()
	l.world.StopArrivals()
	l.mu.Unlock()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		l.step()
		if l.InFlight() == 0 {
			l.export()
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// step advances to now and hands out what happened. It returns when something happens next, as an offset from the start.
func (l *Live) step() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.world.Advance(time.Since(l.started))
	o := l.world.DrainEvents()
	for i := range o.Truths {
		if len(l.truths) < l.opts.KeepTruths {
			l.truths = append(l.truths, o.Truths[i])
		} else {
			l.truths[l.next%int64(l.opts.KeepTruths)] = o.Truths[i]
		}
		l.next++
		l.opts.Ended(&o.Truths[i])
	}
	for _, d := range o.Deliveries {
		if w := l.watchers[d.Call]; w != nil {
			w.put(d)
			if d.End {
				delete(l.watchers, d.Call)
			}
		}
	}
	if active := l.world.ActiveFaults(); !slices.Equal(active, l.faults) {
		l.faults = active
		l.opts.Fault(active)
	}
	return l.world.Next()
}

func (l *Live) export() {
	l.mu.Lock()
	spans := l.world.DrainSpans()
	l.mu.Unlock()
	if len(spans) > 0 {
		l.opts.Push(spans)
	}
}

// abandon ends the watched calls when the world stops.
func (l *Live) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, w := range l.watchers {
		w.put(sim.Delivery{Call: id, End: true, HTTPStatus: 503, Error: "the simulator is stopping"})
		delete(l.watchers, id)
	}
}

// submit begins a call and returns what its user gets to see.
func (l *Live) submit(c sim.Call) (uint64, *watcher, error) {
	c.Watch = true
	l.mu.Lock()
	defer l.mu.Unlock()
	l.world.Advance(time.Since(l.started))
	id, err := l.world.Submit(c)
	if err != nil {
		return 0, nil, err
	}
	w := &watcher{notify: make(chan struct{}, 1)}
	l.watchers[id] = w
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return id, w, nil
}

// cancel is the user of a call going away.
func (l *Live) cancel(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.watchers, id)
	l.world.Advance(time.Since(l.started))
	l.world.Cancel(id)
}

// InFlight is the number of calls that have begun and not ended.
func (l *Live) InFlight() (n int) {
	l.with(func(w *sim.World) { n = w.InFlight() })
	return n
}

// with runs f with the world at now.
func (l *Live) with(f func(*sim.World)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.world.Advance(time.Since(l.started))
	f(l.world)
}

// watcher queues deliveries for one handler.
type watcher struct {
	mu     sync.Mutex
	queue  []sim.Delivery
	notify chan struct{}
}

func (w *watcher) put(d sim.Delivery) {
	w.mu.Lock()
	w.queue = append(w.queue, d)
	w.mu.Unlock()
	select {
	case w.notify <- struct{}{}:
	default:
	}
}

// take waits for deliveries; false when ctx ends first.
func (w *watcher) take(ctx context.Context) ([]sim.Delivery, bool) {
	for {
		w.mu.Lock()
		q := w.queue
		w.queue = nil
		w.mu.Unlock()
		if len(q) > 0 {
			return q, true
		}
		select {
		case <-w.notify:
		case <-ctx.Done():
			return nil, false
		}
	}
}
