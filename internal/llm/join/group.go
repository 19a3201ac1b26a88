package join

import (
	"time"

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
//	disaggregated    two spans of one id, under      input once, output of the     same id; the prefill side was asked for one token
//	                 different parents               decode side
//
// Both first kinds may be mixed: input counts once for each prompt id.
type group struct {
	groupKey
	self  ref
	next  ref // of its trace
	trace ref
	root  bool
	// alike: its sequences have ids of their own and one prompt.
	alike bool
	start pcommon.Timestamp // of a root's first sequence
	id    idHash            // base when it is an id that a client can have read, else none
	ident ref

	// merged is what its spans say together, while there is something to settle; then it is packed into req.
	merged  ref
	req     compact
	spans   int
	prompt  idHash // the only one of most calls
	first   promptTokens
	inputs  parts
	outputs parts
	// prefills are the outputs of spans that look like the prefill side of a disaggregated pair; decodes is the number of the others.
	prefills parts
	decodes  int
	minInput request.Tokens
	tpot     request.Seconds
	many     ref // of manies

	// issues are what was said of the answer, charged that the source's own cost was.
	issues  request.Flags
	charged bool
	// last is the span that came last: a later part's record is known by it.
	last key

	// waiting is the number of spans of a beam search that wait for its end; touched is when the last one came.
	waiting int
	touched time.Duration

	dirty    bool
	settled  bool
	retry    bool // another attempt at its call was counted
	under    bool // a request that was counted before this engine's span came
	billed   bool // with its own usage
	reported totals
}

// many is what few calls have: several prompts, or several beams.
type many struct {
	prompts map[idHash]promptTokens
	// width is the number of beams at each prompt length.
	width    map[int64]int64
	maxWidth int64
}

// groupKey tells the calls of a trace apart.
type groupKey struct {
	parent pcommon.SpanID // of the sequences; the span itself for a root
	base   idHash
	beam   bool
}

// rootKey tells calls apart whose sequences are traces of their own.
type rootKey struct {
	id    idHash
	start pcommon.Timestamp
}

type promptTokens struct{ input, cached request.Tokens }

// with takes a sequence of the prompt. Sequences of one prompt say the same; were they not to, the most is what does not depend on which
// comes first.
func (p promptTokens) with(r *request.Request) promptTokens {
	return promptTokens{most(p.input, r.InputTokens), most(p.cached, r.CachedTokens)}
}

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
	name := baseOf(r)
	known, alike := name != "", false
	if !known || (r.Dialect == "sglang" && r.Sequences > 1) {
		// No id to tell by: SGLang gives each of n sequences an id of its own, and they share parent and n. Spans without any id are
		// requests of their own.
		known = false
		if alike = r.Dialect == "sglang" && !r.ParentID.IsEmpty(); alike {
			name = "n"
		} else {
			name = string(r.SpanID[:])
		}
	}
	base := hashID(name)
	var id idHash
	if known {
		id = base
	}
	k := groupKey{parent, base, r.Beam}
	if g := j.find(t, k); g != nil {
		return g
	}
	if g := j.pair(t, id, r); g != nil {
		m := j.more(t)
		if m.paired == nil {
			m.paired = map[groupKey]ref{}
		}
		m.paired[k] = g.self // further sequences of this side belong to it, too
		return g
	}
	root := r.ParentID.IsEmpty() && known && !r.Beam
	if root {
		// Without a caller's trace each of n sequences is a trace of its own; they share the id and the instant of their arrival.
		if g := j.groups.at(j.roots[rootKey{id, r.Start}]); g != nil {
			return g
		}
	}
	self, g := j.groups.add()
	g.self, g.groupKey, g.trace, g.id, g.root, g.alike, g.start = self, k, t.self, id, root, alike, r.Start
	if root {
		j.roots[rootKey{id, r.Start}] = self
	}
	j.addGroup(t, g)
	if known {
		g.ident = j.identify(id)
		j.idents.at(g.ident).addGroup(g)
	}
	return g
}

// prefillSide tells a span that can be the prefill of a request whose decode runs on another engine: it was asked for one token.
func prefillSide(r *request.Request) bool {
	return r.Dialect == "vllm" && r.MaxTokens == 1 && r.OutputTokens.Or(0) <= 1 && !r.Beam
}

// pair is the group of the other side of a disaggregated request: the same id in the same trace, under another parent, where one of the
// two was asked for one token and the other was not.
func (j *Joiner) pair(t *trace, id idHash, r *request.Request) *group {
	if id == (idHash{}) || r.Dialect != "vllm" || r.Beam {
		return nil
	}
	for g := range j.groupsOf(t) {
		if g.id == id && !g.beam && prefillSide(r) != (g.decodes == 0) {
			return g
		}
	}
	return nil
}

// manies has the many of the groups that have one.
type manies struct{ slab[many] }

// of is that of g, made when it has none.
func (s *manies) of(g *group) *many {
	if g.many == 0 {
		g.many, _ = s.add()
	}
	return s.at(g.many)
}

