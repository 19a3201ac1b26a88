package join

import (
	"container/list"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// trace is what is remembered of one trace.
type trace struct {
	id      pcommon.TraceID
	touched time.Time
	batch   uint64
	elem    *list.Element
	nodes   []*node
	outers  []*outer
	byID    map[string][]*outer // beyond fewSpans
	groups  []*group
	byKey   map[groupKey]*group // beyond fewSpans
	paired  map[groupKey]*group // the other sides of disaggregated requests
	beams   []*group
	waiting int // spans that wait
}

// fewSpans is up to how many a list is looked through; most traces have one or two requests, and a map for each would be most of what they
// cost. A trace of thousands has maps.
const fewSpans = 8

func (t *trace) find(k groupKey) *group {
	if g, ok := t.paired[k]; ok {
		return g
	}
	if t.byKey != nil {
		return t.byKey[k]
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
	switch {
	case t.byKey != nil:
		t.byKey[g.groupKey] = g
	case len(t.groups) > fewSpans:
		t.byKey = make(map[groupKey]*group, 2*fewSpans)
		for _, g := range t.groups {
			t.byKey[g.groupKey] = g
		}
	}
	if g.beam {
		t.beams = append(t.beams, g)
	}
}

func (t *trace) addOuter(o *outer) {
	t.outers = append(t.outers, o)
	switch {
	case t.byID != nil:
		t.byID[o.id] = append(t.byID[o.id], o)
	case len(t.outers) > fewSpans:
		t.byID = make(map[string][]*outer, 2*fewSpans)
		for _, o := range t.outers {
			t.byID[o.id] = append(t.byID[o.id], o)
		}
	}
}

// withID are the layers that may have an id: all that do, and others where there are few.
func (t *trace) withID(id string) []*outer {
	if t.byID != nil {
		return t.byID[id]
	}
	return t.outers
}
