package join

import (
	"bytes"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// component is the layers that are one request: those of a trace that stand above each other, and the other side of an id that they have.
type component struct {
	tops    []*outer
	members []*outer
}

// pass is one look at the layers that wait.
type pass struct {
	*Joiner
	marked map[*trace]bool
	byTop  map[*outer][]*outer // the layers that wait, of the traces that are marked
}

func (j *Joiner) newPass() *pass {
	return &pass{Joiner: j, marked: map[*trace]bool{}, byTop: map[*outer][]*outer{}}
}

// look marks a trace, once, and sorts its waiting layers by what they hang from.
func (p *pass) look(t *trace) {
	if p.marked[t] {
		return
	}
	p.marked[t] = true
	p.mark(t)
	for _, o := range t.outers {
		if !o.settled {
			top := p.top(o)
			p.byTop[top] = append(p.byTop[top], o)
		}
	}
}

// settleOuters ends the wait of the layers of t that are due at now. Those that belong to an engine's request, or to one that is counted
// already, end silently; of the rest, what hangs together is one request. It waits until all of it is due, since a span above comes after
// the ones below it, but no longer than twice the window. force ends every wait.
func (j *Joiner) settleOuters(now time.Time, t *trace, force bool, res *Result) {
	if t.waiting == 0 {
		return
	}
	due := force
	for _, o := range t.outers {
		due = due || (!o.settled && now.Sub(o.arrived) >= j.cfg.Window)
	}
	if !due {
		return
	}
	p := j.newPass()
	seen := map[*outer]bool{}
	for _, o := range t.outers {
		if o.settled || seen[o] {
			continue
		}
		c := p.component(o)
		for _, m := range c.members {
			seen[m] = true
		}
		if force || j.due(now, c) {
			j.settle(c, res)
		}
	}
}

// due tells whether a component has waited long enough.
func (j *Joiner) due(now time.Time, c *component) bool {
	all := true
	for _, o := range c.members {
		age := now.Sub(o.arrived)
		if age >= 2*j.cfg.Window {
			return true
		}
		all = all && age >= j.cfg.Window
	}
	return all
}

// component is what hangs together with o and waits.
func (p *pass) component(o *outer) *component {
	c := &component{}
	p.look(p.traces[o.node.trace])
	work := []*outer{p.top(o)}
	for len(work) > 0 {
		top := work[len(work)-1]
		work = work[:len(work)-1]
		if slices.Contains(c.tops, top) {
			continue
		}
		c.tops = append(c.tops, top)
		for _, m := range p.byTop[top] {
			c.members = append(c.members, m)
			if m.ident == nil {
				continue
			}
			s := m.ident.partners(m)
			if s == nil {
				continue
			}
			for _, x := range s.outers {
				if !x.settled {
					p.look(p.traces[x.node.trace])
					work = append(work, p.top(x))
				}
			}
		}
	}
	slices.SortFunc(c.tops, outerOrder)
	slices.SortFunc(c.members, outerOrder)
	return c
}

// top is the outermost layer above o, or o.
func (j *Joiner) top(o *outer) *outer {
	top := o
	j.above(o.node.key, func(p *outer) { top = p })
	return top
}

// outerOrder is from the user inwards. What a request is called must not depend on the order in which its spans came.
func outerOrder(a, b *outer) int {
	if a.req.Layer != b.req.Layer {
		return int(a.req.Layer) - int(b.req.Layer)
	}
	if a.req.Start != b.req.Start {
		if a.req.Start < b.req.Start {
			return -1
		}
		return 1
	}
	if c := bytes.Compare(a.node.trace[:], b.node.trace[:]); c != 0 {
		return c
	}
	return bytes.Compare(a.node.span[:], b.node.span[:])
}

// settle counts a component, or finds that it was counted or cannot be.
func (j *Joiner) settle(c *component, res *Result) {
	open := j.unresolved(c)
	if !open {
		if l, ok := j.count(c); ok {
			res.Requests = append(res.Requests, l)
		}
	}
	for _, o := range c.members {
		o.settled, o.counted = true, !open
		if o.ident != nil && o.counted {
			o.ident.sides[o.req.Layer].settled = true
		}
		j.traces[o.node.trace].waiting--
		j.held--
		if open {
			res.Unresolved++
		} else {
			res.Settled++
		}
	}
}

// unresolved tells a component that says nothing of its end: no usage, no finish reason, no status, and no engine's span, although the
// requests of the same service have one. The client left, or the engine's span was lost; one span cannot tell which, so it is not
// counted as either. A refusal (4xx) never reached an engine and is a request. A service whose engines were not seen in
// the last hour is counted, with an unknown status.
func (j *Joiner) unresolved(c *component) bool {
	for _, o := range c.members {
		if o.absorbed || o.above || o.req.Status != request.StatusUnknown || o.req.HTTPStatus >= 400 || reports(o.req) {
			return false
		}
		if at, ok := j.joined.Peek(o.req.Source.Service); !ok || j.now.Sub(at) >= joinedLately {
			return false
		}
	}
	return true
}

// count counts a component once: identity and status of its outermost layer, tokens of the innermost ones that report them.
func (j *Joiner) count(c *component) (Logical, bool) {
	counted := false
	for _, top := range c.tops {
		counted = counted || top.counted || top.absorbed
	}
	seen := map[string]bool{} // ids whose tokens were counted
	var left []*outer         // layers whose tokens nobody else counted, innermost first
	for _, o := range slices.Backward(c.members) {
		switch {
		case o.absorbed:
			counted, seen[o.id] = true, true
		case o.ident != nil && o.countedElsewhere():
			counted = true
		default:
			counted = counted || o.above
			left = append(left, o)
		}
	}
	var l Logical
	l.First = !counted
	if !counted {
		l.Request = *c.tops[0].req
		for _, o := range c.members {
			inherit(&l.Request, o.req)
		}
	} else if len(left) > 0 {
		l.Request = *left[len(left)-1].req
	}
	l.TPOT = l.Request.TPOT()
	l.InputTokens, l.OutputTokens, l.CachedTokens = request.Tokens{}, request.Tokens{}, request.Tokens{}
	l.ReasoningTokens, l.CacheWriteToken = request.Tokens{}, request.Tokens{}
	covered := j.covered(left)
	any := false
	var leaves []*request.Request
	for _, o := range left {
		if !reports(o.req) || covered[o] || (o.id != "" && seen[o.id]) {
			continue
		}
		if counted && (o.id == "" || o.req.Status == request.StatusError) {
			continue // a layer of the counted request that cannot be told from it
		}
		if o.repeats || j.addedAbove(o) {
			continue
		}
		seen[o.id] = true
		o.added, any = true, true
		addTokens(&l.Request, o.req)
		leaves = append(leaves, o.req)
	}
	l.price(leaves)
	for _, o := range c.members {
		o.tokensCounted = o.tokensCounted || any
	}
	return l, l.First || any
}

// countedElsewhere tells whether the other side of o's request was counted before, without an engine.
func (o *outer) countedElsewhere() bool {
	if o.ident.groups > 0 {
		return false
	}
	s := o.ident.partners(o)
	return s != nil && s.settled
}

// reports tells whether a layer states a usage.
func reports(r *request.Request) bool { return r.InputTokens.Known || r.OutputTokens.Known }

// covered are the layers that repeat the usage of one below them.
func (j *Joiner) covered(outers []*outer) map[*outer]bool {
	out := map[*outer]bool{}
	for _, o := range outers {
		if reports(o.req) && !out[o] { // what is above a covered one is above the one below it, too
			j.above(key{o.node.trace, o.node.parent}, func(p *outer) { out[p] = out[p] || p != o })
		}
	}
	return out
}

// addedAbove tells whether a layer above o was counted with its own usage, of which o's is a part.
func (j *Joiner) addedAbove(o *outer) bool {
	added := false
	j.above(key{o.node.trace, o.node.parent}, func(p *outer) { added = added || p.added })
	return added
}

func addTokens(r, o *request.Request) {
	for _, p := range [...]struct{ to, from *request.Tokens }{
		{&r.InputTokens, &o.InputTokens},
		{&r.OutputTokens, &o.OutputTokens},
		{&r.CachedTokens, &o.CachedTokens},
		{&r.ReasoningTokens, &o.ReasoningTokens},
		{&r.CacheWriteToken, &o.CacheWriteToken},
	} {
		if p.from.Known {
			*p.to = request.Some(p.to.Or(0) + p.from.Value)
		}
	}
}

// drop settles what a trace holds and forgets the trace.
func (j *Joiner) drop(t *trace, res *Result) {
	j.settleOuters(time.Time{}, t, true, res)
	j.settleBeams(time.Time{}, t, true, res)
	for _, n := range t.nodes {
		delete(j.nodes, n.key)
		if n.request {
			j.seen.add(j.now, n.key)
		}
	}
	for _, g := range t.groups {
		if g.ident != nil {
			g.ident.forget(t)
		}
		j.release(g.ident, g.id)
		if g.root {
			delete(j.roots, rootKey{g.id, g.start})
		}
	}
	for _, o := range t.outers {
		if o.ident != nil {
			o.ident.forget(t)
		}
		j.release(o.ident, o.id)
	}
	j.order.Remove(t.elem)
	delete(j.traces, t.id)
}

// settleBeams counts the beam searches of a trace that have had no further step for the window; force counts all of them.
func (j *Joiner) settleBeams(now time.Time, t *trace, force bool, res *Result) {
	for _, g := range t.beams {
		if g.waiting == 0 || (!force && now.Sub(g.touched) < j.cfg.Window) {
			continue
		}
		j.take(g)
		res.Requests = append(res.Requests, j.settleGroup(g))
		res.Settled += g.waiting
		j.held -= g.waiting
		t.waiting -= g.waiting
		g.waiting = 0
	}
}
