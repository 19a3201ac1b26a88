package assemble

import (
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/sampling"
)

// Decisions remembers what was decided on traces, the most recently used of them. Kept and dropped ones have room apart, because the
// dropped are twenty times as many. It is not safe for concurrent use.
type Decisions struct {
	kept, dropped *simplelru.LRU[pcommon.TraceID, sampling.Decision]
}

// NewDecisions returns a memory for so many kept and dropped traces, at least one each.
func NewDecisions(kept, dropped int) *Decisions {
	d := &Decisions{}
	// The only error is a size below one.
	d.kept, _ = simplelru.NewLRU[pcommon.TraceID, sampling.Decision](max(kept, 1), nil)
	d.dropped, _ = simplelru.NewLRU[pcommon.TraceID, sampling.Decision](max(dropped, 1), nil)
	return d
}

// Put remembers a decision. A trace has one: a kept trace that was dropped before counts as kept.
func (d *Decisions) Put(id pcommon.TraceID, s sampling.Decision) {
	if s.Keep {
		d.dropped.Remove(id)
		d.kept.Add(id, s)
		return
	}
	d.dropped.Add(id, s)
}

// Get is the decision on a trace, if it is remembered.
func (d *Decisions) Get(id pcommon.TraceID) (sampling.Decision, bool) {
	if s, ok := d.kept.Get(id); ok {
		return s, true
	}
	return d.dropped.Get(id)
}

// Len is the number of decisions that are remembered.
func (d *Decisions) Len() int { return d.kept.Len() + d.dropped.Len() }
