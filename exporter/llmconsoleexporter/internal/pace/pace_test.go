package pace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// admitted says how many of n things pass at one moment.
func admitted(l *Limiter, at time.Duration, n int) int {
	passed := 0
	for range n {
		if l.Admit(start.Add(at)) {
			passed++
		}
	}
	return passed
}

func TestAdmit(t *testing.T) {
	type step struct {
		at          time.Duration
		n, admitted int
	}
	for name, tt := range map[string]struct {
		perSecond int
		steps     []step
	}{
		"five seconds' worth at once, then what has come since": {2, []step{
			{0, 100, 10}, {400 * time.Millisecond, 1, 0}, {time.Second, 100, 2}, {2 * time.Second, 100, 2}, {4 * time.Second, 100, 4},
		}},
		"a long quiet time saves no more than a burst": {2, []step{{0, 1, 1}, {time.Hour, 100, 10}}},
		"a clock that goes back neither gives nor blocks": {1, []step{
			{10 * time.Second, 9, 5}, {3 * time.Second, 9, 0}, {4 * time.Second, 9, 1},
		}},
		"no limit": {0, []step{{0, 1000, 1000}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := Limiter{PerSecond: tt.perSecond}
			for i, s := range tt.steps {
				assert.Equal(t, s.admitted, admitted(&l, s.at, s.n), "step %d", i)
			}
		})
	}
}
