package join

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// identity is what is known of one response id across traces. An id need not be unique: a caller, a proxy or a stub may send a constant.
// It joins traces only as long as it was seen on one call of an engine and in one trace of each other layer; that it was seen twice is
// remembered as long as anything with the id is, so that what a join depends on is not the order in which spans come.
type identity struct {
	group  *group
	groups int // distinct calls of engines that had the id
	sides  [request.LayerEngine]side
	refs   int
}

// side is what one layer has under an id.
type side struct {
	trace   pcommon.TraceID
	outers  []*outer
	first   [1]*outer // where outers begins
	many    bool      // seen in several traces
	settled bool      // one of them was counted
}

// identify returns what is known under an id and keeps it until release; nil for no id.
func (j *Joiner) identify(id string) *identity {
	if id == "" {
		return nil
	}
	i, ok := j.byID[id]
	if !ok {
		i = &identity{}
		j.byID[id] = i
	}
	i.refs++
	return i
}

func (j *Joiner) release(i *identity, id string) {
	if i == nil {
		return
	}
	if i.refs--; i.refs <= 0 {
		delete(j.byID, id)
	}
}

func (i *identity) addGroup(g *group) {
	i.group = g
	i.groups++
}

func (i *identity) addOuter(o *outer) {
	s := &i.sides[o.req.layer]
	switch {
	case s.many:
	case s.trace.IsEmpty(), s.trace == o.trace:
		s.trace = o.trace
		if s.outers == nil {
			s.outers = s.first[:0]
		}
		s.outers = append(s.outers, o)
	default:
		s.many, s.outers, s.first[0] = true, nil, nil
	}
}

// forget lets go of what a trace had, which is dropped. What was learnt stays.
func (i *identity) forget(t *trace) {
	if i.group != nil && i.group.trace == t {
		i.group = nil
	}
	for l := range i.sides {
		if s := &i.sides[l]; s.trace == t.id {
			s.outers, s.first[0] = nil, nil
		}
	}
}

// unique tells whether one call of an engine at most has the id, and no other trace than o's has it on o's layer.
func (i *identity) unique(o *outer) bool { return i.groups <= 1 && !i.sides[o.req.layer].many }

// partners are the layers in another trace that have o's id: the other side of the same request.
func (i *identity) partners(o *outer) *side {
	if !i.unique(o) {
		return nil
	}
	for l := range i.sides {
		if s := &i.sides[l]; request.Layer(l) != o.req.layer && !s.many && !s.trace.IsEmpty() && s.trace != o.trace {
			return s
		}
	}
	return nil
}
