package join

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// trace is what is remembered of one trace.
type trace struct {
	id         pcommon.TraceID
	touched    time.Time
	prev, next *trace // of Joiner.order
	batch      uint64
	pass       uint64
	spans      []mark
	outers     []*outer
	groups     []*group
	waiting    int // spans that wait
	rare       *rare

	// Where the slices begin: most traces have few spans, and a slice for each of these would be most of what they cost.
	firstSpans [4]mark
	firstOuter [1]*outer
	firstGroup [1]*group
}

// mark is one span of a trace, and whether it reported a request.
type mark struct {
	id      pcommon.SpanID
	request bool
}

// rare is what few traces have.
type rare struct {
	byID   map[string][]*outer // beyond fewSpans
	byKey  map[groupKey]*group // beyond fewSpans
	paired map[groupKey]*group // the other sides of disaggregated requests
	beams  []*group
}

func newTrace(id pcommon.TraceID) *trace {
	t := &trace{id: id}
	t.spans, t.outers, t.groups = t.firstSpans[:0], t.firstOuter[:0], t.firstGroup[:0]
	return t
}

// more is t's rare, made when it has none.
func (t *trace) more() *rare {
	if t.rare == nil {
		t.rare = &rare{}
	}
	return t.rare
}

// queue is a list of traces that is made of themselves.
type queue struct{ front, back *trace }

func (q *queue) pushBack(t *trace) {
	t.prev, t.next = q.back, nil
	if q.back == nil {
		q.front = t
	} else {
		q.back.next = t
	}
	q.back = t
}

func (q *queue) remove(t *trace) {
	if t.prev == nil {
		q.front = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		q.back = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
}

func (q *queue) moveToBack(t *trace) {
	if q.back != t {
		q.remove(t)
		q.pushBack(t)
	}
}

// fewSpans is up to how many a list is looked through; most traces have one or two requests, and a map for each would be most of what they
// cost. A trace of thousands has maps.
const fewSpans = 8

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
	if len(t.groups) > fewSpans {
		m := t.more()
		if m.byKey == nil {
			m.byKey = make(map[groupKey]*group, 2*fewSpans)
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

func (t *trace) addOuter(o *outer) {
	t.outers = append(t.outers, o)
	if len(t.outers) <= fewSpans {
		return
	}
	m := t.more()
	if m.byID != nil {
		m.byID[o.id()] = append(m.byID[o.id()], o)
		return
	}
	m.byID = make(map[string][]*outer, 2*fewSpans)
	for _, o := range t.outers {
		m.byID[o.id()] = append(m.byID[o.id()], o)
	}
}

// withID are the layers that may have an id: all that do, and others where there are few.
func (t *trace) withID(id string) []*outer {
	if t.rare != nil && t.rare.byID != nil {
		return t.rare.byID[id]
	}
	return t.outers
}
