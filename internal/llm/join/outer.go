package join

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// outer is a client's or gateway's span of a request.
type outer struct {
	key
	self    ref
	home    ref // its trace
	next    ref // of its trace
	beside  ref // the next of the same side of ident
	ident   ref
	parent  pcommon.SpanID
	arrived time.Duration
	req     compact
	// absorbed: an engine's span was counted for the same request.
	absorbed bool
	// settled: it does not wait any more. counted: and its request was counted then, tokensCounted: with a usage.
	settled, counted, tokensCounted bool
	// added: its own usage is what was counted.
	added bool
	// above: it stands above a layer that was counted before it came; repeats: the usage of that one was added.
	above, repeats bool

	// Of a look at the layers that wait: what this one hangs from, the first and last that hang from this one, and the next that hangs from
	// the same; the look in which it was found to be part of a component.
	top, first, last, sibling ref
	pass                      uint64
}

func (j *Joiner) hold(now time.Duration, t *trace, k key, parent pcommon.SpanID, r *request.Request) ref {
	self, o := j.outers.add()
	o.key, o.self, o.home, o.parent, o.arrived = k, self, t.self, parent, now
	j.sharing.pack(r, &o.req)
	if o.ident = j.identify(hashID(r.ResponseID)); o.ident != 0 {
		j.idents.at(o.ident).addOuter(j, o)
	}
	j.addOuter(t, o)
	t.waiting++
	j.held++
	return self
}

// above calls f for each layer above a span in its trace and on the span itself, innermost first.
func (j *Joiner) above(trace ref, id pcommon.SpanID, f func(*outer)) {
	j.up(j.slab.at(trace), id, func(n *node) {
		if n.outer != 0 {
			f(j.outers.at(n.outer))
		}
	})
}

// over is above for a span's parent: a root has nothing over it, not even a span without an id.
func (j *Joiner) over(trace ref, parent pcommon.SpanID, f func(*outer)) {
	if !parent.IsEmpty() {
		j.above(trace, parent, f)
	}
}

// layers calls f for each layer that is known to belong to a call of an engine: those above it, those that read its id in the same trace
// (LiteLLM's spans stand beside the engine's), those that read it in another one, and what stands above them.
func (j *Joiner) layers(g *group, f func(*outer)) {
	t := j.slab.at(g.trace)
	j.over(g.trace, g.parent, f)
	i := j.idents.at(g.ident)
	if i == nil {
		return
	}
	j.withID(t, g.ident, func(o *outer) { j.above(o.home, o.span, f) })
	for l := range i.sides {
		for o := j.outers.at(i.sides[l].first); o != nil; o = j.outers.at(o.beside) {
			if o.trace != t.id && i.unique(o) {
				j.above(o.home, o.span, f)
			}
		}
	}
}

// take gives a call of an engine what the layers around it know, before it is counted.
func (j *Joiner) take(g *group) {
	var r request.Request
	merged := j.open(g)
	j.layers(g, func(o *outer) {
		j.sharing.unpack(&o.req, &r)
		inherit(merged, &r)
		if o.counted && !o.absorbed && !g.settled {
			g.under, g.billed = true, o.tokensCounted
		}
	})
}

// mark finds the layers of a trace that belong to a call of an engine, and those whose request was counted below them. An id that joins
// traces is looked at here, when a wait ends, and not when a span comes: by then it may have turned out to be no id.
func (j *Joiner) mark(t *trace) {
	absorb := func(o *outer) {
		j.joined.Add(j.sharing.service(&o.req), j.now)
		if !o.settled {
			o.absorbed = true
		}
	}
	for g := range j.groupsOf(t) {
		j.layers(g, func(o *outer) {
			j.note(g, o)
			absorb(o)
		})
	}
	for o := range j.outersOf(t) {
		if i := j.idents.at(o.ident); i != nil && i.groups == 1 && (i.group == 0 || j.groups.at(i.group).trace != t.self) && i.unique(o) {
			j.above(o.home, o.span, func(o *outer) {
				if i.group != 0 {
					j.note(j.groups.at(i.group), o)
				}
				absorb(o)
			})
		}
		if o.counted {
			j.above(o.home, o.span, func(p *outer) { p.above, p.repeats = true, p.repeats || o.added })
		}
	}
}

// note keeps what a layer knows of the answer of a call that was counted before the layer came.
func (j *Joiner) note(g *group, o *outer) {
	news := o.req.quality &^ g.issues
	if !g.settled || g.dirty || o.settled || news == 0 {
		return
	}
	g.issues |= news
	var l Logical
	if g.merged != 0 {
		l.Request = *j.merging.at(g.merged)
	} else {
		j.sharing.unpack(&g.req, &l.Request)
	}
	l.Quality = news
	j.notes = append(j.notes, l)
}
