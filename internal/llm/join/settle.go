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
	left    []*outer // of count
	work    []*outer // of Joiner.component
}

// look marks a trace, once in a look at the layers that wait, and sorts its waiting layers by what they hang from.
func (j *Joiner) look(t *trace) {
	if t.pass == j.pass {
		return
	}
	t.pass = j.pass
	j.mark(t)
	for o := range j.outersOf(t) {
		o.first, o.last, o.sibling = 0, 0, 0
	}
	for o := range j.outersOf(t) {
		if o.settled {
			continue
		}
		top := j.top(o)
		o.top = top.self
		if last := j.outers.at(top.last); last != nil {
			last.sibling = o.self
		} else {
			top.first = o.self
		}
		top.last = o.self
	}
}

// settleOuters ends the wait of the layers of t that are due at now. Those that belong to an engine's request, or to one that is counted
// already, end silently; of the rest, what hangs together is one request. It waits until all of it is due, since a span above comes after
// the ones below it, but no longer than twice the window. force ends every wait.
func (j *Joiner) settleOuters(now time.Duration, t *trace, force bool, res *Result) {
	if t.waiting == 0 {
		return
	}
	due := force
	for o := range j.outersOf(t) {
		due = due || (!o.settled && now-o.arrived >= j.cfg.Window)
	}
	if !due {
		return
	}
	j.pass++
	for o := range j.outersOf(t) {
		if o.settled || o.pass == j.pass {
			continue
		}
		c := j.component(o)
		for _, m := range c.members {
			m.pass = j.pass
		}
		if force || j.due(now, c) {
			j.settle(c, res)
		}
	}
}

// due tells whether a component has waited long enough.
func (j *Joiner) due(now time.Duration, c *component) bool {
	all := true
	for _, o := range c.members {
		age := now - o.arrived
		if age >= 2*j.cfg.Window {
			return true
		}
		all = all && age >= j.cfg.Window
	}
	return all
}

