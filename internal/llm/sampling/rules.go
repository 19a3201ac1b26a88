package sampling

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Slow are the durations in seconds from which a request is slow; 0 leaves a figure out.
type Slow struct {
	TTFT, TPOT, E2E, Queue float64
}

// slow tells whether a request exceeds any of the durations.
func (s Slow) slow(r *Call) bool {
	over := func(v request.Seconds, limit float64) bool { return limit > 0 && v.Known && v.Value > limit }
	return over(r.TTFT, s.TTFT) || over(r.UserTTFT, s.TTFT) || over(r.TPOT, s.TPOT) || over(r.E2E, s.E2E) || over(r.Queue, s.Queue)
}

// Call is what sampling needs to know of one request of a trace.
type Call struct {
	Model                            string
	Status                           request.Status
	TTFT, UserTTFT, TPOT, E2E, Queue request.Seconds
	// Quality is what is wrong with the answer; Oversize says that the request had more tokens than are usual.
	Quality  request.Flags
	Oversize bool
}

// Trace is what sampling needs to know of a trace.
type Trace struct {
	State State
	Calls []Call
	// Error says that any span of the trace failed.
	Error bool
	// Duration is the trace's length in seconds; it makes a trace without an LLM request slow by the e2e limit.
	Duration float64
	// Match tells whether any span of the trace has an attribute with one of the values of rule i.
	Match func(i int) bool
}

// Model overrides what holds for the requests of one model.
type Model struct {
	// Share is the ratio of normal traffic; negative means the general one.
	Share float64
	Slow  *Slow
}

// Rule keeps the traces in which an attribute has one of some values.
type Rule struct {
	Name  string
	Share float64
}

// Config says what is kept.
type Config struct {
	Baseline float64
	Slow     Slow
	Models   map[string]Model
	Rules    []Rule
	// Quality are the issues for which a trace is kept.
	Quality request.Flags
	// Caps bounds the traces a second that a rule keeps; 0 or absent leaves it unbounded. Beyond it the rule keeps a share that fits,
	// with the threshold that says so.
	Caps map[string]float64
}

// Names of the rules that are always there.
const (
	RuleError     = "error"
	RuleCancelled = "cancelled"
	RuleSlow      = "slow"
	RuleQuality   = "quality"
	RuleOversize  = "oversize"
	RuleBaseline  = "baseline"
)

// Decision is what happens to a trace.
type Decision struct {
	Keep bool
	// Rule is the name of the rule that claimed the trace.
	Rule string
	// Threshold is what a kept trace carries. It is never below the incoming one.
	Threshold Threshold
}

// Sampler decides. It is not safe for concurrent use.
type Sampler struct {
	cfg    Config
	limits map[string]*limit
}

// New returns a sampler.
func New(cfg Config) *Sampler {
	s := &Sampler{cfg: cfg, limits: map[string]*limit{}}
	for name, rate := range cfg.Caps {
		if rate > 0 {
			s.limits[name] = &limit{rate: rate}
		}
	}
	return s
}

// Decide decides on a trace.
func (s *Sampler) Decide(now time.Time, t *Trace) Decision {
	rule, share := s.claim(t)
	threshold, keep := Ratio(share)
	if l, ok := s.limits[rule]; ok && keep {
		if lower, ok := Ratio(l.share(now)); ok {
			threshold = Stricter(threshold, lower)
		}
	}
	threshold = Stricter(threshold, t.State.Incoming)
	return Decision{Keep: keep && threshold.ShouldSample(t.State.Randomness), Rule: rule, Threshold: threshold}
}

// Upgrade tells whether what came late makes a dropped trace worth keeping from there on, and by which rule.
func (s *Sampler) Upgrade(now time.Time, t *Trace) (Decision, bool) {
	d := s.Decide(now, t)
	return d, d.Keep && d.Rule != RuleBaseline
}

// claim is the first rule that claims a trace, and the share that it keeps.
func (s *Sampler) claim(t *Trace) (rule string, share float64) {
	cancelled := false
	failed := t.Error
	for i := range t.Calls {
		failed = failed || t.Calls[i].Status == request.StatusError
		cancelled = cancelled || t.Calls[i].Status == request.StatusCancelled
	}
	switch {
	case failed:
		return RuleError, 1
	case cancelled:
		return RuleCancelled, 1
	case s.slow(t):
		return RuleSlow, 1
	}
	oversize := false
	for i := range t.Calls {
		if t.Calls[i].Quality&s.cfg.Quality != 0 {
			return RuleQuality, 1
		}
		oversize = oversize || t.Calls[i].Oversize
	}
	if oversize {
		return RuleOversize, 1
	}
	for i, r := range s.cfg.Rules {
		if t.Match != nil && t.Match(i) {
			return r.Name, r.Share
		}
	}
	share = s.cfg.Baseline
	for i := range t.Calls {
		if m, ok := s.cfg.Models[t.Calls[i].Model]; ok && m.Share >= 0 {
			// A trace with several models is kept by the most generous of them.
			if i == 0 || m.Share > share {
				share = m.Share
			}
		}
	}
	return RuleBaseline, share
}

func (s *Sampler) slow(t *Trace) bool {
	for i := range t.Calls {
		c := &t.Calls[i]
		limits := s.cfg.Slow
		if m, ok := s.cfg.Models[c.Model]; ok && m.Slow != nil {
			limits = *m.Slow
		}
		if limits.slow(c) {
			return true
		}
	}
	return len(t.Calls) == 0 && s.cfg.Slow.E2E > 0 && t.Duration > s.cfg.Slow.E2E
}

// limit adapts the share of one rule to a rate, second by second: what came in the last whole second says what may be kept in this.
type limit struct {
	rate   float64
	window int64
	seen   float64
	keep   float64 // the share of the current second; 0 before the first
}

func (l *limit) share(now time.Time) float64 {
	if w := now.Unix(); w != l.window {
		arrived := l.seen
		if l.window != 0 && w > l.window+1 {
			arrived = 0 // seconds without a trace lie between
		}
		l.window, l.seen = w, 0
		l.keep = 1
		if arrived > l.rate {
			l.keep = l.rate / arrived
		}
	}
	l.seen++
	// A burst within its first second is seen only as it goes on.
	return min(l.keep, max(l.rate/l.seen, minShare))
}

// minShare keeps a share of a flood, at a weight of a million at most.
const minShare = 1e-6
