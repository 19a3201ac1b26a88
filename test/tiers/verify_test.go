//go:build e2e

package tiers

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The baseline of builtin:gateway, 5 %, as a threshold on the last 56 bits of a trace id.
const (
	baselineState     = "ot=th:f3333333333333"
	baselineThreshold = uint64(0xf3333333333333)
	alwaysState       = "ot=th:0"
)

// inBaseline tells whether a trace is one of the 5 % that every gateway keeps.
func inBaseline(number uint64) bool {
	id := traceID(number)
	return binary.BigEndian.Uint64(id[8:])&(1<<56-1) >= baselineThreshold
}

// wanted is why a trace is kept, "" when it is not.
func wanted(s sentTrace) string {
	switch {
	case s.kind == failed:
		return "error"
	case s.kind == slow:
		return "slow"
	case inBaseline(s.number):
		return "baseline"
	}
	return ""
}

// arrival is how the traces at the backends compare with those that were acknowledged.
type arrival struct {
	kept, missing, partial, unexpected, dishonest int
	lost                                          []sentTrace // kept ones that did not arrive
	spans, spansTwice                             int
	records, recordsTwice, recordsMissing         int
	lostRecords                                   []sentTrace
}

func (b *backends) compare(sent []sentTrace) arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	var a arrival
	for _, s := range sent {
		rule := wanted(s)
		got := b.traces[traceID(s.number)]
		switch {
		case rule != "" && got == nil:
			a.missing++
			a.lost = append(a.lost, s)
		case rule == "" && got != nil:
			a.unexpected++
		}
		if rule != "" {
			a.kept++
		}
		switch n := b.records[engineSpan(s.number)]; {
		case n == 0:
			a.recordsMissing++
			a.lostRecords = append(a.lostRecords, s)
		case n > 1:
			a.recordsTwice++
		}
		if got == nil {
			continue
		}
		distinct := 0
		for layer := range spansPerTrace {
			if n := b.spans[spanID(s.number, layer)]; n > 0 {
				distinct++
				a.spansTwice += n - 1
			}
		}
		a.spans += distinct
		if distinct < spansPerTrace {
			a.partial++
		}
		// Honest: what was kept for a reason stands for itself, the baseline for 20; never anything else, on any span.
		for state := range got.states {
			if state != alwaysState && (state != baselineState || !inBaseline(s.number)) {
				a.dishonest++
			}
		}
	}
	a.records = len(b.records)
	return a
}

func (a arrival) String() string {
	return fmt.Sprintf("kept %d: %d missing, %d partial, %d not expected, %d with a wrong weight; %d spans, %d a second time; %d records: %d missing, %d a second time",
		a.kept, a.missing, a.partial, a.unexpected, a.dishonest, a.spans, a.spansTwice, a.records, a.recordsMissing, a.recordsTwice)
}

// load runs traffic in the background until the returned function is called, which waits for the senders and returns what was acknowledged.
func load(t testing.TB, tr *traffic, urls []string, rate float64, senders int) func() []sentTrace {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tr.run(ctx, urls, rate, senders)
	}()
	stop := func() []sentTrace {
		cancel()
		<-done
		return tr.acknowledged()
	}
	t.Cleanup(func() { stop() })
	return stop
}

// acked waits until so many more traces are acknowledged.
func acked(t testing.TB, tr *traffic, more int) {
	t.Helper()
	want := len(tr.acknowledged()) + more
	until(t, fmt.Sprintf("%d traces are acknowledged", want), func() bool { return len(tr.acknowledged()) >= want })
}

// settled waits until the agents' queues are empty, the gateways hold nothing and their exporters have sent everything, twice in a row.
func (top *topology) settled(t testing.TB, agents ...*agent) {
	t.Helper()
	quiet, last := 0, -1
	until(t, "everything is sent", func() bool {
		waiting := 0.0
		for _, a := range agents {
			waiting += a.metric(t, "otelcol_exporter_queue_size", "load_balancing")
		}
		for _, g := range top.gateways {
			select {
			case <-g.Exited():
				continue
			default:
			}
			waiting += g.metric(t, "otelcol_processor_llmspan_held_spans") + g.metric(t, "otelcol_processor_llmspan_undelivered_spans") +
				g.metric(t, "otelcol_exporter_queue_size", "traces") + g.metric(t, "otelcol_exporter_queue_size", "records")
		}
		top.backends.mu.Lock()
		now := len(top.backends.spans) + len(top.backends.records)
		top.backends.mu.Unlock()
		if waiting > 0 || now != last {
			quiet, last = 0, now
			time.Sleep(200 * time.Millisecond)
			return false
		}
		quiet++
		time.Sleep(400 * time.Millisecond)
		return quiet > 4
	})
}

// clean asserts what holds in every test: nothing that a backend could not read, no text, one writer a series.
func (top *topology) clean(t testing.TB) {
	t.Helper()
	top.backends.mu.Lock()
	defer top.backends.mu.Unlock()
	assert.Empty(t, top.backends.faults)
	assert.Empty(t, top.backends.series.outOfOrder, "every series has one writer")
}