// component is what hangs together with o and waits; it is good until the next call.
func (j *Joiner) component(o *outer) *component {
	c := &j.members
	clear(c.tops)
	clear(c.members)
	c.tops, c.members = c.tops[:0], c.members[:0]
	j.look(j.slab.at(o.home))
	c.work = append(c.work[:0], j.outers.at(o.top))
	for len(c.work) > 0 {
		top := c.work[len(c.work)-1]
		c.work = c.work[:len(c.work)-1]
		if slices.Contains(c.tops, top) {
			continue
		}
		c.tops = append(c.tops, top)
		for m := j.outers.at(top.first); m != nil; m = j.outers.at(m.sibling) {
			c.members = append(c.members, m)
			i := j.idents.at(m.ident)
			if i == nil {
				continue
			}
			s := i.partners(m)
			if s == nil {
				continue
			}
			for x := j.outers.at(s.first); x != nil; x = j.outers.at(x.beside) {
				if !x.settled {
					j.look(j.slab.at(x.home))
					c.work = append(c.work, j.outers.at(x.top))
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
	j.above(o.home, o.span, func(p *outer) { top = p })
	return top
}

// outerOrder is from the user inwards. What a request is called must not depend on the order in which its spans came.
func outerOrder(a, b *outer) int {
	if a.req.layer != b.req.layer {
		return int(a.req.layer) - int(b.req.layer)
	}
	if a.req.start != b.req.start {
		if a.req.start < b.req.start {
			return -1
		}
		return 1
	}
	if c := bytes.Compare(a.trace[:], b.trace[:]); c != 0 {
		return c
	}
	return bytes.Compare(a.span[:], b.span[:])
}

// settle counts a component, or finds that it was counted or cannot be.
func (j *Joiner) settle(c *component, res *Result) {
	open := j.unresolved(c)
	if !open {
		j.count(c, res)
	}
	for _, o := range c.members {
		o.settled, o.counted = true, !open
		if i := j.idents.at(o.ident); i != nil && o.counted {
			i.sides[o.req.layer].settled = true
		}
		j.slab.at(o.home).waiting--
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
		if o.absorbed || o.above || o.req.status != request.StatusUnknown || o.req.httpStatus >= 400 || o.req.reports() {
			return false
		}
		if at, ok := j.joined.Peek(j.sharing.service(&o.req)); !ok || j.now.Sub(at) >= joinedLately {
			return false
		}
	}
	return true
}

// count counts a component once: identity and status of its outermost layer, tokens of the innermost ones that report them.
func (j *Joiner) count(c *component, res *Result) {
	counted := false
	for _, top := range c.tops {
		counted = counted || top.counted || top.absorbed
	}
	seen := map[ref]bool{} // ids whose tokens were counted
	left := c.left[:0]     // layers whose tokens nobody else counted, innermost first
	for _, o := range slices.Backward(c.members) {
		switch {
		case o.absorbed:
			counted, seen[o.ident] = true, true
		case o.ident != 0 && j.idents.at(o.ident).countedElsewhere(o):
			counted = true
		default:
			counted = counted || o.above
			left = append(left, o)
		}
	}
	c.left = left
	res.Requests = append(res.Requests, Logical{First: !counted})
	l := &res.Requests[len(res.Requests)-1]
	if !counted {
		top := c.tops[0]
		j.sharing.unpack(&top.req, &l.Request)
		for i, o := range c.members {
			if i == 0 && o == top {
				inherit(&l.Request, &l.Request)
				continue
			}
			var r request.Request
			j.sharing.unpack(&o.req, &r)
			inherit(&l.Request, &r)
		}
	} else if len(left) > 0 {
		j.sharing.unpack(&left[len(left)-1].req, &l.Request)
	}
	l.TPOT = l.Request.TPOT()
	l.InputTokens, l.OutputTokens, l.CachedTokens = request.Tokens{}, request.Tokens{}, request.Tokens{}
	l.ReasoningTokens, l.CacheWriteToken = request.Tokens{}, request.Tokens{}
	covered := j.covered(left)
	leaves := left[:0]
	for _, o := range left {
		if !o.req.reports() || covered[o] || (o.ident != 0 && seen[o.ident]) {
			continue
		}
		if counted && (o.ident == 0 || o.req.status == request.StatusError) {
			continue // a layer of the counted request that cannot be told from it
		}
		if o.repeats || j.addedAbove(o) {
			continue
		}
		seen[o.ident] = true
		o.added = true
		o.req.addTokens(&l.Request)
		leaves = append(leaves, o)
	}
	j.price(l, leaves)
	if len(leaves) > 0 {
		for _, o := range c.members {
			o.tokensCounted = true
		}
	}
	if counted && len(leaves) == 0 {
		res.Requests = res.Requests[:len(res.Requests)-1]
	}
}

// countedElsewhere tells whether the other side of o's request was counted before, without an engine.
func (i *identity) countedElsewhere(o *outer) bool {
	if i.groups > 0 {
		return false
	}
	s := i.partners(o)
	return s != nil && s.settled
}

// reports tells whether a layer states a usage.
func reports(r *request.Request) bool { return r.InputTokens.Known || r.OutputTokens.Known }

// covered are the layers that repeat the usage of one below them.
func (j *Joiner) covered(outers []*outer) map[*outer]bool {
	if len(outers) < 2 {
		return nil
	}
	out := map[*outer]bool{}
	for _, o := range outers {
		if o.req.reports() && !out[o] { // what is above a covered one is above the one below it, too
			j.over(o.home, o.parent, func(p *outer) { out[p] = out[p] || p != o })
		}
	}
	return out
}

// addedAbove tells whether a layer above o was counted with its own usage, of which o's is a part.
func (j *Joiner) addedAbove(o *outer) bool {
	added := false
	j.over(o.home, o.parent, func(p *outer) { added = added || p.added })
	return added
}

// drop settles what a trace holds and forgets the trace.
func (j *Joiner) drop(t *trace, res *Result) {
	j.settleOuters(0, t, true, res)
	j.settleBeams(0, t, true, res)
	j.remembered -= t.spans
	j.reported = j.reported[:0]
	j.eachNode(t, func(n *node) {
		if n.reports {
			j.reported = append(j.reported, n.id)
		}
	})
	j.seen.add(j.now, t.id, j.reported)
	for g := j.groups.at(t.firstGroup); g != nil; {
		next := g.next
		if i := j.idents.at(g.ident); i != nil {
			i.forget(j, t)
			j.release(g.ident)
		}
		j.sharing.forget(&g.req)
		if g.merged != 0 {
			j.merging.release(g.merged)
		}
		if g.many != 0 {
			j.manies.release(g.many)
		}
		if g.root {
			delete(j.roots, rootKey{g.id, g.start})
		}
		j.groups.release(g.self)
		g = j.groups.at(next)
	}
	for o := j.outers.at(t.firstOuter); o != nil; {
		self, next := o.self, o.next
		if i := j.idents.at(o.ident); i != nil {
			i.forget(j, t)
			j.release(o.ident)
		}
		j.sharing.forget(&o.req)
		j.outers.release(self)
		o = j.outers.at(next)
	}
	if t.rare != 0 {
		j.rares.release(t.rare)
	}
	j.unlink(t)
	delete(j.traces, t.id)
	j.slab.release(t.self)
}

// settleBeams counts the beam searches of a trace that have had no further step for the window; force counts all of them.
func (j *Joiner) settleBeams(now time.Duration, t *trace, force bool, res *Result) {
	if t.rare == 0 {
		return
	}
	for _, at := range j.rares.at(t.rare).beams {
		g := j.groups.at(at)
		if g.waiting == 0 || (!force && now-g.touched < j.cfg.Window) {
			continue
		}
		j.take(g)
		j.settleGroup(g, res)
		res.Settled += g.waiting
		j.held -= g.waiting
		t.waiting -= g.waiting
		g.waiting = 0
	}
}
