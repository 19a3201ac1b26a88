package split

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/sampling"
)

// WholeOptions choose what is done with whole traces.
type WholeOptions struct {
	Options
	// FoldChunks folds the spans of single chunks into their parent.
	FoldChunks bool
	// ClientErrors makes a refused request (HTTP 4xx) an error.
	ClientErrors bool
	// Tag marks every span with the decision; otherwise the spans of dropped traces are removed.
	Tag bool
	// Links, when set, joins layers that came in different traces. All that share traces of one request share it.
	Links *Links
	// Services remembers which services' requests reach an engine; those of several Wholes may share it. Nil: it remembers by itself.
	Services *Services
}

// Decide decides on one trace.
type Decide func(id pcommon.TraceID, t *sampling.Trace) sampling.Decision

// WholeFacts is what happened to a batch of whole traces.
type WholeFacts struct {
	Facts
	// Chunks is the number of chunk spans folded, Dropped of spans removed with their trace.
	Chunks, Dropped int
	// Kept and DroppedTraces count traces by rule.
	Kept, DroppedTraces map[string]int
}

// Traces works on a batch of whole traces in place: it does what one batch's spans could not tell (layers, first tokens, outcome),
// decides on each
// trace, and marks or removes it. Stage spans are made for kept traces only. The spans have been through Recognise. Of the traces in cut
// something is missing for all that is known, so that nothing is concluded from what they lack.
func (w *Whole) Traces(now time.Time, td ptrace.Traces, cut map[pcommon.TraceID]bool, decide Decide) WholeFacts {
	f := WholeFacts{Kept: map[string]int{}, DroppedTraces: map[string]int{}}
	b := read(td, true)
	defer b.done()
	traces, order := w.index(td, b)
	for i := range b.items {
		if it := b.items[i]; it.req.Layer == request.LayerEngine {
			b.useLifecycle(it)
			it.place()
		}
	}
	var calls []*call
	o := w.o.Options
	o.Now = now
	if b.outers {
		b.parents = parentsOf(td)
		calls = b.enclose(&f.Facts)
		for _, c := range calls {
			w.user(c, traces[c.sequences[0].req.TraceID])
			w.seen.add(now, c)
		}
	} else if o.any() {
		calls, _ = b.calls(nil, nil)
	}
	w.disaggregated(b)
	var met []meet
	for _, t := range order {
		w.outcome(now, t, cut[t.id])
		if !cut[t.id] {
			t.runaway()
		}
		w.lone(t)
		met = w.meet(now, t, met)
	}
	for _, m := range met { // behind all of them: the first of two does not miss the second
		w.link(m)
	}
	b.assess(td, &o, calls, &f.Facts, true)
	drop := map[pcommon.TraceID]bool{}
	decisions := make(map[pcommon.TraceID]sampling.Decision, len(traces))
	for _, t := range order {
		d := decide(t.id, w.facts(t))
		decisions[t.id] = d
		if d.Keep {
			f.Kept[d.Rule]++
		} else {
			f.DroppedTraces[d.Rule]++
			drop[t.id] = true
		}
	}
	if w.o.FoldChunks {
		for _, t := range order {
			t.countChunks()
		}
	}
	f.Chunks, f.Dropped = w.remove(td, drop, traces)
	for i := range b.items {
		if it := b.items[i]; !it.req.Tentative && (w.o.Tag || !drop[it.req.TraceID]) {
			rewrite(it, w.o.Options)
		}
	}
	mark(td, decisions, w.o.Tag)
	if w.o.StageSpans {
		f.StageSpans = b.addStages(td, func(id pcommon.TraceID) bool { return !drop[id] })
	}
	if f.Chunks+f.Dropped > 0 {
		prune(td) // last: until here the batch's resources are known by their place
	}
	return f
}

// Whole splits batches of whole traces. It is not safe for concurrent use.
type Whole struct {
	o    WholeOptions
	seen *Services
}

// NewWhole returns a Whole that remembers in o.Services, or has a memory of its own.
func NewWhole(o WholeOptions) *Whole {
	if o.Services == nil {
		o.Services = NewServices()
	}
	return &Whole{o: o, seen: o.Services}
}

