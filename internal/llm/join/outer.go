package join

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// outer is a client's or gateway's span of a request.
type outer struct {
	node    *node
	req     *request.Request
	id      string
	ident   *identity
	arrived time.Time
	// absorbed: an engine's span, or another layer's, was counted for the same request.
	absorbed bool
	// settled: it does not wait any more.
	settled bool
	// tokensCounted: it was counted with a usage of its own.
	tokensCounted bool
}

func (t *trace) waiting() int {
	n := 0
	for _, o := range t.outers {
		if !o.settled {
			n++
		}
	}
	return n
}

func (j *Joiner) hold(now time.Time, t *trace, n *node, r *request.Request) {
	o := &outer{node: n, req: r, id: baseOf(r), arrived: now}
	o.ident = j.identify(o.id)
	if o.ident != nil {
		o.ident.outers = append(o.ident.outers, o)
	}
	n.outer = o
	t.outers = append(t.outers, o)
	j.held++
}

// above calls f for each layer above a span in its trace, innermost first. Traces are trees; the bound ends a walk in one that is not.
func (j *Joiner) above(k key, f func(*outer)) {
	for hops := 0; hops < 256; hops++ {
		n, ok := j.nodes[k]
		if !ok {
			return
		}
		if n.outer != nil {
			f(n.outer)
		}
		if n.parent.IsEmpty() {
			return
		}
		k = key{k.trace, n.parent}
	}
}

// absorb finds the layers that belong to the engine spans of a trace.
func (j *Joiner) absorb(t *trace) {
	for _, g := range t.groups {
		j.above(key{t.id, g.parent}, func(o *outer) { j.take(g, o) })
		if g.ident == nil {
			continue
		}
		for _, o := range g.ident.outers {
			if o.node.trace == t.id || o.ident.unique(o) {
				j.above(o.node.key, func(p *outer) { j.take(g, p) })
			}
		}
	}
	for _, o := range t.outers {
		if j.reached(o) {
			j.above(o.node.key, func(p *outer) { p.absorbed = true })
		}
	}
}

// reached tells whether a layer's request is known to have reached an engine: an engine's span stands below it, or has its id.
// Across traces an id counts only when it is seen once on each side.
func (j *Joiner) reached(o *outer) bool {
	if o.absorbed || o.ident == nil || len(o.ident.groups) == 0 {
		return o.absorbed
	}
	for _, g := range o.ident.groups {
		if g.trace.id == o.node.trace {
			return true
		}
	}
	return o.ident.unique(o)
}

// unique tells whether one call of an engine has the id, and no other trace than o's has it on o's layer.
func (i *identity) unique(o *outer) bool {
	if len(i.groups) > 1 {
		return false
	}
	for _, x := range i.outers {
		if x.req.Layer == o.req.Layer && x.node.trace != o.node.trace {
			return false
		}
	}
	return true
}

// counted tells whether the other side of o's request was counted without an engine: one trace of the other layer has its id, and no
// other trace of o's own layer.
func (i *identity) counted(o *outer) bool {
	if len(i.groups) > 0 || !i.unique(o) {
		return false
	}
	var other *outer
	for _, x := range i.outers {
		if x.req.Layer == o.req.Layer || x.node.trace == o.node.trace {
			continue
		}
		if other != nil && other.node.trace != x.node.trace {
			return false
		}
		if other == nil || x.settled {
			other = x
		}
	}
	return other != nil && other.settled
}

// take makes a layer part of the group's request: what it knows is the request's too.
func (j *Joiner) take(g *group, o *outer) {
	if len(j.joined) < maxServices {
		j.joined[o.req.Source.Service] = struct{}{}
	}
	switch {
	case o.settled && !o.absorbed && !g.settled:
		g.under = o
	case !o.settled && !o.absorbed:
		o.absorbed = true
		inherit(&g.merged, o.req)
		if news := g.merged.Quality &^ g.issues; g.settled && !g.dirty && news != 0 {
			g.issues |= news
			note := Logical{Request: g.merged}
			note.Quality = news
			j.notes = append(j.notes, note)
		}
	}
}

