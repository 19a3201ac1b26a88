package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// World is an installation in operation. It is not safe for concurrent use: one owner advances and drains it.
type World struct {
	cfg     Config
	started time.Time
	now     time.Duration
	agenda  agenda
	random  random
	traffic *traffic

	engines []*engine
	gateway *process
	client  *process
	// retired are the processes of crashed engines that have spans left to export.
	retired []*process

	inFlight  map[uint64]*call
	lastID    uint64
	stopped   bool
	gatewayP  float64 // share of calls that the gateway answers 503, by a fault
	active    []bool  // faults
	totals    Totals
	truths    []Truth
	delivered []Delivery
}

// Export is one OTLP export request of one process.
type Export struct {
	Service string
	Traces  ptrace.Traces
}

// Delivery is something that the user of a watched call gets to see.
type Delivery struct {
	Call uint64
	At   time.Time
	// Choice made Tokens more tokens; Finish is its finish reason when it ends.
	Choice, Tokens int
	Finish         string
	// End is true for the last delivery of a call. HTTPStatus is then what it ended with, Error the message of a failure;
	// Broken means that a stream ends here without a proper end.
	End        bool
	HTTPStatus int
	Error      string
	Broken     bool
	Truth      *Truth
}

// Output is what was emitted since the last drain, in order. The receiver owns it.
type Output struct {
	Exports    []Export
	Truths     []Truth
	Deliveries []Delivery
}

// New returns a world that begins at start. cfg has been validated.
func New(cfg Config, start time.Time) (*World, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	w := &World{
		cfg: cfg, started: start, random: newRandom(cfg.Seed), inFlight: map[uint64]*call{},
		active: make([]bool, len(cfg.Faults)), totals: newTotals(),
	}
	// Traffic has a random sequence of its own, so that the same calls come whatever the engines do with them.
	w.traffic = newTraffic(&w.cfg, newRandom(cfg.Seed^0x747261666669))
	for _, e := range cfg.Engines {
		w.engines = append(w.engines, newEngine(w, e))
	}
	w.gateway, w.client = newProcess(w.gatewayResource()), newProcess(w.clientResource())
	for i, a := range cfg.Replay {
		e := w.serving(a.Model)
		if e == nil {
			return nil, fmt.Errorf("replay[%d]: no engine serves model %q", i, a.Model)
		}
		if err := a.validate(&e.Engine); err != nil {
			return nil, fmt.Errorf("replay[%d]: %w", i, err)
		}
		w.agenda.add(max(a.At, 0), func() {
			if !w.stopped {
				w.begin(a.Call, e)
			}
		})
	}
	if cfg.Rate > 0 {
		w.agenda.add(w.traffic.r.gap(cfg.Rate), w.poisson)
	}
	for i := range cfg.Faults {
		w.agenda.add(cfg.Faults[i].At, func() { w.fault(i, true) })
	}
	w.agenda.add(time.Second, w.tick)
	return w, nil
}

// Advance lets everything happen up to and including to, an offset from the start; an earlier one does nothing.
func (w *World) Advance(to time.Duration) {
	for {
		e, ok := w.agenda.next(to)
		if !ok {
			break
		}
		w.now = e.at
		e.do()
	}
	w.now = max(w.now, to)
}

// Now is the instant that the world is at, as an offset from its start.
func (w *World) Now() time.Duration { return w.now }

// Next is when something happens next. It is at most a second away.
func (w *World) Next() time.Duration {
	at, _ := w.agenda.first()
	return at
}

// StopArrivals ends the Poisson and replayed arrivals; calls in flight go on.
func (w *World) StopArrivals() { w.stopped = true }

// InFlight is the number of calls that have begun and not ended; of those that have, the truth and every span can be drained.
func (w *World) InFlight() int { return len(w.inFlight) }

// Submit begins a call now, through all layers, and returns its number.
func (w *World) Submit(c Call) (uint64, error) {
	e := w.serving(c.Model)
	if e == nil {
		if c.Refuse == 0 {
			return 0, fmt.Errorf("no engine serves model %q", c.Model)
		}
		e = w.engines[0]
	}
	if err := c.validate(&e.Engine); err != nil {
		return 0, err
	}
	return w.begin(c, e), nil
}

// Cancel makes the user of a call leave now. A call that has ended is not affected.
func (w *World) Cancel(id uint64) {
	if c := w.inFlight[id]; c != nil {
		w.abort(c)
	}
}

// Totals counts what has ended so far.
func (w *World) Totals() Totals { return w.totals.clone() }

// Drain returns what was emitted since the last time.
func (w *World) Drain() Output {
	o := w.DrainEvents()
	o.Exports = w.DrainSpans()
	return o
}

// DrainEvents returns truths and deliveries only; spans stay.
func (w *World) DrainEvents() Output {
	o := Output{Truths: w.truths, Deliveries: w.delivered}
	w.truths, w.delivered = nil, nil
	return o
}

