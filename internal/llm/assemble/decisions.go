package assemble

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/sampling"
)

// Decisions remembers what was decided on traces, the most recently used of them. Kept and dropped ones have room apart, because the
// dropped are twenty times as many. It is not safe for concurrent use.
type Decisions struct {
	kept, dropped *recent
	// rules are the names of rules, numbered.
	rules  []string
	number map[string]int32
}

// NewDecisions returns a memory for so many kept and dropped traces, at least one each.
func NewDecisions(kept, dropped int) *Decisions {
	return &Decisions{kept: newRecent(kept), dropped: newRecent(dropped), number: map[string]int32{}}
}

// Put remembers a decision. A trace has one: a kept trace that was dropped before counts as kept.
func (d *Decisions) Put(id pcommon.TraceID, s sampling.Decision) {
	n, ok := d.number[s.Rule]
	if !ok {
		n = int32(len(d.rules))
		d.rules = append(d.rules, s.Rule)
		d.number[s.Rule] = n
	}
	e := decided{keep: s.Keep, rule: n, threshold: s.Threshold}
	if s.Keep {
		d.dropped.remove(id)
		d.kept.put(id, e)
		return
	}
	d.dropped.put(id, e)
}

// Get is the decision on a trace, if it is remembered.
func (d *Decisions) Get(id pcommon.TraceID) (sampling.Decision, bool) {
	e, ok := d.kept.get(id)
	if !ok {
		e, ok = d.dropped.get(id)
	}
	if !ok {
		return sampling.Decision{}, false
	}
	return sampling.Decision{Keep: e.keep, Rule: d.rules[e.rule], Threshold: e.threshold}, true
}

// Len is the number of decisions that are remembered.
func (d *Decisions) Len() int { return len(d.kept.place) + len(d.dropped.place) }

// decided is a decision without a pointer.
type decided struct {
	keep      bool
	rule      int32
	threshold sampling.Threshold
}

// recent is a memory of the most recently used decisions. There are half a million of them, so that none of it holds a pointer: one entry
// each on the heap, as a list has, is marked again in every garbage collection for as long as the process runs.
type recent struct {
	max   int
	place map[pcommon.TraceID]int32
	// entries form a ring by their places: entries[0] is no decision, what comes after it was used last, what comes before it longest ago.
	entries []entry
	free    int32 // the first entry that is not in use, 0 for none; they are linked by next
}

type entry struct {
	id         pcommon.TraceID
	decided    decided
	prev, next int32
}

func newRecent(size int) *recent {
	return &recent{max: max(size, 1), place: map[pcommon.TraceID]int32{}, entries: make([]entry, 1)}
}

func (r *recent) get(id pcommon.TraceID) (decided, bool) {
	i, ok := r.place[id]
	if !ok {
		return decided{}, false
	}
	r.unlink(i)
	r.link(i)
	return r.entries[i].decided, true
}

func (r *recent) put(id pcommon.TraceID, d decided) {
	i, ok := r.place[id]
	switch {
	case ok:
		r.unlink(i)
	case len(r.place) >= r.max:
		i = r.entries[0].prev // the one used longest ago makes room
		delete(r.place, r.entries[i].id)
		r.unlink(i)
	case r.free != 0:
		i = r.free
		r.free = r.entries[i].next
	default:
		i = int32(len(r.entries))
		r.entries = append(r.entries, entry{})
	}
	r.entries[i].id, r.entries[i].decided = id, d
	r.place[id] = i
	r.link(i)
}

func (r *recent) remove(id pcommon.TraceID) {
	i, ok := r.place[id]
	if !ok {
		return
	}
	delete(r.place, id)
	r.unlink(i)
	r.entries[i].next, r.free = r.free, i
}

func (r *recent) unlink(i int32) {
	e := &r.entries[i]
	r.entries[e.prev].next, r.entries[e.next].prev = e.next, e.prev
}

// link makes an entry the one used last.
func (r *recent) link(i int32) {
	first := r.entries[0].next
	r.entries[i].prev, r.entries[i].next = 0, first
	r.entries[0].next, r.entries[first].prev = i, i
}
