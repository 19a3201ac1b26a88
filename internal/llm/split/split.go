// Package split turns the spans of one batch into requests: it recognises them, finds the layers around each engine's span as far as
// they are in the batch, writes what it found on the spans, and adds the stages as child spans. It holds nothing between batches.
package split

import (
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/dialect"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/stage"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/warmup"
)

// ScopeName is the instrumentation scope of the stage spans.
const ScopeName = "github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor"

// Options choose what is written.
type Options struct {
	// StageSpans adds a child span for each stage of an engine's span.
	StageSpans bool
	// DropSource removes the source's spellings of what is written under current names.
	DropSource bool
	// Business is what requests are assessed by; Now is the time of the call for what it remembers.
	Business
	Now time.Time
}

// Facts is what happened to one batch.
type Facts struct {
	// Requests counts the recognised spans by layer.
	Requests [request.LayerEngine + 1]int
	// StageSpans is the number of spans added.
	StageSpans int
	// Rejected counts the figures of sources that could not be true, by name.
	Rejected map[string]int
	// Skewed is the number of requests whose layers had to be moved.
	Skewed int
	// Unpriced counts the requests without a price by model, Overflowed the labels that the cap of their dimension took, Issues what is
	// wrong with answers by its place in request.Issues; Oversize and Warmup are numbers of requests.
	Unpriced, Overflowed map[string]int
	Issues               [8]int
	Oversize, Warmup     int
}

// item is one recognised span.
type item struct {
	span ptrace.Span
	at   int // index of its ResourceSpans
	req  request.Request
	// placed are the stages of an engine span, unplaced where there are none; surround what lies in a layer around one.
	placed   *stage.Placed
	surround []stage.Surround
}

// unplaced is shared by all items whose stages are not placed, which are most: placed, they are a quarter of an item.
var unplaced stage.Placed

func (it *item) place() {
	p := stage.Place(&it.req)
	it.placed = &p
}

// items are the memory of some recognised spans. An item is most of a kilobyte, as much as a span without text is on the wire: made anew
// for every span, and again when its trace is whole, they were a tenth of all that is allocated.
type items [16]item

var itemPool = sync.Pool{New: func() any { return new(items) }}

// batch is the working state of one call.
type batch struct {
	items []*item
	// from is where items are, used how many of the last of them are in use.
	from []*items
	used int
	// outers says whether the batch holds a layer that could enclose an engine's span.
	outers  bool
	engines int
	// whole says that every trace in the batch is complete, and that its spans have been recognised before.
	whole bool
	// parents maps every span to its parent, where layers made it necessary.
	parents map[id]pcommon.SpanID
	// starts are the starts of engines.
	starts []start
	// lifecycle are the stage spans that a source made itself, by parent.
	lifecycle map[id][]ptrace.Span
}

type id struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// add takes in a recognised span.
func (b *batch) add(it item) {
	if len(b.from) == 0 || b.used == len(items{}) {
		b.from, b.used = append(b.from, itemPool.Get().(*items)), 0
	}
	at := &b.from[len(b.from)-1][b.used]
	b.used++
	*at = it
	b.items = append(b.items, at)
}

// done gives the memory of the items back, without what it held.
func (b *batch) done() {
	for _, f := range b.from {
		clear(f[:])
		itemPool.Put(f)
	}
}

// Traces works on td in place.
func Traces(td ptrace.Traces, o Options) Facts {
	var f Facts
	b := read(td, false)
	defer b.done()
	b.arrive(&o, &f)
	var calls []*call
	if b.outers {
		b.parents = parentsOf(td)
	}
	if b.engines > 0 {
		for _, it := range b.items {
			if it.req.Layer == request.LayerEngine && !it.req.Processed {
				b.useLifecycle(it)
				it.place()
			}
		}
		if b.outers {
			calls = b.enclose(&f)
		} else if o.any() {
			calls, _ = b.calls(nil, nil)
		}
	}
	b.assess(td, &o, calls, &f, false)
	for _, it := range b.items {
		if it.req.Tentative {
			continue // it turned out to enclose no call
		}
		f.Requests[it.req.Layer]++
		if it.req.Processed {
			if o.any() {
				dialect.WriteBusiness(&it.req, it.span.Attributes())
			}
			continue
		}
		f.reject(&it.req)
		rewrite(it, o)
	}
	if o.StageSpans && b.engines > 0 {
		f.StageSpans = b.addStages(td, func(pcommon.TraceID) bool { return true })
	}
	return f
}

// Recognise reads the spans of a batch and writes what each one says by itself, for a trace that is to be assembled: layers, stages and
// the rest follow when it is whole.
func Recognise(td ptrace.Traces, o Options) Facts {
	var f Facts
	b := read(td, false)
	defer b.done()
	b.arrive(&o, &f)
	for _, it := range b.items {
		if it.req.Tentative {
			continue
		}
		f.Requests[it.req.Layer]++
		if it.req.Processed {
			continue
		}
		f.reject(&it.req)
		rewrite(it, o)
	}
	if o.Dimensions != nil && o.Dimensions.SpanSources {
		keep(td, o.Dimensions)
	}
	return f
}

func (f *Facts) reject(r *request.Request) {
	for _, n := range r.Invalid {
		if f.Rejected == nil {
			f.Rejected = map[string]int{}
		}
		f.Rejected[n]++
	}
}

func rewrite(it *item, o Options) {
	dialect.Write(&it.req, it.span)
	if o.DropSource {
		dialect.DropSource(&it.req, it.span.Attributes())
	}
}

