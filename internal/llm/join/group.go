package join

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/dialect"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// group is the engine spans of one call. How their tokens add up depends on what they are:
//
//	n > 1            n spans of one prompt       input once, output summed         same id (before vLLM 0.14: 0_X, 1_X, …)
//	several prompts  a span for each prompt      input and output summed           cmpl-X-0, cmpl-X-1, … or embd-X-…
//	beam search      a span for a beam and step  input of the first, steps × beams X-<hash>-beam-0, …
//
// Both first kinds may be mixed: input counts once for each prompt id.
type group struct {
	trace  *trace
	parent pcommon.SpanID // of the sequences; the span itself for a root
	root   bool
	base   string
	id     string // base when it is an id that a client can have read, else ""
	kind   groupKind
	ident  *identity

	merged  request.Request
	spans   int
	prompts map[string]promptTokens
	inputs  parts
	outputs parts
	// width is the number of beams at each prompt length.
	width    map[int64]int64
	maxWidth int64
	minInput request.Tokens
	tpot     request.Seconds

	// issues are what was said of the answer, charged that the source's own cost was.
	issues  request.Flags
	charged bool

	dirty    bool
	settled  bool
	under    *outer // a request that was counted before this engine's span came
	reported totals
}

type groupKind uint8

const (
	kindSequences groupKind = iota
	kindBeam
)

type promptTokens struct{ input, cached request.Tokens }

// parts sums what is known and remembers whether anything was.
type parts struct {
	sum   int64
	known bool
}

func (p *parts) add(t request.Tokens) {
	if t.Known {
		p.sum, p.known = p.sum+t.Value, true
	}
}

func (p parts) tokens() request.Tokens { return request.Tokens{Value: p.sum, Known: p.known} }

// totals are the token counts of a group as a whole.
type totals struct {
	input, output, cached, reasoning, written request.Tokens
}

// maxPrompts bounds the prompts of one call that are told apart; further ones are counted as prompts of their own.
const maxPrompts = 4096

// group finds or makes the group of an engine span.
func (j *Joiner) group(t *trace, r *request.Request) *group {
	parent := r.ParentID
	if parent.IsEmpty() {
		parent = r.SpanID
	}
	base := baseOf(r)
	id := base
	if base == "" || (r.Dialect == "sglang" && r.Sequences > 1) {
		// No id to tell by: SGLang gives each of n sequences an id of its own, and they share parent and n. Spans without any id are
		// requests of their own.
		if r.Dialect == "sglang" && !r.ParentID.IsEmpty() {
			base, id = "n", ""
		} else {
			base, id = string(r.SpanID[:]), ""
		}
	}
	for _, g := range t.groups {
		if g.parent == parent && g.base == base {
			return g
		}
	}
	if r.ParentID.IsEmpty() && id != "" {
		// Without a caller's trace each of n sequences is a trace of its own; they share the id and the instant of their arrival.
		if i, ok := j.byID[id]; ok {
			for _, g := range i.groups {
				if g.root && g.merged.Start == r.Start {
					return g
				}
			}
		}
	}
	g := &group{trace: t, parent: parent, base: base, id: id, root: r.ParentID.IsEmpty()}
	if r.Beam {
		g.kind = kindBeam
	}
	t.groups = append(t.groups, g)
	if i := j.identify(id); i != nil {
		i.groups = append(i.groups, g)
		g.ident = i
	}
	return g
}

// add takes one engine span.
func (g *group) add(r *request.Request) {
	if g.spans == 0 {
		g.merged = *r
	} else {
		merge(&g.merged, r)
	}
	g.spans++
	if !g.tpot.Known {
		g.tpot = r.TPOT()
	}
	_, prompt := dialect.BaseID(r.RequestID)
	if g.base == "n" {
		prompt = "n"
	}
	if prompt == "" || len(g.prompts) >= maxPrompts {
		g.inputs.add(r.InputTokens)
	} else {
		if g.prompts == nil {
			g.prompts = make(map[string]promptTokens, 1)
		}
		if old, ok := g.prompts[prompt]; !ok || !old.input.Known {
			g.prompts[prompt] = promptTokens{r.InputTokens, r.CachedTokens}
		}
	}
	g.outputs.add(r.OutputTokens)
	if g.kind == kindBeam && r.InputTokens.Known {
		if g.width == nil {
			g.width = map[int64]int64{}
		}
		if len(g.width) < maxPrompts {
			g.width[r.InputTokens.Value]++
			g.maxWidth = max(g.maxWidth, g.width[r.InputTokens.Value])
		}
		if !g.minInput.Known || r.InputTokens.Value < g.minInput.Value {
			g.minInput = r.InputTokens
		}
	}
}

