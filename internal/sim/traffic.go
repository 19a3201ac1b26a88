package sim

import (
	"fmt"
	"slices"
	"time"
)

// traffic draws the Poisson calls.
type traffic struct {
	cfg     *Config
	r       random
	teams   []float64
	engines []float64
	scratch []float64
}

func newTraffic(cfg *Config, r random) *traffic {
	t := &traffic{cfg: cfg, r: r}
	for i := range cfg.Teams {
		t.teams = append(t.teams, cfg.Teams[i].Weight)
	}
	for i := range cfg.Engines {
		t.engines = append(t.engines, cfg.Engines[i].Weight)
	}
	return t
}

// draw returns a call and the engine that serves it; false when the drawn team's models all have weight 0.
func (t *traffic) draw() (Call, int, bool) {
	cfg, r := t.cfg, t.r
	team := &cfg.Teams[r.pick(t.teams)]
	t.scratch = append(t.scratch[:0], t.engines...)
	if len(team.Models) > 0 {
		for i := range cfg.Engines {
			if !slices.Contains(team.Models, cfg.Engines[i].Model) {
				t.scratch[i] = 0
			}
		}
	}
	ei := r.pick(t.scratch)
	if ei < 0 {
		return Call{}, 0, false
	}
	e := &cfg.Engines[ei]
	c := Call{
		Model: e.Model, Team: team.Name, Route: RouteChat, Kind: KindSingle, SharedPrefix: team.SharedPrefix,
		Temperature: 1, TopP: 1, Client: r.chance(cfg.Client.Share), Chunks: cfg.Gateway.Enabled && r.chance(cfg.Gateway.Chunks),
	}
	if r.chance(cfg.Mix.Greedy) {
		c.Temperature = 0
	}
	if r.chance(cfg.Mix.Refused) {
		t.refuse(&c, e)
		return c, ei, true
	}
	n := 1
	switch x := r.Float64(); {
	case x < cfg.Mix.Choices:
		c.Kind, n, c.Temperature = KindChoices, 2+r.IntN(3), 0.8
	case x < cfg.Mix.Choices+cfg.Mix.Prompts:
		c.Kind, c.Route, n = KindPrompts, RouteCompletions, 2+r.IntN(3)
	case x < cfg.Mix.Choices+cfg.Mix.Prompts+cfg.Mix.Beam:
		c.Kind, c.Beams = KindBeam, 2+r.IntN(2)
	}
	c.Stream = c.Kind != KindBeam && r.chance(cfg.Mix.Stream)
	t.sizes(&c, e, n)
	if c.Kind == KindSingle && c.Stream && r.chance(cfg.Mix.Abort) {
		// A user leaves while waiting or while reading: after a part of the time that the answer would take alone.
		alone := time.Duration(float64(c.Prompts[0])/e.PrefillRate*1e9) + time.Duration(c.Outputs[0])*e.StepBase
		c.AbortAfter = cfg.Gateway.Ingress*3 + 10*time.Millisecond + time.Duration(r.Float64()*float64(alone))
	}
	return c, ei, true
}

// sizes draws prompts and outputs that fit the model.
func (t *traffic) sizes(c *Call, e *Engine, n int) {
	r := t.r
	prompts, longest := 1, 0
	if c.Kind == KindPrompts {
		prompts = n
	}
	room := e.MaxModelLen - 1
	for range prompts {
		// The team's prefix comes on top of what the user writes.
		p := min(r.length(e.Prompt)+c.SharedPrefix, room)
		c.Prompts = append(c.Prompts, p)
		longest = max(longest, p)
	}
	c.SharedPrefix = min(c.SharedPrefix, slices.Min(c.Prompts))
	room = e.MaxModelLen - longest
	if c.Kind == KindBeam {
		steps := min(2+r.IntN(15), room) // of a search of one step, the spans do not tell the width
		c.Outputs, c.MaxTokens = []int{steps}, steps
		return
	}
	for range n {
		c.Outputs = append(c.Outputs, min(r.length(e.Output), room))
	}
	c.MaxTokens = slices.Max(c.Outputs)
	if r.chance(t.cfg.Mix.Stop) {
		// A limit above the longest answer: all end by stop.
		c.MaxTokens = min(c.MaxTokens+1+r.IntN(512), room)
	}
}

// refuse makes the call one that the engine's front end does not accept. The messages are vLLM's.
func (t *traffic) refuse(c *Call, e *Engine) {
	if t.r.chance(0.5) {
		c.Refuse, c.Why = 404, fmt.Sprintf("The model `%s-old` does not exist. Valid aliases: %s.", e.Model, e.Model)
		return
	}
	n := e.MaxModelLen * 10
	c.Refuse = 400
	c.Why = fmt.Sprintf("max_tokens=%d cannot be greater than max_model_len=%d. Please request fewer output tokens. (parameter=max_tokens, value=%d)", n, e.MaxModelLen, n)
}
