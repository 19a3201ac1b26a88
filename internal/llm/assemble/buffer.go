package assemble

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Config bounds a Buffer.
type Config struct {
	// DecisionDelay is the wait after the root's span, IdleTimeout the wait for a trace to which nothing comes, TraceTimeout the most
	// that any trace waits.
	DecisionDelay, IdleTimeout, TraceTimeout time.Duration
	// AnswerDelay replaces DecisionDelay for a trace that lacks what should still come: see Due.
	AnswerDelay time.Duration
	// MaxBytes bounds what is held, as it would be on the wire; beyond it the oldest traces are released.
	MaxBytes int
	// MaxTraceBytes and MaxTraceSpans bound one trace, which is released beyond them, so that an endless one does not starve the rest.
	MaxTraceBytes, MaxTraceSpans int
	// Keys are the attribute keys that most spans have; nil are none.
	Keys *Keys
}

// Reason says why a trace was released.
type Reason uint8

// The reasons.
const (
	ReasonRoot     Reason = iota // its root came, and the delay is over
	ReasonIdle                   // nothing came
	ReasonAge                    // it became too old
	ReasonBudget                 // it had to make room
	ReasonSize                   // it became too large
	ReasonShutdown               // the process ends
	NumReasons
)

var reasonNames = [NumReasons]string{"root", "idle", "age", "budget", "size", "shutdown"}

func (r Reason) String() string { return reasonNames[r] }

// Complete tells whether a trace released for the reason can be taken for whole.
func (r Reason) Complete() bool { return r == ReasonRoot || r == ReasonIdle }

// Origin is the resource and scope that spans came with; shared by all spans of one batch that have them in common.
type Origin struct {
	Resource       pcommon.Resource
	ResourceSchema string
	Scope          pcommon.InstrumentationScope
	ScopeSchema    string
	// resource is the same for all scopes of a resource, so that they meet again.
	resource *pcommon.Resource
}

// Trace is the spans of one trace.
type Trace struct {
	ID     pcommon.TraceID
	Reason Reason

	held                   []held
	bytes                  int
	created, touched, root time.Time
	// places are where the trace stands in the buffer's queues; waits is the one of rooted and lacking that it is in, if any.
	places [numQueues]place
	waits  *queue
	// known are the spans of a trace of more than scanned.
	known map[identity]struct{}
}

// held is one of a trace's spans.
type held struct {
	origin *Origin
	packed string
	span   ptrace.Span // as it came, when it could not be packed
	id     identity
	note   Note
}

// Note is what the holder wants to know of a span while it is packed; the package does not read it.
type Note uint8

// Len is the number of spans.
func (t *Trace) Len() int { return len(t.held) }

// Note is that of span i, which came with Origin(i).
func (t *Trace) Note(i int) Note { return t.held[i].note }

// Origin is what span i came with.
func (t *Trace) Origin(i int) *Origin { return t.held[i].origin }

// Append moves a span into a trace that no Buffer holds.
func (t *Trace) Append(span ptrace.Span, o *Origin) {
	h := held{origin: o, span: ptrace.NewSpan()}
	span.MoveTo(h.span)
	t.held = append(t.held, h)
}

// identity tells spans of a trace apart. The id alone does not: Zipkin's client and server share one.
type identity struct {
	id    pcommon.SpanID
	kind  ptrace.SpanKind
	start pcommon.Timestamp
}

func identify(s ptrace.Span) identity { return identity{s.SpanID(), s.Kind(), s.StartTimestamp()} }

// scanned is up to how many spans a trace's are compared one by one; a map of so few costs more than it saves.
const scanned = 32

// has tells whether a span is in the trace already.
func (t *Trace) has(want identity) bool {
	n := len(t.held)
	if n <= scanned {
		for i := range t.held {
			if t.held[i].id == want {
				return true
			}
		}
		return false
	}
	if t.known == nil {
		t.known = make(map[identity]struct{}, 2*n)
		for i := range t.held {
			t.known[t.held[i].id] = struct{}{}
		}
	}
	_, ok := t.known[want]
	return ok
}

