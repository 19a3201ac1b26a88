// Package pace lets a limited number of things pass in each second.
package pace

import "time"

// Limiter admits at most PerSecond things in a window of one second; the first one after a window's end opens the next.
// Not safe for concurrent use. PerSecond 0 admits everything.
type Limiter struct {
	PerSecond int

	opened time.Time
	used   int
}

// Admit says whether one more thing may pass at now.
func (l *Limiter) Admit(now time.Time) bool {
	if l.PerSecond == 0 {
		return true
	}
	// A clock that went back opens a window too: otherwise nothing would pass until it has caught up.
	if age := now.Sub(l.opened); age >= time.Second || age < 0 {
		l.opened, l.used = now, 0
	}
	if l.used >= l.PerSecond {
		return false
	}
	l.used++
	return true
}