// view is one trace of a batch.
type view struct {
	id    pcommon.TraceID
	state string
	items []*item
	spans map[pcommon.SpanID]*spanView
	// chunks are the starts of the chunk spans below each span, in no order.
	chunks  map[pcommon.SpanID][]pcommon.Timestamp
	failed  bool
	matched uint64 // the rules that any span matched, as bits
	first   pcommon.Timestamp
	last    pcommon.Timestamp
}

// spanView is a span's place in its trace.
type spanView struct {
	span   ptrace.Span
	parent pcommon.SpanID
	item   *item
}

// index finds the spans of each trace, and what every span can tell of it; order is the traces as they stand in the batch.
func (w *Whole) index(td ptrace.Traces, b *batch) (traces map[pcommon.TraceID]*view, order []*view) {
	traces = map[pcommon.TraceID]*view{}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				t, ok := traces[s.TraceID()]
				if !ok {
					t = &view{id: s.TraceID(), spans: map[pcommon.SpanID]*spanView{}, first: s.StartTimestamp()}
					traces[s.TraceID()] = t
					order = append(order, t)
				}
				t.add(s)
				if v, ok := s.Attributes().Get(names.SamplingMatched); ok {
					t.matched |= uint64(v.Int())
					s.Attributes().Remove(names.SamplingMatched)
				}
			}
		}
	}
	for _, it := range b.items {
		t := traces[it.req.TraceID]
		t.items = append(t.items, it)
		if v, ok := t.spans[it.req.SpanID]; ok {
			v.item = it
		}
	}
	return traces, order
}

func (t *view) add(s ptrace.Span) {
	t.spans[s.SpanID()] = &spanView{span: s, parent: s.ParentSpanID()}
	t.failed = t.failed || s.Status().Code() == ptrace.StatusCodeError
	t.first, t.last = min(t.first, s.StartTimestamp()), max(t.last, s.EndTimestamp())
	if ts := s.TraceState().AsRaw(); ts != "" {
		t.state = ts
	}
	if isChunk(s) {
		if t.chunks == nil {
			t.chunks = map[pcommon.SpanID][]pcommon.Timestamp{}
		}
		t.chunks[s.ParentSpanID()] = append(t.chunks[s.ParentSpanID()], s.StartTimestamp())
	}
}

// facts is what sampling needs to know of a trace.
func (w *Whole) facts(t *view) *sampling.Trace {
	out := &sampling.Trace{
		State: sampling.ReadState(t.id, t.state), Error: t.failed,
		Match: func(i int) bool { return t.matched&(1<<i) != 0 },
	}
	if t.last > t.first {
		out.Duration = float64(t.last-t.first) / 1e9
	}
	for _, it := range t.items {
		r := &it.req
		if r.LayerOnly {
			continue
		}
		e2e := r.E2E
		if !e2e.Known {
			e2e = request.Some(r.Duration())
		}
		if r.UserE2E.Known && r.UserE2E.Value > e2e.Value {
			e2e = r.UserE2E
		}
		out.Calls = append(out.Calls, sampling.Call{
			Model: r.Model, Status: r.Status, TTFT: r.TTFT, UserTTFT: r.UserTTFT, TPOT: r.TPOT(), E2E: e2e, Queue: r.Queue,
			Quality: r.Quality, Oversize: r.Oversize,
		})
	}
	return out
}

// mark writes the decisions on the spans: the threshold of what is kept into the tracestate, and with tag the decision itself, so that
// a connector can measure all traces and pass on the kept.
func mark(td ptrace.Traces, decisions map[pcommon.TraceID]sampling.Decision, tag bool) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if d, ok := decisions[s.TraceID()]; ok {
					Mark(s, d, tag)
				}
			}
		}
	}
}

// Mark writes a decision on one span.
func Mark(s ptrace.Span, d sampling.Decision, tag bool) {
	a := s.Attributes()
	if d.Keep {
		if in := sampling.ReadState(s.TraceID(), s.TraceState().AsRaw()); tag && in.Known {
			a.PutDouble(names.SamplingIncoming, in.Incoming.AdjustedCount())
		}
		s.TraceState().FromRaw(sampling.WriteThreshold(s.TraceState().AsRaw(), d.Threshold))
	} else if in := sampling.ReadState(s.TraceID(), s.TraceState().AsRaw()); tag && in.Known {
		a.PutDouble(names.SamplingIncoming, in.Incoming.AdjustedCount())
	}
	a.PutStr(names.SamplingReason, d.Rule)
	if !tag {
		return
	}
	if d.Keep {
		a.PutStr(names.SamplingDecision, names.DecisionKeep)
	} else {
		a.PutStr(names.SamplingDecision, names.DecisionDrop)
	}
}

