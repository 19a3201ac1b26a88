package pace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAdmit(t *testing.T) {
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	type step struct {
		at   time.Duration
		want bool
	}
	for name, tt := range map[string]struct {
		perSecond int
		steps     []step
	}{
		"admits up to the limit, refuses the rest of the second": {2, []step{
			{0, true}, {100 * time.Millisecond, true}, {200 * time.Millisecond, false}, {999 * time.Millisecond, false}, {time.Second, true},
		}},
		"a window opens with the first thing, not on the clock's second": {1, []step{
			{700 * time.Millisecond, true}, {1500 * time.Millisecond, false}, {1700 * time.Millisecond, true},
		}},
		"a clock that goes back does not block": {1, []step{
			{10 * time.Second, true}, {10 * time.Second, false}, {3 * time.Second, true}, {3 * time.Second, false},
		}},
		"no limit": {0, []step{{0, true}, {0, true}, {0, true}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := Limiter{PerSecond: tt.perSecond}
			for i, s := range tt.steps {
				assert.Equal(t, s.want, l.Admit(start.Add(s.at)), "step %d", i)
			}
		})
	}
}
