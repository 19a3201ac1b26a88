package sim

import (
	"container/heap"
	"time"
)

// agenda holds what is to happen, in order of time and, at one instant, in order of entry.
type agenda struct {
	items []event
	count uint64
}

type event struct {
	at    time.Duration
	order uint64
	do    func()
}

func (a *agenda) add(at time.Duration, do func()) {
	a.count++
	heap.Push(a, event{at, a.count, do})
}

// next takes the first event at or before until.
func (a *agenda) next(until time.Duration) (event, bool) {
	if len(a.items) == 0 || a.items[0].at > until {
		return event{}, false
	}
	return heap.Pop(a).(event), true
}

// first is the instant of the next event.
func (a *agenda) first() (time.Duration, bool) {
	if len(a.items) == 0 {
		return 0, false
	}
	return a.items[0].at, true
}

// Len, Less, Swap, Push and Pop are heap.Interface.
func (a *agenda) Len() int { return len(a.items) }

func (a *agenda) Less(i, j int) bool {
	if a.items[i].at != a.items[j].at {
		return a.items[i].at < a.items[j].at
	}
	return a.items[i].order < a.items[j].order
}
func (a *agenda) Swap(i, j int) { a.items[i], a.items[j] = a.items[j], a.items[i] }
func (a *agenda) Push(x any)    { a.items = append(a.items, x.(event)) }
func (a *agenda) Pop() any {
	last := len(a.items) - 1
	e := a.items[last]
	a.items[last] = event{}
	a.items = a.items[:last]
	return e
}
