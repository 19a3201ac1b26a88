// Package interval runs something again and again while a component is started.
package interval

import (
	"context"
	"sync"
	"time"
)

// Loop runs a function at an interval in one goroutine until it is stopped.
type Loop struct {
	Every time.Duration // must be positive
	Run   func(context.Context)

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// Start starts the goroutine; its context is not the caller's, which ends with the start.
func (l *Loop) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.done.Go(func() {
		tick := time.NewTicker(l.Every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				l.Run(ctx)
			}
		}
	})
}

// Stop ends the goroutine and waits for it. It is safe twice and without Start.
func (l *Loop) Stop() {
	if l.cancel != nil {
		l.cancel()
	}
	l.done.Wait()
}