// Usage is what the engine spans of one call used together, by the rules of group.
func Usage(spans []*request.Request) cost.Usage {
	var g group
	for i, r := range spans {
		if i == 0 {
			g.base = baseOf(r)
			if r.Beam {
				g.kind = kindBeam
			}
		}
		g.add(r)
	}
	t := g.totals()
	return cost.Usage{
		Input: t.input.Or(0), Output: t.output.Or(0), Cached: t.cached.Or(0), Written: t.written.Or(0), Reasoning: t.reasoning.Or(0),
	}
}

func (g *group) totals() totals {
	if g.kind == kindBeam {
		return totals{input: g.minInput, output: request.Some(int64(len(g.width)) * g.maxWidth)}
	}
	in, cached := g.inputs, parts{}
	for _, p := range g.prompts {
		in.add(p.input)
		cached.add(p.cached)
	}
	return totals{
		input: in.tokens(), output: g.outputs.tokens(), cached: cached.tokens(),
		reasoning: g.merged.ReasoningTokens, written: g.merged.CacheWriteToken,
	}
}

// settleGroup reports a group, or what it has gained since it was reported.
func (j *Joiner) settleGroup(g *group) Logical {
	g.dirty = false
	all := g.totals()
	l := Logical{Request: g.merged, Sequences: g.spans, TPOT: g.tpot, First: !g.settled && g.under == nil}
	if g.under != nil && g.under.tokensCounted {
		// The layer above was counted with its own figures, because this span came late.
		all = totals{}
	}
	l.InputTokens = gain(all.input, g.reported.input)
	l.OutputTokens = gain(all.output, g.reported.output)
	l.CachedTokens = gain(all.cached, g.reported.cached)
	l.ReasoningTokens = gain(all.reasoning, g.reported.reasoning)
	l.CacheWriteToken = gain(all.written, g.reported.written)
	if g.settled {
		l.Ingress, l.Return = request.Seconds{}, request.Seconds{}
	}
	l.Quality &^= g.issues
	g.issues |= l.Quality
	g.price(&l)
	g.reported, g.settled = all, true
	return l
}

// gain is by how much a total grew; a total that shrank (the steps of a beam search out of order) adds nothing.
func gain(now, before request.Tokens) request.Tokens {
	if !now.Known {
		return request.Tokens{}
	}
	return request.Some(max(0, now.Value-before.Or(0)))
}

// merge folds another sequence, or another layer, of the same request into r: the hull of the instants, the worst status, and what r
// does not know yet. Durations of stages stay those of the first sequence.
func merge(r, o *request.Request) {
	r.Start, r.End = min(r.Start, o.Start), max(r.End, o.End)
	if o.Layer == request.LayerEngine && r.Layer == request.LayerEngine {
		if o.TTFT.Known && (!r.TTFT.Known || o.TTFT.Value < r.TTFT.Value) {
			r.TTFT = o.TTFT
		}
		if o.E2E.Known && o.E2E.Value > r.E2E.Or(0) {
			r.E2E = o.E2E
		}
	}
	inherit(r, o)
	if o.ReasoningTokens.Known {
		r.ReasoningTokens = request.Some(r.ReasoningTokens.Or(0) + o.ReasoningTokens.Value)
	}
}

// inherit fills what r does not know from another layer or sequence of the same request, and takes the worse status.
func inherit(r, o *request.Request) {
	first := func(to *string, from string) {
		if *to == "" {
			*to = from
		}
	}
	first(&r.Model, o.Model)
	first(&r.ResponseModel, o.ResponseModel)
	first(&r.Operation, o.Operation)
	first(&r.Provider, o.Provider)
	first(&r.FinishReason, o.FinishReason)
	first(&r.ResponseID, o.ResponseID)
	if s := request.Worse(r.Status, o.Status); s != r.Status {
		r.Status = s
		if s == request.StatusError {
			r.ErrorType = o.ErrorType
		}
	}
	if !r.Ingress.Known {
		r.Ingress = o.Ingress
	}
	if !r.Return.Known {
		r.Return = o.Return
	}
	if !r.UserE2E.Known {
		r.UserE2E, r.UserGapMax = o.UserE2E, o.UserGapMax
	}
	if !r.UserTTFT.Known || (r.UserTTFTEstimated && o.UserTTFT.Known && !o.UserTTFTEstimated) {
		r.UserTTFT, r.UserTTFTEstimated = o.UserTTFT, o.UserTTFTEstimated
	}
	for _, n := range o.Invalid {
		r.Reject(n)
	}
	r.Business.Inherit(&o.Business)
}
