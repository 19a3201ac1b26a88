// Package pace lets a limited number of things pass in each second.
package pace

import "time"

// burst is how many seconds' worth may pass at once after a quiet time. OpenTelemetry SDKs and engines send what they have
// every 5 s (OTEL_BSP_SCHEDULE_DELAY), so that the requests of five seconds arrive in one moment.
const burst = 5

// Limiter is a token bucket: it admits PerSecond things a second on average, and at most burst times that at once.
// Not safe for concurrent use. PerSecond 0 admits everything.
type Limiter struct {
	PerSecond int

	tokens float64 // at last
	last   time.Time
}

// Admit says whether one more thing may pass at now.
func (l *Limiter) Admit(now time.Time) bool {
	if l.PerSecond == 0 {
		return true
	}
	full := float64(l.PerSecond * burst)
	switch age := now.Sub(l.last); {
	case l.last.IsZero():
		l.tokens = full
	case age > 0: // a clock that went back adds nothing; from then on it counts as the time
		l.tokens = min(l.tokens+age.Seconds()*float64(l.PerSecond), full)
	}
	l.last = now
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}