// take makes g take one engine span; merged is what the others say together.
func (s *manies) take(g *group, merged, r *request.Request) {
	g.last = key{r.TraceID, r.SpanID}
	switch {
	case g.spans == 0:
		*merged = *r
	case g.decodes == 0 && !prefillSide(r):
		// The side that answered speaks for the request; the prefill has it begin.
		before := *merged
		*merged = *r
		inherit(merged, &before)
		merged.Start = min(merged.Start, before.Start)
		g.tpot = request.Seconds{}
	case g.decodes > 0 && prefillSide(r):
		inherit(merged, r)
		merged.Start = min(merged.Start, r.Start)
	default:
		merge(merged, r)
	}
	g.spans++
	if !g.tpot.Known && (g.decodes == 0 || !prefillSide(r)) {
		g.tpot = r.TPOT()
	}
	_, name := dialect.BaseID(r.RequestID)
	if g.alike {
		name = "n"
	}
	prompt := hashID(name)
	switch {
	case name == "" || (g.many != 0 && len(s.of(g).prompts) >= maxPrompts && prompt != g.prompt):
		g.inputs.add(r.InputTokens)
	case g.prompt == (idHash{}) || g.prompt == prompt:
		g.prompt = prompt
		g.first = g.first.with(r)
	default:
		m := s.of(g)
		if m.prompts == nil {
			m.prompts = map[idHash]promptTokens{}
		}
		m.prompts[prompt] = m.prompts[prompt].with(r)
	}
	if prefillSide(r) {
		g.prefills.add(r.OutputTokens)
	} else {
		g.decodes++
		g.outputs.add(r.OutputTokens)
	}
	if g.beam && r.InputTokens.Known {
		m := s.of(g)
		if m.width == nil {
			m.width = map[int64]int64{}
		}
		if len(m.width) < maxPrompts {
			m.width[r.InputTokens.Value]++
			m.maxWidth = max(m.maxWidth, m.width[r.InputTokens.Value])
		}
		if !g.minInput.Known || r.InputTokens.Value < g.minInput.Value {
			g.minInput = r.InputTokens
		}
	}
}

// Usage is what the engine spans of one call used together, by the rules of group.
func Usage(spans []*request.Request) cost.Usage {
	var s manies
	var g group
	var merged request.Request
	for i, r := range spans {
		if i == 0 {
			g.beam, g.alike = r.Beam, r.Dialect == "sglang" && r.Sequences > 1
		}
		s.take(&g, &merged, r)
	}
	t := s.totals(&g, &merged)
	return cost.Usage{
		Input: t.input.Or(0), Output: t.output.Or(0), Cached: t.cached.Or(0), Written: t.written.Or(0), Reasoning: t.reasoning.Or(0),
	}
}

func (s *manies) totals(g *group, merged *request.Request) totals {
	if g.beam {
		m := s.of(g)
		return totals{input: g.minInput, output: request.Some(int64(len(m.width)) * m.maxWidth)}
	}
	in, cached := g.inputs, parts{}
	in.add(g.first.input)
	cached.add(g.first.cached)
	if g.many != 0 {
		for _, p := range s.of(g).prompts {
			in.add(p.input)
			cached.add(p.cached)
		}
	}
	output := g.outputs
	if g.decodes == 0 {
		output = g.prefills
	}
	return totals{
		input: in.tokens(), output: output.tokens(), cached: cached.tokens(),
		reasoning: merged.ReasoningTokens, written: merged.CacheWriteToken,
	}
}

// open is what the spans of a group say together, ready to take another.
func (j *Joiner) open(g *group) *request.Request {
	if g.merged != 0 {
		return j.merging.at(g.merged)
	}
	var m *request.Request
	g.merged, m = j.merging.add()
	if g.req.shared != 0 {
		j.sharing.unpack(&g.req, m)
	}
	return m
}

// settleGroup reports a group, or what it has gained since it was reported.
func (j *Joiner) settleGroup(g *group, res *Result) {
	g.dirty = false
	merged := j.open(g)
	all := j.manies.totals(g, merged)
	res.Requests = append(res.Requests, Logical{
		Request: *merged, Sequences: g.spans, TPOT: g.tpot, First: !g.settled && !g.under && !g.retry,
	})
	l := &res.Requests[len(res.Requests)-1]
	if g.billed {
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
		l.TraceID, l.SpanID = g.last.trace, g.last.span
	}
	l.Quality &^= g.issues
	g.issues |= l.Quality
	g.price(l)
	g.reported, g.settled = all, true
	j.sharing.pack(merged, &g.req)
	j.merging.release(g.merged)
	g.merged = 0
}

func most(a, b request.Tokens) request.Tokens {
	if !a.Known || (b.Known && b.Value > a.Value) {
		return b
	}
	return a
}

// gain is by how much a total grew; a total that shrank (a step of a beam search that came after its end) adds nothing.
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
	r.Inherit(&o.Business)
}

// baseOf is the id of the call that an engine's span belongs to, under which the layers of a request meet.
func baseOf(r *request.Request) string {
	base, _ := dialect.BaseID(r.RequestID)
	return base
}
