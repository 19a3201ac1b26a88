package llmconsoleexporter

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/exporter/llmconsoleexporter/internal/line"
)

const (
	// queueLines bounds the lines that wait for the terminal; 256 lines of at most 700 characters are under 1 MB.
	queueLines = 256
	// summaryEvery is how often a line says how many were left out.
	summaryEvery = time.Second
	// patience bounds how long a full queue holds a pipeline up, once until the output takes a line again: a burst that comes
	// faster than a terminal scrolls is then printed whole, and a terminal that stands still costs next to nothing.
	patience = 100 * time.Millisecond
	// drainTimeout bounds how long Shutdown waits for a terminal that does not take lines: somebody pressed Ctrl-S, or the
	// reader of a pipe stands still.
	drainTimeout = 2 * time.Second
)

var errNotDrained = errors.New("lines were left unprinted: the output took none for " + drainTimeout.String())

// printer writes lines in a goroutine of its own, so that an output which blocks does not hold a pipeline up.
type printer struct {
	out    io.Writer
	color  bool
	logger *zap.Logger
	done   func(outcome string) // told what became of each line

	lines   chan string
	leftOut atomic.Int64 // requests without a line since the last summary

	stuck atomic.Bool // the queue stayed full for patience, and no line was written since

	start, end sync.Once
	stop       chan struct{}
	stopped    chan struct{} // closed when the goroutine has ended
	started    atomic.Bool   // without it nobody would ever close stopped
	failing    bool          // owned by the goroutine: the last write failed
}

func newPrinter(out io.Writer, color bool, logger *zap.Logger, done func(string)) *printer {
	return &printer{
		out: out, color: color, logger: logger, done: done,
		lines: make(chan string, queueLines), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
}

// print queues a line, or counts it as left out when the queue stays full; it blocks for patience at most.
func (p *printer) print(text string) {
	select {
	case p.lines <- text:
		return
	default:
	}
	if !p.stuck.Load() {
		full := time.NewTimer(patience)
		defer full.Stop()
		select {
		case p.lines <- text:
			return
		case <-p.stop:
		case <-full.C:
			p.stuck.Store(true)
		}
	}
	p.skip(outcomeBlocked)
}

// skip counts a request that gets no line.
func (p *printer) skip(outcome string) {
	p.leftOut.Add(1)
	p.done(outcome)
}

func (p *printer) run() {
	p.start.Do(func() {
		p.started.Store(true)
		go p.loop()
	})
}

func (p *printer) loop() {
	defer close(p.stopped)
	tick := time.NewTicker(summaryEvery)
	defer tick.Stop()
	for {
		select {
		case text := <-p.lines:
			p.line(text)
		case <-tick.C:
			p.summary()
		case <-p.stop:
			p.drain()
			return
		}
	}
}

// drain prints what is queued; nothing is added once the pipelines before this exporter have stopped.
func (p *printer) drain() {
	for {
		select {
		case text := <-p.lines:
			p.line(text)
		default:
			p.summary()
			return
		}
	}
}

func (p *printer) line(text string) {
	if p.write(text) {
		p.done(outcomePrinted)
		return
	}
	p.done(outcomeWriteFailed)
}

func (p *printer) summary() {
	if n := p.leftOut.Swap(0); n > 0 {
		p.write(line.LeftOut(n, p.color))
	}
}

// write puts one line out in one call and logs when the output starts and stops failing.
func (p *printer) write(text string) bool {
	_, err := io.WriteString(p.out, text+"\n")
	switch {
	case err != nil && !p.failing:
		p.logger.Warn("cannot write request lines; records elsewhere are not affected", zap.Error(err))
	case err == nil && p.failing:
		p.logger.Info("request lines are written again")
	}
	p.failing = err != nil
	p.stuck.Store(false)
	return err == nil
}

// shutdown prints what is queued and waits for it, at most drainTimeout. Safe twice and without run.
func (p *printer) shutdown(ctx context.Context) error {
	p.end.Do(func() { close(p.stop) })
	if !p.started.Load() {
		return nil
	}
	late := time.NewTimer(drainTimeout)
	defer late.Stop()
	select {
	case <-p.stopped:
		return nil
	case <-late.C:
		return errNotDrained
	case <-ctx.Done():
		return errors.Join(errNotDrained, ctx.Err())
	}
}
