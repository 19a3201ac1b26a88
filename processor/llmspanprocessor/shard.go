package llmspanprocessor

import (
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/assemble"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/sampling"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/split"
)

// shard holds and decides the traces of one part of the trace ids.
type shard struct {
	mu        sync.Mutex // guards all below
	buffer    *assemble.Buffer
	keys      *assemble.Keys // of the buffer
	decisions *assemble.Decisions
	sampler   *sampling.Sampler
	whole     *split.Whole
	tag       bool
	released  []*assemble.Trace // reused
}

// outcome is what a shard made of one call.
type outcome struct {
	batches []ptrace.Traces // to be passed on
	facts   split.WholeFacts
	// released counts decided traces by reason; late the spans that followed a decision; lateDropped those of them that were dropped;
	// upgraded the dropped traces that a late span made worth keeping.
	released                    [assemble.NumReasons]int
	late, lateDropped, upgraded int
	// duplicates counts spans that their trace had already.
	duplicates int
}

// arrival is a span of a batch that came, and the shard that it belongs to.
type arrival struct {
	span   ptrace.Span
	origin *assemble.Origin
	shard  uint8
}

// add takes the spans of one batch that belong to the shard, which is that of number own.
func (s *shard) add(now time.Time, own uint8, arrived []arrival) outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out outcome
	var late []*assemble.Trace
	var lateOf map[pcommon.TraceID]*assemble.Trace
	released := s.released[:0]
	before := s.buffer.Duplicates()
	for _, a := range arrived {
		if a.shard != own {
			continue
		}
		span := a.span
		if _, decided := s.decisions.Get(span.TraceID()); !decided {
			released = s.buffer.Add(now, span, a.origin, assemble.Note(split.NoteOf(span)), released)
			continue
		}
		t, ok := lateOf[span.TraceID()]
		if !ok {
			if lateOf == nil {
				lateOf = map[pcommon.TraceID]*assemble.Trace{}
			}
			t = &assemble.Trace{ID: span.TraceID()}
			lateOf[t.ID] = t
			late = append(late, t)
		}
		out.late++
		t.Append(span, a.origin)
	}
	out.duplicates = s.buffer.Duplicates() - before
	s.decide(now, released, &out)
	s.follow(now, late, &out)
	return out
}

// due decides traces whose wait is over, those of one batch; more says that there may be others.
func (s *shard) due(now time.Time) (out outcome, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	released := s.buffer.Due(now, maxBatchTraces, s.released[:0], func(t *assemble.Trace) bool {
		return s.whole.Lacks(now, t.Len(), func(i int) split.Note { return split.Note(t.Note(i)) }, func(i int) string {
			v, _ := t.Origin(i).Resource.Attributes().Get(names.ServiceName)
			return v.AsString()
		})
	})
	more = len(released) >= maxBatchTraces
	s.decide(now, released, &out)
	return out, more
}

// drain decides what is held, as due does.
func (s *shard) drain(now time.Time) (out outcome, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	released := s.buffer.Drain(maxBatchTraces, s.released[:0])
	more = len(released) >= maxBatchTraces
	s.decide(now, released, &out)
	return out, more
}

// maxBatchTraces bounds the traces that are decided and passed on together, so that a batch stays far below a receiver's message limit.
const maxBatchTraces = 256

// maxBatchSpans bounds their spans likewise, but for those of one trace. A span is some 3 KB while it is decided on, and is gone through
// several times: those of 256 traces of 20 spans do not fit a cache, and made each span a tenth dearer.
const maxBatchSpans = 1024

// together is how many of the first traces are decided on together.
func together(traces []*assemble.Trace) (n int) {
	spans := 0
	for n < min(len(traces), maxBatchTraces) {
		if spans += traces[n].Len(); n > 0 && spans > maxBatchSpans {
			break
		}
		n++
	}
	return n
}

// decide decides on released traces.
func (s *shard) decide(now time.Time, traces []*assemble.Trace, out *outcome) {
	defer func() {
		clear(traces)
		s.released = traces[:0]
	}()
	for rest := traces; len(rest) > 0; {
		part := rest[:together(rest)]
		rest = rest[len(part):]
		cut := map[pcommon.TraceID]bool{}
		for _, t := range part {
			out.released[t.Reason]++
			if !t.Reason.Complete() {
				cut[t.ID] = true
			}
		}
		td := assemble.Batch(s.keys, part)
		f := s.whole.Traces(now, td, cut, func(id pcommon.TraceID, t *sampling.Trace) sampling.Decision {
			d := s.sampler.Decide(now, t)
			s.decisions.Put(id, d)
			return d
		})
		markPartial(td, cut)
		out.facts.Add(&f)
		if td.SpanCount() > 0 {
			out.batches = append(out.batches, td)
		}
	}
}

// follow treats spans that came after the decision on their trace. They follow it, but for an error or a slow request in a dropped
// trace: from there on it is kept, and says that it is a part.
func (s *shard) follow(now time.Time, late []*assemble.Trace, out *outcome) {
	if len(late) == 0 {
		return
	}
	all := map[pcommon.TraceID]bool{}
	for _, t := range late {
		all[t.ID] = true
	}
	td := assemble.Batch(s.keys, late)
	f := s.whole.Traces(now, td, all, func(id pcommon.TraceID, t *sampling.Trace) sampling.Decision {
		d, _ := s.decisions.Get(id)
		if d.Keep {
			return d
		}
		if up, ok := s.sampler.Upgrade(now, t); ok {
			out.upgraded++
			s.decisions.Put(id, up)
			return up
		}
		return d
	})
	markPartial(td, all)
	// The traces were counted when they were decided on.
	f.Kept, f.DroppedTraces = nil, nil
	out.lateDropped += f.Dropped
	out.facts.Add(&f)
	if td.SpanCount() > 0 {
		out.batches = append(out.batches, td)
	}
}

// markPartial says of the spans of traces that were cut, or came late, that they are a part.
func markPartial(td ptrace.Traces, cut map[pcommon.TraceID]bool) {
	if len(cut) == 0 {
		return
	}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if cut[span.TraceID()] {
					span.Attributes().PutBool(names.SamplingPartial, true)
				}
			}
		}
	}
}