// Note is what Lacks has to know of a recognised span.
type Note uint8

const (
	noteLayer  Note = 1 << iota // it is a layer of a request
	noteEngine                  // it is an engine's
	noteFailed                  // it failed or was cancelled
	noteUsage                   // it states tokens
)

// NoteOf is the note of a span that has been through Recognise.
func NoteOf(s ptrace.Span) (n Note) {
	a := s.Attributes()
	layer, ok := a.Get(names.Layer)
	if !ok {
		return 0
	}
	n = noteLayer
	if layer.Str() == request.LayerEngine.String() {
		return n | noteEngine
	}
	status, _ := a.Get(names.Status)
	if st := status.Str(); st == request.StatusError.String() || st == request.StatusCancelled.String() {
		n |= noteFailed
	}
	if _, ok := a.Get(names.InputTokens); ok {
		n |= noteUsage
	}
	return n
}

// Lacks tells whether a trace lacks the span of the engine that must have answered it: a layer ended well, states no usage, and the
// requests of its service reach an engine otherwise, or the service is new. note and service are those of the spans that have come.
func (w *Whole) Lacks(now time.Time, spans int, note func(i int) Note, service func(i int) string) bool {
	lacks := false
	for i := range spans {
		n := note(i)
		if n&noteLayer == 0 {
			continue
		}
		if n&(noteEngine|noteFailed) != 0 {
			return false
		}
		name := service(i)
		lacks = lacks || w.seen.reaches(now, name) || n&noteUsage == 0 && w.seen.isNew(now, name)
	}
	return lacks
}

// countChunks notes on each parent how many chunk spans are folded into it.
func (t *view) countChunks() {
	for parent, starts := range t.chunks {
		v, ok := t.spans[parent]
		if !ok {
			continue
		}
		if v.item != nil {
			v.item.req.Chunks = int64(len(starts))
		} else {
			v.span.Attributes().PutInt(names.Chunks, int64(len(starts)))
		}
	}
}

// unmark removes a decision from a span.
func unmark(s ptrace.Span) {
	for _, k := range [...]string{names.SamplingDecision, names.SamplingReason, names.SamplingIncoming, names.SamplingPartial} {
		s.Attributes().Remove(k)
	}
}

// remove takes out the chunk spans whose parent is in the trace, and the spans of dropped traces.
func (w *Whole) remove(td ptrace.Traces, drop map[pcommon.TraceID]bool, traces map[pcommon.TraceID]*view) (chunks, dropped int) {
	if !w.o.FoldChunks && (w.o.Tag || len(drop) == 0) {
		return 0, 0
	}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			ss.Spans().RemoveIf(func(s ptrace.Span) bool {
				switch {
				case !w.o.Tag && drop[s.TraceID()]:
					dropped++
					return true
				case w.o.FoldChunks && isChunk(s) && traces[s.TraceID()].spans[s.ParentSpanID()] != nil:
					chunks++
					return true
				}
				return false
			})
		}
	}
	return chunks, dropped
}

// prune removes the scopes and resources that are left without spans.
func prune(td ptrace.Traces) {
	td.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
		rs.ScopeSpans().RemoveIf(func(ss ptrace.ScopeSpans) bool { return ss.Spans().Len() == 0 })
		return rs.ScopeSpans().Len() == 0
	})
}

// Add adds the counts of g.
func (f *WholeFacts) Add(g *WholeFacts) {
	f.Chunks += g.Chunks
	f.Dropped += g.Dropped
	f.StageSpans += g.StageSpans
	f.Skewed += g.Skewed
	f.Oversize += g.Oversize
	for _, m := range [...]struct {
		to   *map[string]int
		from map[string]int
	}{
		{&f.Kept, g.Kept}, {&f.DroppedTraces, g.DroppedTraces}, {&f.Unpriced, g.Unpriced}, {&f.Overflowed, g.Overflowed},
	} {
		for k, n := range m.from {
			if *m.to == nil {
				*m.to = map[string]int{}
			}
			(*m.to)[k] += n
		}
	}
}
