package sim

import (
	"slices"
	"strconv"
	"time"
)

// engine is one vLLM process: its front end (arrivals, refusals, outputs) and its core (scheduler.go). It knows nothing of
// gateways; the world hears of outputs through its methods deliver, sequenceDone and callFailed.
type engine struct {
	Engine
	w     *World
	epoch uint64 // counts lives; events of an earlier life do nothing
	down  bool

	cache    *kvCache
	inbox    []*sequence // sent to the core while it is in a step
	waiting  []*sequence
	running  []*sequence
	stepping bool
	step     step

	prefillFactor float64       // of faults, ≥ 1
	frontDelay    time.Duration // of faults

	calls []*call // arrived and not ended, in order of arrival
	stats *stats
	out   *process
	gpu   *gpu
}

func newEngine(w *World, cfg Engine) *engine {
	e := &engine{Engine: cfg, w: w, prefillFactor: 1}
	e.gpu = newGPU(cfg, w.random.uuid())
	e.boot(-cfg.Startup, 0)
	return e
}

// boot begins a life that was started at from and listens from at on.
func (e *engine) boot(from, at time.Duration) {
	e.epoch++
	e.down, e.stepping = false, false
	e.cache = newKVCache(e.Blocks)
	e.inbox, e.waiting, e.running = nil, nil, nil
	e.out = e.w.engineProcess(e)
	e.stats = newStats(e.w.unix(from), e.w.unix(at))
	e.stats.prepare(e.MaxModelLen)
	e.w.startupSpans(e, from, at)
}

// crash ends the process: everything in flight fails.
func (e *engine) crash(now time.Duration) {
	if e.down {
		return
	}
	e.gpu.account(now, e.load())
	e.epoch++
	e.down, e.stepping = true, false
	e.inbox, e.waiting, e.running = nil, nil, nil
	e.cache = newKVCache(e.Blocks)
	for _, c := range slices.Clone(e.calls) {
		e.w.callFailed(c, now)
	}
	e.calls = nil
}

// after runs do later, unless the engine has died by then.
func (e *engine) after(at time.Duration, do func()) {
	epoch := e.epoch
	e.w.agenda.add(at, func() {
		if e.epoch == epoch {
			do()
		}
	})
}

// arrive takes a call at the front end: now is its arrival_time.
func (e *engine) arrive(c *call, now time.Duration) {
	c.arrival, c.arrived, c.epoch = now, true, e.epoch
	r := e.w.random
	if c.Refuse != 0 {
		e.after(now+r.delay(6*time.Millisecond, 0.5), func() { e.w.callRefused(c, c.Refuse, e.w.now) })
		e.calls = append(e.calls, c)
		return
	}
	if e.MaxQueued > 0 && len(e.waiting)+len(e.inbox) >= e.MaxQueued {
		e.stats.rejectedRequests++
		e.calls = append(e.calls, c)
		e.after(now+r.delay(2*time.Millisecond, 0.3), func() { e.w.callRefused(c, 503, e.w.now) })
		return
	}
	e.calls = append(e.calls, c)
	c.headers = now + r.delay(3*time.Millisecond, 0.4)
	prefix := "chatcmpl-"
	if c.Route == RouteCompletions {
		prefix = "cmpl-"
	}
	id := c.RequestID
	if id == "" {
		id = r.hex16()
	}
	c.requestID = prefix + id
	switch c.Kind {
	case KindBeam:
		e.beamStep(c, now)
	case KindPrompts:
		for i := range c.Prompts {
			e.submit(c, i, c.requestID+"-"+strconv.Itoa(i), c.Prompts[i], c.promptKey(i), c.Outputs[i], c.MaxTokens, now)
		}
	default:
		// n sequences with one id and the same prompt each (vllm#27987). A /v1/completions call has the suffix of its prompt.
		id := c.requestID
		if c.Route == RouteCompletions {
			id += "-0"
		}
		for i, o := range c.Outputs {
			e.submit(c, i, id, c.Prompts[0], c.promptKey(0), o, c.MaxTokens, now)
		}
	}
}

