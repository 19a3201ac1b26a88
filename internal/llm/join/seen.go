package join

import "time"

// seen remembers request spans after their trace has been forgotten, so that a sender's late retry is told from a new request. It keeps
// two generations of keys: one that is filled, and the one before, which is forgotten when the next begins. A key is remembered for at
// least half of the time and at most the whole of it, unless there are too many.
type seen struct {
	every         time.Duration // of a generation
	max           int           // keys of a generation
	recent, older map[key]struct{}
	since         time.Time
}

func newSeen(remember time.Duration, most int) seen {
	return seen{every: remember, max: most, recent: map[key]struct{}{}}
}

func (s *seen) has(k key) bool {
	if _, ok := s.recent[k]; ok {
		return true
	}
	_, ok := s.older[k]
	return ok
}

func (s *seen) add(now time.Time, k key) {
	s.rotate(now)
	s.recent[k] = struct{}{}
}

func (s *seen) rotate(now time.Time) {
	if s.since.IsZero() {
		s.since = now
	}
	if now.Sub(s.since) < s.every && len(s.recent) < s.max {
		return
	}
	s.older, s.recent, s.since = s.recent, map[key]struct{}{}, now
}
