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
	id                    pcommon.TraceID
	touched               time.Duration
	batch                 uint64
	pass                  uint64
	waiting               int // spans that wait
	spans                 int
	fewSpans              [fewSpans]mark // the first of them

	// What most traces do not have.
	groups []*group
	rare   *rare
}

// mark is one span of a trace, and whether it reported a request.
type mark struct {
	id      pcommon.SpanID
	request bool
}

// rare is what few traces have.
type rare struct {
	spans  []mark              // beyond fewSpans
	byID   map[string][]*outer // beyond fewLayers
	byKey  map[groupKey]*group // beyond fewLayers
	paired map[groupKey]*group // the other sides of disaggregated requests
	beams  []*group
}

// more is t's rare, made when it has none.
func (t *trace) more() *rare {
	if t.rare == nil {
		t.rare = &rare{}
	}
	return t.rare
}

// addSpan notes a span, and whether it reports a request.
func (t *trace) addSpan(s mark) {
	if t.spans < fewSpans {
		t.fewSpans[t.spans] = s
	} else {
		m := t.more()
		m.spans = append(m.spans, s)
	}
	t.spans++
}

// eachSpan calls f for each span of the trace.
func (t *trace) eachSpan(f func(mark)) {
	for _, s := range t.fewSpans[:min(t.spans, fewSpans)] {
		f(s)
	}
	if t.rare != nil {
		for _, s := range t.rare.spans {
			f(s)
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

// fewLayers is up to how many a list is looked through; most traces have one or two requests, and a map for each would be most of what they
// cost. A trace of thousands has maps.
const fewLayers = 8

func (t *trace) find(k groupKey) *group {
	if t.rare != nil {
		if g, ok := t.rare.paired[k]; ok {
			return g
		}
		if t.rare.byKey != nil {
			return t.rare.byKey[k]
		}
	}
	for _, g := range t.groups {
		if g.groupKey == k {
			return g
		}
	}
	return nil
}

func (t *trace) addGroup(g *group) {
	t.groups = append(t.groups, g)
	if len(t.groups) > fewLayers {
		m := t.more()
		if m.byKey == nil {
			m.byKey = make(map[groupKey]*group, 2*fewLayers)
			for _, g := range t.groups {
				m.byKey[g.groupKey] = g
			}
		}
		m.byKey[g.groupKey] = g
	}
	if g.beam {
		m := t.more()
		m.beams = append(m.beams, g)
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
	if t.outers <= fewLayers {
		return
	}
	m := t.more()
	if m.byID != nil {
		id := j.sharing.responseID(&o.req)
		m.byID[id] = append(m.byID[id], o)
		return
	}
	m.byID = make(map[string][]*outer, 2*fewLayers)
	for o := range j.outersOf(t) {
		id := j.sharing.responseID(&o.req)
		m.byID[id] = append(m.byID[id], o)
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

// withID calls f for the layers of a trace that have an id.
func (j *Joiner) withID(t *trace, id string, f func(*outer)) {
	if t.rare != nil && t.rare.byID != nil {
		for _, o := range t.rare.byID[id] {
			f(o)
		}
		return
	}
	for o := range j.outersOf(t) {
		if j.sharing.hasResponseID(&o.req, id) {
			f(o)
		}
	}
}