// Buffer is one shard of held traces.
type Buffer struct {
	cfg     Config
	traces  map[pcommon.TraceID]*Trace
	age     queue // oldest first
	touched queue // longest idle first
	rooted  queue // first root first
	lacking queue // those of them that were found to lack something
	bytes   int
	spans   int
	twice   int
	sizer   ptrace.ProtoMarshaler
	packing []byte // reused
}

// New returns an empty buffer.
func New(cfg Config) *Buffer {
	if cfg.Keys == nil {
		cfg.Keys = NewKeys()
	}
	return &Buffer{
		cfg: cfg, traces: map[pcommon.TraceID]*Trace{}, age: queue{by: byAge}, touched: queue{by: byTouch}, rooted: queue{by: byRoot}, lacking: queue{by: byRoot},
	}
}

// Bytes, Spans and Traces are what is held.
func (b *Buffer) Bytes() int  { return b.bytes }
func (b *Buffer) Spans() int  { return b.spans }
func (b *Buffer) Traces() int { return len(b.traces) }

// Duplicates is how many spans were left out because their trace had them already.
func (b *Buffer) Duplicates() int { return b.twice }

// Add moves a span into its trace, unless the trace has it: a sender that got no answer sends again. What has to be released for it is appended to out: its own trace when that has become too large, and
// the oldest traces when the budget is exceeded.
func (b *Buffer) Add(now time.Time, span ptrace.Span, o *Origin, note Note, out []*Trace) []*Trace {
	id := span.TraceID()
	t, ok := b.traces[id]
	if !ok {
		t = &Trace{ID: id, created: now}
		b.traces[id] = t
		b.age.pushBack(t)
		b.touched.pushBack(t)
	} else if t.touched != now {
		b.touched.remove(t)
		b.touched.pushBack(t)
	}
	t.touched = now
	h := held{origin: o, id: identify(span), note: note}
	if t.has(h.id) {
		b.twice++
		return out
	}
	if t.known != nil {
		t.known[h.id] = struct{}{}
	}
	if span.ParentSpanID().IsEmpty() && t.waits == nil {
		t.root = now
		t.waits = &b.rooted
		b.rooted.pushBack(t)
	} else if t.waits == &b.lacking {
		// What it lacked may have come: look again.
		b.lacking.remove(t)
		t.waits = &b.rooted
		b.rooted.pushFront(t)
	}
	size := b.sizer.SpanSize(span)
	t.bytes += size
	b.bytes += size
	b.spans++
	packed, ok := b.cfg.Keys.pack(b.packing[:0], span)
	if ok {
		h.packed = string(packed)
	} else {
		h.span = ptrace.NewSpan()
		span.MoveTo(h.span)
	}
	if b.packing = packed; cap(packed) > maxPacking {
		b.packing = nil // of a prompt that is kept
	}
	t.held = append(t.held, h)
	if t.bytes > b.cfg.MaxTraceBytes || t.Len() > b.cfg.MaxTraceSpans {
		out = b.release(t, ReasonSize, out)
	}
	for b.bytes > b.cfg.MaxBytes && b.age.first != nil {
		out = b.release(b.age.first, ReasonBudget, out)
	}
	return out
}

