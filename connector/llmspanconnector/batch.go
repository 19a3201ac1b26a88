package llmspanconnector

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/dialect"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/split"
)

// batch is the spans of one call as the joiner needs them.
type batch struct {
	spans []join.Span
	// requests is the number of spans that report a request.
	requests int
	// whole says that the traces in the batch were assembled and decided on, so that nothing has to be waited for.
	whole bool
	// decided has one span of each such trace.
	decided []*request.Request

	found  []request.Request            // what spans and decided point to
	uses   []use                        // by the same index
	traces map[pcommon.TraceID]struct{} // those of decided
}

// use says what a request that was found is for.
type use struct {
	span    int // that it is of, -1 for none
	decided bool
}

// batches are those that are used again: nothing of a request is kept but copies, and a new one for each span would be most of what the
// connector allocates.
var batches = sync.Pool{New: func() any { return new(batch) }}

// maxReused is up to how many spans a batch is used again.
const maxReused = 4096

// done gives b back.
func (b *batch) done() {
	if cap(b.spans) > maxReused {
		return
	}
	clear(b.spans)
	clear(b.decided)
	clear(b.found)
	clear(b.traces)
	*b = batch{spans: b.spans[:0], decided: b.decided[:0], found: b.found[:0], uses: b.uses[:0], traces: b.traces}
	batches.Put(b)
}

// read reads the spans of a batch. Our own stage spans are left out.
func (b *batch) read(td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		var source *request.Source
		for _, ss := range rs.ScopeSpans().All() {
			if ss.Scope().Name() == split.ScopeName {
				continue
			}
			if source == nil {
				source = dialect.ReadResource(rs.Resource())
			}
			for _, span := range ss.Spans().All() {
				b.span(span, source)
			}
		}
	}
	for i, u := range b.uses { // now that found does not grow any more
		if u.span >= 0 {
			b.spans[u.span].Request = &b.found[i]
		}
		if u.decided {
			b.decided = append(b.decided, &b.found[i])
		}
	}
}

func (b *batch) span(span ptrace.Span, source *request.Source) {
	r, ok := dialect.Read(span, source)
	u := use{span: -1}
	if r.Decision != "" {
		b.whole = true
		if _, seen := b.traces[r.TraceID]; !seen && !r.Partial {
			if b.traces == nil {
				b.traces = map[pcommon.TraceID]struct{}{}
			}
			b.traces[r.TraceID] = struct{}{}
			u.decided = true
		}
	}
	reports := ok && !r.LayerOnly
	layer := ok && r.LayerOnly && r.Operation != "" // a plain layer around one call
	if reports || layer || !leaf(span) {
		if reports || layer {
			u.span = len(b.spans)
		}
		if reports {
			b.requests++
		}
		b.spans = append(b.spans, join.Span{TraceID: r.TraceID, SpanID: r.SpanID, ParentID: r.ParentID})
	}
	if u.span >= 0 || u.decided {
		b.found = append(b.found, r)
		b.uses = append(b.uses, u)
	}
}

// leaf tells the spans of single ASGI events, of which a streamed answer has hundreds and below which nothing stands.
func leaf(span ptrace.Span) bool {
	if span.Kind() != ptrace.SpanKindInternal {
		return false
	}
	_, ok := span.Attributes().Get("asgi.event.type")
	return ok
}