// read recognises the spans of a batch.
func read(td ptrace.Traces, whole bool) *batch {
	// Most spans of LLM traffic are recognised.
	b := &batch{whole: whole, items: make([]*item, 0, min(td.SpanCount(), 128))}
	for i := range td.ResourceSpans().Len() {
		rs := td.ResourceSpans().At(i)
		res := dialect.ReadResource(rs.Resource())
		for j := range rs.ScopeSpans().Len() {
			spans := rs.ScopeSpans().At(j).Spans()
			for k := range spans.Len() {
				span := spans.At(k)
				r, ok := dialect.Read(span, res)
				if r.Decision != "" && !whole {
					// A decision is made here or behind here; one that comes in was made by another, on other grounds.
					unmark(span)
				}
				if !ok {
					b.noteLifecycle(span)
					if warmup.IsStart(span) {
						b.starts = append(b.starts, start{res, span.StartTimestamp()})
					}
					continue
				}
				if r.Layer == request.LayerEngine {
					b.engines++
				} else {
					b.outers = true
				}
				b.add(item{span: span, at: i, req: r, placed: &unplaced})
			}
		}
	}
	return b
}

// noteLifecycle remembers a span that an engine made for one of its own stages. vLLM proposes vllm_queue, vllm_prefill, vllm_decode as
// children of llm_request (vllm-project/vllm pull request 44402); where they are, ours would be there twice.
func (b *batch) noteLifecycle(span ptrace.Span) {
	switch span.Name() {
	case "vllm_queue", "vllm_prefill", "vllm_decode", "vllm_async_kv_transfer":
		if b.lifecycle == nil {
			b.lifecycle = map[id][]ptrace.Span{}
		}
		k := id{span.TraceID(), span.ParentSpanID()}
		b.lifecycle[k] = append(b.lifecycle[k], span)
	}
}

// useLifecycle takes from a source's own stage spans what the request span does not say.
func (b *batch) useLifecycle(it *item) {
	for _, s := range b.lifecycle[id{it.req.TraceID, it.req.SpanID}] {
		it.req.OwnStages = true
		if s.EndTimestamp() < s.StartTimestamp() {
			continue
		}
		d := request.Some(float64(s.EndTimestamp()-s.StartTimestamp()) / 1e9)
		var to *request.Seconds
		switch s.Name() {
		case "vllm_queue":
			to = &it.req.Queue
		case "vllm_prefill":
			to = &it.req.Prefill
		case "vllm_decode":
			to = &it.req.Decode
		default:
			to = &it.req.KVTransfer
		}
		if !to.Known {
			*to = d
		}
	}
	if it.req.OwnStages {
		dialect.Complete(&it.req)
	}
}

// addStages appends the stage spans of the engine spans, each below the span that it partitions, in a scope of its own.
func (b *batch) addStages(td ptrace.Traces, wanted func(pcommon.TraceID) bool) int {
	n := 0
	there := b.stagesThere(td)
	scopes := map[int]ptrace.SpanSlice{}
	for _, it := range b.items {
		if it.req.Layer != request.LayerEngine || it.req.OwnStages || there[id{it.req.TraceID, it.req.SpanID}] || !wanted(it.req.TraceID) {
			continue
		}
		for _, s := range it.placed.All() {
			if s.Outer {
				continue // added once for the call, by enclose
			}
			appendStage(scope(td, scopes, it.at), it.span, s)
			n++
		}
	}
	for _, it := range b.items {
		if there[id{it.req.TraceID, it.req.SpanID}] || !wanted(it.req.TraceID) {
			continue
		}
		for _, s := range it.outerStages() {
			appendStage(scope(td, scopes, it.at), it.span, s)
			n++
		}
	}
	return n
}

// stagesThere are the spans that have stage spans of ours already: the batch, or a part of it, has been through llmspan before.
func (b *batch) stagesThere(td ptrace.Traces) map[id]bool {
	out := map[id]bool{}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			if ss.Scope().Name() != ScopeName {
				continue
			}
			for _, s := range ss.Spans().All() {
				out[id{s.TraceID(), s.ParentSpanID()}] = true
			}
		}
	}
	return out
}

func scope(td ptrace.Traces, scopes map[int]ptrace.SpanSlice, at int) ptrace.SpanSlice {
	if s, ok := scopes[at]; ok {
		return s
	}
	ss := td.ResourceSpans().At(at).ScopeSpans().AppendEmpty()
	ss.Scope().SetName(ScopeName)
	scopes[at] = ss.Spans()
	return ss.Spans()
}

func appendStage(to ptrace.SpanSlice, parent ptrace.Span, s stage.Stage) {
	span := to.AppendEmpty()
	span.SetTraceID(parent.TraceID())
	span.SetParentSpanID(parent.SpanID())
	span.SetSpanID(stage.SpanID(parent.SpanID(), s.Name))
	parent.TraceState().CopyTo(span.TraceState())
	span.SetFlags(parent.Flags())
	span.SetName(s.Name.SpanName())
	span.SetKind(ptrace.SpanKindInternal)
	span.SetStartTimestamp(s.Start)
	span.SetEndTimestamp(s.End)
	span.Attributes().EnsureCapacity(3)
	span.Attributes().PutStr(names.Stage, s.Name.String())
	for _, k := range [...]string{names.SamplingDecision, names.SamplingReason} {
		if v, ok := parent.Attributes().Get(k); ok {
			v.CopyTo(span.Attributes().PutEmpty(k))
		}
	}
}
