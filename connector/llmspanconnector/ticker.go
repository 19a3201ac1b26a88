package llmspanconnector

import (
	"context"
	"sync"
	"time"
)

// ticker runs a function at an interval in one goroutine until it is stopped.
type ticker struct {
	interval time.Duration
	run      func(context.Context)
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

// start starts the goroutine; its context is not the caller's, which ends with the start.
func (t *ticker) start() {
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	t.done.Add(1)
	go func() {
		defer t.done.Done()
		tick := time.NewTicker(t.interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				t.run(ctx)
			}
		}
	}()
}

// stop ends the goroutine and waits for it. It is safe twice and without start.
func (t *ticker) stop() {
	if t.cancel != nil {
		t.cancel()
	}
	t.done.Wait()
}