// DrainSpans returns the export requests only, each of one process and at most 512 spans, as the Python SDK makes them.
func (w *World) DrainSpans() (all []Export) {
	for _, p := range w.processes() {
		for _, td := range p.drain() {
			all = append(all, Export{Service: p.service, Traces: td})
		}
	}
	w.retired = nil
	return all
}

func (w *World) processes() []*process {
	all := slices.Clone(w.retired)
	for _, e := range w.engines {
		all = append(all, e.out)
	}
	return append(all, w.gateway, w.client)
}

// Models are the served models with their engines' names, in order of the configuration.
func (w *World) Models() (models, engines []string) {
	for _, e := range w.engines {
		models, engines = append(models, e.Model), append(engines, e.Name)
	}
	return models, engines
}

// Engine returns the settings of the engine that serves a model.
func (w *World) Engine(model string) (Engine, bool) {
	if e := w.serving(model); e != nil {
		return e.Engine, true
	}
	return Engine{}, false
}

// ErrDown says that an engine is not running.
var ErrDown = errors.New("the engine is down")

// Page returns the engine's /metrics page, in the text format 1.0.0 of prometheus_client; ErrDown while it is crashed.
func (w *World) Page(engine string) ([]byte, error) {
	for _, e := range w.engines {
		if e.Name != engine {
			continue
		}
		if e.down {
			return nil, ErrDown
		}
		return e.page(), nil
	}
	return nil, fmt.Errorf("no engine is named %q", engine)
}

// Up says whether every engine runs.
func (w *World) Up() bool {
	return !slices.ContainsFunc(w.engines, func(e *engine) bool { return e.down })
}

// GPUs returns one view for each engine.
func (w *World) GPUs() []GPU {
	var all []GPU
	for _, e := range w.engines {
		all = append(all, e.gpu.view(e.Name, !e.down))
	}
	return all
}

// GPUPage returns the GPUs as a page of dcgm-exporter: what the last full second had.
func (w *World) GPUPage() []byte { return gpuPage(w.GPUs()) }

// ActiveFaults are those that act now.
func (w *World) ActiveFaults() []Fault {
	var all []Fault
	for i, on := range w.active {
		if on {
			all = append(all, w.cfg.Faults[i])
		}
	}
	return all
}

func (w *World) serving(model string) *engine {
	for _, e := range w.engines {
		if e.Model == model {
			return e
		}
	}
	return nil
}

func (w *World) poisson() {
	if w.stopped {
		return
	}
	if c, i, ok := w.traffic.draw(); ok {
		w.begin(c, w.engines[i])
	}
	w.agenda.add(w.now+w.traffic.r.gap(w.cfg.Rate), w.poisson)
}

// tick closes a second of the GPUs' accounts.
func (w *World) tick() {
	for _, e := range w.engines {
		e.gpu.account(w.now, e.load())
		e.gpu.second()
	}
	w.agenda.add(w.now+time.Second, w.tick)
}

// fault begins or ends one.
func (w *World) fault(i int, on bool) {
	f := &w.cfg.Faults[i]
	w.active[i] = on
	if on {
		w.agenda.add(w.now+f.For, func() { w.fault(i, false) })
		if f.Every > 0 {
			w.agenda.add(w.now+f.Every, func() { w.fault(i, true) })
		}
	}
	w.gatewayP = 0
	for _, e := range w.engines {
		e.prefillFactor, e.frontDelay, e.cache.reserved = 1, 0, 0
	}
	crashed := map[*engine]bool{}
	for j, active := range w.active {
		if !active {
			continue
		}
		g := &w.cfg.Faults[j]
		if g.Kind == FaultGateway5xx {
			w.gatewayP = max(w.gatewayP, g.Factor)
		}
		for _, e := range w.engines {
			if g.Engine != "" && g.Engine != e.Name {
				continue
			}
			switch g.Kind {
			case FaultSlowPrefill:
				e.prefillFactor *= g.Factor
			case FaultSlowFrontEnd:
				e.frontDelay += time.Duration(g.Factor * float64(time.Second))
			case FaultKVPressure:
				e.cache.reserved = max(e.cache.reserved, int(g.Factor*float64(e.Blocks)))
			case FaultEngineCrash:
				crashed[e] = true
			}
		}
	}
	for _, e := range w.engines {
		switch {
		case crashed[e] && !e.down:
			e.crash(w.now)
		case !crashed[e] && e.down:
			w.retired = append(w.retired, e.out)
			reserved := e.cache.reserved
			e.boot(w.now-min(e.Startup, f.For), w.now)
			e.cache.reserved = reserved
		}
		e.kick(w.now)
	}
}

// at turns an offset into an instant, unix one into Unix seconds as Python's time.time() has them.
func (w *World) at(d time.Duration) time.Time { return w.started.Add(d) }
func (w *World) unix(d time.Duration) float64 { return float64(w.started.Add(d).UnixNano()) / 1e9 }