// Due appends the traces whose wait is over at now. lacks is asked about a trace whose root has come and whose delay is over: one that
// lacks something, such as the span of the engine that must have answered it, waits for AnswerDelay instead. A batch of an engine's
// exporter may leave seconds after its gateway's. Of more than limit traces the rest is left to the next call: what is released takes several
// times the memory of what is held.
func (b *Buffer) Due(now time.Time, limit int, out []*Trace, lacks func(*Trace) bool) []*Trace {
	for t := b.rooted.first; len(out) < limit && t != nil && now.Sub(t.root) >= b.cfg.DecisionDelay; t = b.rooted.first {
		if now.Sub(t.root) < b.cfg.AnswerDelay && lacks(t) {
			b.rooted.remove(t)
			t.waits = &b.lacking
			b.lacking.pushBack(t)
			continue
		}
		out = b.release(t, ReasonRoot, out)
	}
	for t := b.lacking.first; len(out) < limit && t != nil && now.Sub(t.root) >= b.cfg.AnswerDelay; t = b.lacking.first {
		out = b.release(t, ReasonRoot, out)
	}
	for t := b.touched.first; len(out) < limit && t != nil && now.Sub(t.touched) >= b.cfg.IdleTimeout; t = b.touched.first {
		out = b.release(t, ReasonIdle, out)
	}
	for t := b.age.first; len(out) < limit && t != nil && now.Sub(t.created) >= b.cfg.TraceTimeout; t = b.age.first {
		out = b.release(t, ReasonAge, out)
	}
	return out
}

// Drain appends what is held, up to limit traces.
func (b *Buffer) Drain(limit int, out []*Trace) []*Trace {
	for len(out) < limit && b.age.first != nil {
		out = b.release(b.age.first, ReasonShutdown, out)
	}
	return out
}

func (b *Buffer) release(t *Trace, r Reason, out []*Trace) []*Trace {
	t.Reason = r
	delete(b.traces, t.ID)
	b.age.remove(t)
	b.touched.remove(t)
	if t.waits != nil {
		t.waits.remove(t)
	}
	b.bytes -= t.bytes
	b.spans -= t.Len()
	return append(out, t)
}

// EachSpan calls f for each span of a batch with its origin. Resources and scopes are moved out of the batch, which is used up.
func EachSpan(td ptrace.Traces, f func(span ptrace.Span, o *Origin)) {
	for _, rs := range td.ResourceSpans().All() {
		resource := pcommon.NewResource()
		rs.Resource().MoveTo(resource)
		for _, ss := range rs.ScopeSpans().All() {
			o := &Origin{Resource: resource, ResourceSchema: rs.SchemaUrl(), Scope: pcommon.NewInstrumentationScope(), ScopeSchema: ss.SchemaUrl(), resource: &resource}
			ss.Scope().MoveTo(o.Scope)
			for _, span := range ss.Spans().All() {
				f(span, o)
			}
		}
	}
}

// maxPacking is how large a buffer for packing is kept, in bytes.
const maxPacking = 64 << 10

// roomForDecision is how many attributes a span gets when its trace is decided on: the decision's, and what a whole trace tells.
const roomForDecision = 4

// Batch puts the spans of traces back together, each resource and scope once, in one batch. The traces are used up. keys are those of the
// buffers that held them.
func Batch(keys *Keys, traces []*Trace) ptrace.Traces {
	td := ptrace.NewTraces()
	resources := map[*pcommon.Resource]ptrace.ResourceSpans{}
	scopes := map[*Origin]ptrace.SpanSlice{}
	for _, t := range traces {
		for i := range t.held {
			h := &t.held[i]
			o := h.origin
			to, ok := scopes[o]
			if !ok {
				rs, ok := resources[o.resource]
				if !ok {
					rs = td.ResourceSpans().AppendEmpty()
					o.Resource.CopyTo(rs.Resource())
					rs.SetSchemaUrl(o.ResourceSchema)
					resources[o.resource] = rs
				}
				ss := rs.ScopeSpans().AppendEmpty()
				o.Scope.CopyTo(ss.Scope())
				ss.SetSchemaUrl(o.ScopeSchema)
				to = ss.Spans()
				scopes[o] = to
			}
			span := to.AppendEmpty()
			if h.packed == "" {
				h.span.MoveTo(span)
				continue
			}
			keys.unpack(h.packed, span, roomForDecision)
			span.SetTraceID(t.ID)
		}
	}
	return td
}
