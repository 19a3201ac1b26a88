package sim

import "time"

// step is one iteration of the engine core.
type step struct {
	started time.Duration
	batch   []slot
	prefill int // prompt tokens computed in it
	decode  int // sequences that make one token after another
}

// slot is the work of one sequence in a step.
type slot struct {
	s      *sequence
	tokens int
}

// kick starts a step when the core is idle and something is to do.
func (e *engine) kick(now time.Duration) {
	if e.stepping || e.down {
		return
	}
	// Between steps the core takes what has arrived; only now are those sequences QUEUED.
	for _, s := range e.inbox {
		s.queued = now
		e.waiting = append(e.waiting, s)
	}
	e.inbox = e.inbox[:0]
	if len(e.waiting)+len(e.running) == 0 {
		return
	}
	e.gpu.account(now, e.load())
	e.schedule(now)
	if len(e.step.batch) == 0 {
		return // KV blocks are short; what frees some will kick again
	}
	e.stepping = true
	d := float64(e.StepBase) + float64(e.step.decode)*float64(e.StepPerSequence) +
		float64(e.step.prefill)*e.prefillFactor/e.PrefillRate*float64(time.Second)
	if e.StepJitter > 0 {
		d *= 1 + e.StepJitter*(2*e.w.random.Float64()-1)
	}
	e.step.started = now
	end := now + max(time.Duration(d), time.Microsecond)
	e.after(end, func() { e.endStep(end) })
}

// schedule fills the step: running sequences first, then waiting ones, within the token budget, the sequence limit and the
// KV blocks. Source: vllm/v1/core/sched/scheduler.py, schedule().
func (e *engine) schedule(now time.Duration) {
	e.step = step{batch: e.step.batch[:0]}
	budget := e.MaxBatchedTokens
	preempted := false
	for i := 0; i < len(e.running) && budget > 0; i++ {
		s := e.running[i]
		take := min(s.total()-s.computed, budget)
		need := max(blocksFor(s.computed+take, e.BlockSize)-len(s.held), 0)
		if need > e.cache.available() {
			preempted = true
			if !e.makeRoom(s, need) {
				break
			}
		}
		s.held = e.cache.allocate(s.held, need)
		budget -= take
		e.add(s, take)
	}
	for !preempted && len(e.waiting) > 0 && len(e.running) < e.MaxNumSeqs && budget > 0 {
		s := e.waiting[0]
		total := s.total()
		// The last token is always computed, so that there is something to sample from.
		keys := s.keys[:min(len(s.keys), (total-1)/e.BlockSize)]
		hits, idle := e.cache.lookup(keys)
		found := hits * e.BlockSize
		take := min(total-found, budget)
		need := blocksFor(found+take, e.BlockSize) - hits
		if need+idle > e.cache.available() {
			break
		}
		e.waiting = e.waiting[1:]
		s.held = e.cache.share(s.held, keys[:hits])
		s.held = e.cache.allocate(s.held, need)
		s.computed = found
		e.stats.prefixQueries += int64(total)
		e.stats.prefixHits += int64(found)
		if !s.wasScheduled {
			// Tens of microseconds pass between QUEUED and SCHEDULED even when nothing is in the way [R].
			s.wasScheduled = true
			s.cached = found
			s.scheduled = now + 5*time.Microsecond + e.w.random.delay(12*time.Microsecond, 0.8)
		}
		e.running = append(e.running, s)
		budget -= take
		e.add(s, take)
	}
}

func (e *engine) add(s *sequence, tokens int) {
	e.step.batch = append(e.step.batch, slot{s, tokens})
	if s.computed >= s.prompt && tokens == 1 {
		e.step.decode++
	} else {
		e.step.prefill += tokens
	}
}

// makeRoom preempts running sequences, the last first, until need blocks are available; false when s itself had to go. Those
// that are already in the step stand before s, so they are never hit.
func (e *engine) makeRoom(s *sequence, need int) bool {
	for need > e.cache.available() {
		victim := e.running[len(e.running)-1]
		e.running = e.running[:len(e.running)-1]
		e.preempt(victim)
		if victim == s {
			return false
		}
	}
	return true
}

// preempt gives the blocks of a sequence back and puts it at the head of the queue. All of it is computed again later.
func (e *engine) preempt(s *sequence) {
	e.cache.release(s.held)
	s.held = nil
	s.computed = 0
	s.preempts++
	e.stats.preemptions++
	e.w.totals.Preemptions++
	e.waiting = append([]*sequence{s}, e.waiting...)
}

// endStep gives every sequence of the step its token, and lets go of those that are done.
func (e *engine) endStep(now time.Duration) {
	e.gpu.account(now, e.load())
	e.stepping = false
	made, computedPrompt := 0, 0
	for _, x := range e.step.batch {
		s := x.s
		if s.gone {
			continue
		}
		s.computed += x.tokens
		if s.computed-x.tokens < s.prompt {
			e.cache.remember(s.held, s.keys[:min(len(s.keys), s.computed/e.BlockSize)])
		}
		if s.computed < s.total() {
			continue // a chunk of a prompt
		}
		s.made++
		made++
		e.stats.generated++
		if s.made == 1 {
			s.first = now
			computedPrompt += s.prompt - s.cached
		} else {
			e.stats.itl.observe((now - s.last).Seconds())
		}
		s.last = now
		last := s.made == s.target
		if last {
			for i, r := range e.running {
				if r == s {
					e.running = append(e.running[:i], e.running[i+1:]...)
					break
				}
			}
		}
		e.output(s, now, last)
	}
	e.stats.iteration.observe(float64(made + computedPrompt))
	e.kick(now)
}

// load is what the GPU is doing.
func (e *engine) load() load {
	if !e.stepping {
		return load{}
	}
	prefill := float64(e.step.prefill) * e.prefillFactor / e.PrefillRate
	rest := e.StepBase.Seconds() + float64(e.step.decode)*e.StepPerSequence.Seconds()
	return load{
		busy: true, prefill: prefill / (prefill + rest),
		fill: float64(e.step.decode) / float64(e.MaxNumSeqs),
	}
}

func blocksFor(tokens, size int) int { return (tokens + size - 1) / size }
