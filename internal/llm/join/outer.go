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
	// absorbed: an engine's span was counted for the same request.
	absorbed bool
	// settled: it does not wait any more. counted: and its request was counted then, tokensCounted: with a usage.
	settled, counted, tokensCounted bool
	// added: its own usage is what was counted.
	added bool
	// above: it stands above a layer that was counted before it came; repeats: the usage of that one was added.
	above, repeats bool
}

func (j *Joiner) hold(now time.Time, t *trace, n *node, r *request.Request) {
	o := &outer{node: n, req: r, id: r.ResponseID, arrived: now}
	if o.ident = j.identify(o.id); o.ident != nil {
		o.ident.addOuter(o)
	}
	n.outer = o
	t.addOuter(o)
	t.waiting++
	j.held++
}

// maxDepth ends a walk up a trace that is no tree.
const maxDepth = 256

// above calls f for each layer above a span in its trace and on the span itself, innermost first.
func (j *Joiner) above(k key, f func(*outer)) {
	for start, hops := k, 0; hops < maxDepth && (hops == 0 || k != start); hops++ {
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
		k.span = n.parent
	}
}

// layers calls f for each layer that is known to belong to a call of an engine: those above it, those that read its id in the same trace
// (LiteLLM's spans stand beside the engine's), those that read it in another one, and what stands above them.
func (j *Joiner) layers(g *group, f func(*outer)) {
	j.above(key{g.trace.id, g.parent}, f)
	if g.ident == nil {
		return
	}
	for _, o := range g.trace.withID(g.id) {
		if o.id == g.id {
			j.above(o.node.key, f)
		}
	}
	for l := range g.ident.sides {
		for _, o := range g.ident.sides[l].outers {
			if o.node.trace != g.trace.id && o.ident.unique(o) {
				j.above(o.node.key, f)
			}
		}
	}
}

// take gives a call of an engine what the layers around it know, before it is counted.
func (j *Joiner) take(g *group) {
	j.layers(g, func(o *outer) {
		inherit(&g.merged, o.req)
		if o.counted && !o.absorbed && !g.settled {
			g.under = o
		}
	})
}

// mark finds the layers of a trace that belong to a call of an engine, and those whose request was counted below them. An id that joins
// traces is looked at here, when a wait ends, and not when a span comes: by then it may have turned out to be no id.
func (j *Joiner) mark(t *trace) {
	absorb := func(o *outer) {
		j.joined.Add(o.req.Source.Service, j.now)
		if !o.settled {
			o.absorbed = true
		}
	}
	for _, g := range t.groups {
		j.layers(g, func(o *outer) {
			j.note(g, o)
			absorb(o)
		})
	}
	for _, o := range t.outers {
		if i := o.ident; i != nil && i.groups == 1 && (i.group == nil || i.group.trace != t) && i.unique(o) {
			j.above(o.node.key, func(o *outer) {
				if i.group != nil {
					j.note(i.group, o)
				}
				absorb(o)
			})
		}
		if o.counted {
			j.above(o.node.key, func(p *outer) { p.above, p.repeats = true, p.repeats || o.added })
		}
	}
}

// note keeps what a layer knows of the answer of a call that was counted before the layer came.
func (j *Joiner) note(g *group, o *outer) {
	news := o.req.Quality &^ g.issues
	if !g.settled || g.dirty || o.settled || news == 0 {
		return
	}
	g.issues |= news
	l := Logical{Request: g.merged}
	l.Quality = news
	j.notes = append(j.notes, l)
}
