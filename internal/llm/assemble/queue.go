package assemble

// queue is a list of traces that are linked among themselves: a list with elements of its own is three more allocations for each trace that
// is held, and as many objects to mark in every garbage collection.
type queue struct {
	by          int // the place of a trace that links it
	first, last *Trace
}

// The orders in which a trace waits.
const (
	byAge = iota
	byTouch
	byRoot
	numQueues
)

// place is where a trace stands in a queue.
type place struct{ before, behind *Trace }

func (q *queue) pushBack(t *Trace) {
	t.places[q.by] = place{before: q.last}
	if q.last == nil {
		q.first = t
	} else {
		q.last.places[q.by].behind = t
	}
	q.last = t
}

func (q *queue) pushFront(t *Trace) {
	t.places[q.by] = place{behind: q.first}
	if q.first == nil {
		q.last = t
	} else {
		q.first.places[q.by].before = t
	}
	q.first = t
}

// remove takes out a trace that is in the queue.
func (q *queue) remove(t *Trace) {
	p := &t.places[q.by]
	if p.before == nil {
		q.first = p.behind
	} else {
		p.before.places[q.by].behind = p.behind
	}
	if p.behind == nil {
		q.last = p.before
	} else {
		p.behind.places[q.by].before = p.before
	}
	*p = place{}
}
