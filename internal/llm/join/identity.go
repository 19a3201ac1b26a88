package join

import (
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// identity is what is known of one response id across traces. An id need not be unique: a caller, a proxy or a stub may send a constant.
// It joins traces only as long as it was seen on one call of an engine and in one trace of each other layer; that it was seen twice is
// remembered as long as anything with the id is, so that what a join depends on is not the order in which spans come.
type identity struct {
	id     idHash
	sides  [request.LayerEngine]side
	groups int // distinct calls of engines that had the id
	refs   int
	group  ref
}

// side is what one layer has under an id.
type side struct {
	trace       pcommon.TraceID
	first, last ref  // of the layers, each of which knows the next beside it
	many        bool // seen in several traces
	settled     bool // one of them was counted
}

// idHash stands for an id: with 128 bits of a hash that nobody can predict, two ids of one do not happen. The zero value is no id.
type idHash [2]uint64

var idSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func hashID(id string) idHash {
	if id == "" {
		return idHash{}
	}
	return idHash{maphash.String(idSeeds[0], id), maphash.String(idSeeds[1], id)}
}

// identify returns what is known under an id and keeps it until release; none for no id.
func (j *Joiner) identify(h idHash) ref {
	if h == (idHash{}) {
		return 0
	}
	r, ok := j.byID[h]
	if !ok {
		var i *identity
		r, i = j.idents.add()
		i.id = h
		j.byID[h] = r
	}
	j.idents.at(r).refs++
	return r
}

func (j *Joiner) release(r ref) {
	i := j.idents.at(r)
	if i == nil {
		return
	}
	if i.refs--; i.refs <= 0 {
		delete(j.byID, i.id)
		j.idents.release(r)
	}
}

func (i *identity) addGroup(g *group) {
	i.group = g.self
	i.groups++
}

func (i *identity) addOuter(j *Joiner, o *outer) {
	s := &i.sides[o.req.layer]
	switch {
	case s.many:
	case s.trace.IsEmpty(), s.trace == o.trace:
		s.trace = o.trace
		if last := j.outers.at(s.last); last != nil {
			last.beside = o.self
		} else {
			s.first = o.self
		}
		s.last = o.self
	default:
		s.many, s.first, s.last = true, 0, 0
	}
}

// forget lets go of what a trace had, which is dropped. What was learnt stays.
func (i *identity) forget(j *Joiner, t *trace) {
	if g := j.groups.at(i.group); g != nil && g.trace == t.self {
		i.group = 0
	}
	for l := range i.sides {
		if s := &i.sides[l]; s.trace == t.id {
			s.first, s.last = 0, 0
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