// settleOuters ends the wait of the layers of t that are due. Those that belong to an engine's request, or to one that is counted
// already, end silently; of the rest, what hangs together is one request.
func (j *Joiner) settleOuters(t *trace, due func(*outer) bool, res *Result) {
	if len(t.outers) == 0 {
		return
	}
	var roots []*component
	for _, o := range t.outers {
		if o.settled || !due(o) {
			continue
		}
		top := o
		j.above(o.node.key, func(p *outer) { top = p })
		c := find(roots, top)
		if c == nil {
			c = &component{top: top}
			roots = append(roots, c)
		}
		c.members = append(c.members, o)
	}
	for _, c := range roots {
		open := j.unresolved(c)
		if !open {
			if l, ok := j.settleComponent(c); ok {
				res.Requests = append(res.Requests, l)
			}
		}
		for _, o := range c.members {
			o.settled = true
			j.held--
			if open {
				res.Unresolved++
			} else {
				res.Settled++
			}
		}
	}
}

// component is the layers of one trace that stand above each other.
type component struct {
	top     *outer
	members []*outer
}

func find(cs []*component, top *outer) *component {
	for _, c := range cs {
		if c.top == top {
			return c
		}
	}
	return nil
}

// unresolved tells a component that says nothing of its end: no usage, no finish reason, no status, and no engine's span, although the
// requests of the same service have one. The client left, or the engine's span was lost; one span cannot tell which, so it is not
// counted as either. A service whose engines are never seen is counted, with an unknown status.
func (j *Joiner) unresolved(c *component) bool {
	for _, o := range c.members {
		if j.reached(o) || o.req.Status != request.StatusUnknown || reports(o.req) {
			return false
		}
		if _, ok := j.joined[o.req.Source.Service]; !ok {
			return false
		}
	}
	return true
}

// settleComponent counts a component once: identity and status of its outermost layer, tokens of the innermost ones that report them.
func (j *Joiner) settleComponent(c *component) (Logical, bool) {
	counted := c.top.settled || c.top.absorbed
	var left []*outer // layers whose tokens nobody else counted
	for _, o := range c.members {
		if j.reached(o) || (o.ident != nil && o.ident.counted(o)) {
			counted = true
			continue
		}
		left = append(left, o)
	}
	var l Logical
	l.First = !counted
	if !counted {
		l.Request = *c.top.req
		for _, o := range c.members {
			inherit(&l.Request, o.req)
		}
	} else if len(left) > 0 {
		l.Request = *left[0].req
	}
	l.TPOT = l.Request.TPOT()
	l.InputTokens, l.OutputTokens, l.CachedTokens = request.Tokens{}, request.Tokens{}, request.Tokens{}
	l.ReasoningTokens, l.CacheWriteToken = request.Tokens{}, request.Tokens{}
	any := false
	seen := map[string]bool{}
	var leaves []*request.Request
	for _, o := range left {
		if !reports(o.req) || j.coversReport(o, left) || (o.id != "" && seen[o.id]) {
			continue
		}
		if counted && (o.id == "" || o.req.Status == request.StatusError) {
			continue // a layer of the counted request that cannot be told from it
		}
		seen[o.id] = true
		any = true
		o.tokensCounted = true
		addTokens(&l.Request, o.req)
		leaves = append(leaves, o.req)
	}
	l.price(leaves)
	for _, o := range c.members {
		o.tokensCounted = o.tokensCounted || any
	}
	return l, l.First || any
}

// reports tells whether a layer states a usage.
func reports(r *request.Request) bool { return r.InputTokens.Known || r.OutputTokens.Known }

// coversReport tells whether a layer below o reports a usage of its own, so that o only repeats it.
func (j *Joiner) coversReport(o *outer, others []*outer) bool {
	for _, x := range others {
		if x == o || !reports(x.req) {
			continue
		}
		below := false
		j.above(key{x.node.trace, x.node.parent}, func(p *outer) { below = below || p == o })
		if below {
			return true
		}
	}
	return false
}

func addTokens(r, o *request.Request) {
	for _, p := range [...]struct{ to, from *request.Tokens }{
		{&r.InputTokens, &o.InputTokens}, {&r.OutputTokens, &o.OutputTokens}, {&r.CachedTokens, &o.CachedTokens},
		{&r.ReasoningTokens, &o.ReasoningTokens}, {&r.CacheWriteToken, &o.CacheWriteToken},
	} {
		if p.from.Known {
			*p.to = request.Some(p.to.Or(0) + p.from.Value)
		}
	}
}
