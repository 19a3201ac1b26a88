package join

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// seen remembers request spans after their trace has been forgotten, so that a sender's late retry is told from a new request. It keeps
// two generations: one that is filled, and the one before, which is forgotten when the next begins. A span is remembered for at
// least half of the time and at most the whole of it, unless there are too many.
type seen struct {
	every         time.Duration // of a generation
	max           int           // spans of a generation, after which no further trace is added to it
	recent, older generation
	since         time.Time
}

// generation has most spans with their trace: one look tells of most traces that nothing of them was seen.
type generation struct {
	spans  int
	traces map[pcommon.TraceID]fewIDs
	more   map[key]struct{} // beyond what has room in traces
}

// fewIDs are the first of the ids of a trace; n is the number of all.
type fewIDs struct {
	ids [3]pcommon.SpanID
	n   int
}

func newGeneration() generation {
	return generation{traces: map[pcommon.TraceID]fewIDs{}, more: map[key]struct{}{}}
}

func (g *generation) has(k key) bool {
	f := g.traces[k.trace]
	if slices.Contains(f.ids[:min(f.n, len(f.ids))], k.span) {
		return true
	}
	if f.n <= len(f.ids) {
		return false
	}
	_, ok := g.more[k]
	return ok
}

func newSeen(remember time.Duration, most int) seen {
	return seen{every: remember, max: most, recent: newGeneration()}
}

// any tells whether a span of a trace is remembered.
func (s *seen) any(t pcommon.TraceID) bool {
	return s.recent.traces[t].n > 0 || s.older.traces[t].n > 0
}

func (s *seen) has(k key) bool { return s.recent.has(k) || s.older.has(k) }

// add adds spans of a trace that are not remembered yet.
func (s *seen) add(now time.Time, t pcommon.TraceID, spans []pcommon.SpanID) {
	s.rotate(now)
	if len(spans) == 0 {
		return
	}
	g := &s.recent
	f := g.traces[t]
	for _, id := range spans {
		if f.n < len(f.ids) {
			f.ids[f.n] = id
		} else {
			g.more[key{t, id}] = struct{}{}
		}
		f.n++
	}
	g.traces[t] = f
	g.spans += len(spans)
}

func (s *seen) rotate(now time.Time) {
	if s.since.IsZero() {
		s.since = now
	}
	if now.Sub(s.since) < s.every && s.recent.spans < s.max {
		return
	}
	s.older, s.recent, s.since = s.recent, newGeneration(), now
}
