package join

import (
	"iter"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// trace is what is remembered of one trace.
type trace struct {
	self       ref
	prev, next ref // of Joiner.order
	// firstOuter and lastOuter are its layers, each of which knows the next; outers is their number.
	firstOuter, lastOuter ref
	outers                int
	// firstGroup and lastGroup are its calls of engines, likewise.
	firstGroup, lastGroup ref
	groups                int
	id                    pcommon.TraceID
	touched               time.Duration
	batch                 uint64
	pass                  uint64
	waiting               int // spans that wait
	spans                 int
	fewSpans              [fewSpans]node // the first of them

	rare ref
}

// node is what is remembered of a span. It is kept with its trace: in one map of all spans each look at one was a miss of the processor's
// caches, and the looks were most of what the joiner cost.
type node struct {
	id, parent pcommon.SpanID
	outer      ref  // a client's or gateway's request span
	reports    bool // a request
	call       bool // a layer that stands around one call, request span or plain
	// answered: an engine's call below it was counted for it.
	answered bool
}

// rare is what few traces have.
type rare struct {
	nodes  []node                 // beyond fewSpans
	at     map[pcommon.SpanID]int // where in nodes, beyond listedSpans
	byID   map[ref][]ref          // layers by what is known under their id, beyond fewLayers
	byKey  map[groupKey]ref       // beyond fewLayers
	paired map[groupKey]ref       // the other sides of disaggregated requests
	beams  []ref
}

// more is t's rare, made when it has none.
func (j *Joiner) more(t *trace) *rare {
	if t.rare == 0 {
		t.rare, _ = j.rares.add()
	}
	return j.rares.at(t.rare)
}

// addNode notes a span that is not there yet.
func (j *Joiner) addNode(t *trace, n node) {
	j.remembered++
	t.spans++
	if t.spans <= fewSpans {
		t.fewSpans[t.spans-1] = n
		return
	}
	m := j.more(t)
	if m.nodes == nil {
		m.nodes = make([]node, 0, 2*fewSpans)
	}
	m.nodes = append(m.nodes, n)
	switch {
	case m.at != nil:
		m.at[n.id] = len(m.nodes) - 1
	case len(m.nodes) > listedSpans:
		m.at = make(map[pcommon.SpanID]int, 2*listedSpans)
		for i := range m.nodes {
			m.at[m.nodes[i].id] = i
		}
	}
}

// node is a span of a trace, nil when it did not come; it is good until the next is added.
func (j *Joiner) node(t *trace, id pcommon.SpanID) *node {
	for i := range min(t.spans, fewSpans) {
		if t.fewSpans[i].id == id {
			return &t.fewSpans[i]
		}
	}
	if t.spans <= fewSpans {
		return nil
	}
	m := j.rares.at(t.rare)
	if m.at != nil {
		if i, ok := m.at[id]; ok {
			return &m.nodes[i]
		}
		return nil
	}
	for i := range m.nodes {
		if m.nodes[i].id == id {
			return &m.nodes[i]
		}
	}
	return nil
}

// maxDepth ends a walk up a trace that is no tree.
const maxDepth = 256

// up calls f for a span and for each one above it in its trace.
func (j *Joiner) up(t *trace, id pcommon.SpanID, f func(*node)) {
	for start, hops := id, 0; hops < maxDepth && (hops == 0 || id != start); hops++ {
		n := j.node(t, id)
		if n == nil {
			return
		}
		f(n)
		if n.parent.IsEmpty() {
			return
		}
		id = n.parent
	}
}

// eachNode calls f for each span of the trace.
func (j *Joiner) eachNode(t *trace, f func(*node)) {
	for i := range min(t.spans, fewSpans) {
		f(&t.fewSpans[i])
	}
	if m := j.rares.at(t.rare); m != nil {
		for i := range m.nodes {
			f(&m.nodes[i])
		}
	}
}

// queue is a list of traces that is made of themselves.
type queue struct{ front, back ref }

func (j *Joiner) pushBack(t *trace) {
	q := &j.order
	t.prev, t.next = q.back, 0
	if back := j.slab.at(q.back); back != nil {
		back.next = t.self
	} else {
		q.front = t.self
	}
	q.back = t.self
}

func (j *Joiner) unlink(t *trace) {
	q := &j.order
	if prev := j.slab.at(t.prev); prev != nil {
		prev.next = t.next
	} else {
		q.front = t.next
	}
	if next := j.slab.at(t.next); next != nil {
		next.prev = t.prev
	} else {
		q.back = t.prev
	}
}

func (j *Joiner) moveToBack(t *trace) {
	if j.order.back != t.self {
		j.unlink(t)
		j.pushBack(t)
	}
}

// fewSpans are the spans that a trace has room for by itself.
const fewSpans = 4

// listedSpans is up to how many further ones a list is looked through.
const listedSpans = 32

// fewLayers is up to how many a list is looked through; most traces have one or two requests, and a map for each would be most of what they
// cost. A trace of thousands has maps.
const fewLayers = 8

func (j *Joiner) find(t *trace, k groupKey) *group {
	if m := j.rares.at(t.rare); m != nil {
		if g, ok := m.paired[k]; ok {
			return j.groups.at(g)
		}
		if m.byKey != nil {
			return j.groups.at(m.byKey[k])
		}
	}
	for g := range j.groupsOf(t) {
		if g.groupKey == k {
			return g
		}
	}
	return nil
}

func (j *Joiner) addGroup(t *trace, g *group) {
	if last := j.groups.at(t.lastGroup); last != nil {
		last.next = g.self
	} else {
		t.firstGroup = g.self
	}
	t.lastGroup = g.self
	t.groups++
	if t.groups > fewLayers {
		m := j.more(t)
		if m.byKey == nil {
			m.byKey = make(map[groupKey]ref, 2*fewLayers)
			for g := range j.groupsOf(t) {
				m.byKey[g.groupKey] = g.self
			}
		}
		m.byKey[g.groupKey] = g.self
	}
	if g.beam {
		m := j.more(t)
		m.beams = append(m.beams, g.self)
	}
}

// groupsOf are the calls of engines of a trace, in the order in which they came.
func (j *Joiner) groupsOf(t *trace) iter.Seq[*group] {
	return func(yield func(*group) bool) {
		for g := j.groups.at(t.firstGroup); g != nil; g = j.groups.at(g.next) {
			if !yield(g) {
				return
			}
		}
	}
}

func (j *Joiner) addOuter(t *trace, o *outer) {
	if last := j.outers.at(t.lastOuter); last != nil {
		last.next = o.self
	} else {
		t.firstOuter = o.self
	}
	t.lastOuter = o.self
	t.outers++
	if m := j.rares.at(t.rare); m != nil && m.byID != nil {
		m.byID[o.ident] = append(m.byID[o.ident], o.self)
	}
}

// outersOf are the layers of a trace, in the order in which they came.
func (j *Joiner) outersOf(t *trace) iter.Seq[*outer] {
	return func(yield func(*outer) bool) {
		for o := j.outers.at(t.firstOuter); o != nil; o = j.outers.at(o.next) {
			if !yield(o) {
				return
			}
		}
	}
}

// withID calls f for the layers of a trace that have an id. The map of a trace with many is made at the first question, which only an
// engine's call asks: an agent's trace can have dozens of layers and no engine.
func (j *Joiner) withID(t *trace, ident ref, f func(*outer)) {
	if t.outers <= fewLayers {
		for o := range j.outersOf(t) {
			if o.ident == ident {
				f(o)
			}
		}
		return
	}
	m := j.more(t)
	if m.byID == nil {
		m.byID = make(map[ref][]ref, 2*fewLayers)
		for o := range j.outersOf(t) {
			m.byID[o.ident] = append(m.byID[o.ident], o.self)
		}
	}
	for _, o := range m.byID[ident] {
		f(j.outers.at(o))
	}
}