// beamStep sends the next token of every beam as a request of its own (vllm/entrypoints/openai: beam search is a loop in the
// front end): the first step has one, the others one a beam.
func (e *engine) beamStep(c *call, now time.Duration) {
	width := c.Beams
	if c.beamStep == 0 {
		width = 1
	}
	hash := e.w.random.hex16()
	for k := range width {
		e.submit(c, k, c.requestID+"-"+hash+"-beam-"+strconv.Itoa(k), c.Prompts[0]+c.beamStep, c.promptKey(0), 1, 1,
			now+time.Duration(k)*600*time.Microsecond)
	}
	c.beamStep++
}

// submit makes a sequence and sends it to the core: tokenising and the way there take a while.
func (e *engine) submit(c *call, index int, id string, prompt int, promptKey uint64, target, maxTokens int, arrival time.Duration) {
	s := &sequence{
		call: c, index: index, id: id, prompt: prompt, target: target, maxTokens: maxTokens, arrival: arrival,
		keys: blockKeys(c, prompt, promptKey, e.BlockSize),
	}
	c.sequences = append(c.sequences, s)
	c.open++
	way := e.w.random.delay(1500*time.Microsecond, 0.4) + time.Duration(prompt)*400*time.Nanosecond
	e.after(arrival+way, func() {
		if s.gone {
			return
		}
		e.inbox = append(e.inbox, s)
		e.kick(e.w.now)
	})
}

// abort takes the sequences of a call out of the engine. Finished ones stay as they are.
func (e *engine) abort(c *call) {
	for _, s := range c.sequences {
		e.remove(s)
	}
	e.forget(c)
}

// remove takes a sequence out of the core. Inside a step it stays in the batch until the step ends.
func (e *engine) remove(s *sequence) {
	if s.gone {
		return
	}
	s.gone = true
	e.cache.release(s.held)
	s.held = nil
	for _, list := range []*[]*sequence{&e.inbox, &e.waiting, &e.running} {
		if i := slices.Index(*list, s); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
	}
}

func (e *engine) forget(c *call) {
	if i := slices.Index(e.calls, c); i >= 0 {
		e.calls = slices.Delete(e.calls, i, i+1)
	}
}

// output takes one token of a sequence, made at the core at instant at, through the front end. last says that the sequence ends.
func (e *engine) output(s *sequence, at time.Duration, last bool) {
	r := e.w.random
	way := r.delay(250*time.Microsecond, 0.4)
	if s.made == 1 {
		way = r.delay(900*time.Microsecond, 0.5) // the first output of a request takes longer to reach the front end [R]
	}
	s.frontLast = max(s.frontLast, at+way)
	if s.made == 1 {
		s.frontFirst = s.frontLast
		e.stats.ttft.observe((s.frontFirst - s.arrival).Seconds())
		e.stats.promptTokens += int64(s.prompt)
		e.stats.cachedTokens += int64(s.cached)
	}
	if last {
		s.gone = true
		e.cache.release(s.held)
		s.held = nil
		// The span ends when the output processor has handled the last output: 0.2–4 ms after it [R].
		s.spanEnd = s.frontLast + min(200*time.Microsecond+r.delay(300*time.Microsecond, 0.8), 4*time.Millisecond)
		e.finished(s)
	}
	e.w.deliver(s, last)
}

// finished records what the front end observes when a request ends.
func (e *engine) finished(s *sequence) {
	c, st := s.call, e.stats
	st.finish(s)
	c.open--
	if c.open > 0 {
		return
	}
	if c.Kind == KindBeam && c.beamStep < c.Outputs[0] {
		// The front end sends the next step when it has the outputs of this one.
		next := s.frontLast + 700*time.Microsecond
		e.after(next, func() {
			if !c.done {
				e.beamStep(c, next)
			}
		})
		return
	}
	if c.Kind == KindChoices {
		longest, n := 0, 0
		for _, x := range c.sequences {
			longest, n = max(longest, x.made), n+1
		}
		st.finishParent(longest, n)
	}
	e.forget(c)
	c.done = true
}
