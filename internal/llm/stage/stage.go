// Package stage splits a request into the stages that partition it: where did the time go.
//
//	outermost layer  |----------------------------------------------------------------|
//	engine span               |------------------------------------------------|
//	                 ingress  admission  queue  prefill        decode            return
//	                 |--------|----------|------|---------|----------------|-----------|
//	                                                      ^ first token = engine start + TTFT
//
// An engine takes queue, prefill and decode from its core's monotonic clock, TTFT and end-to-end time from its front end's wall clock.
// Everything is therefore placed backwards and forwards from the first token, and clipped so that the stages touch, stand in order
// and sum to the outermost span to the nanosecond. The engine's own figures stay unclipped in the request; see docs/metrics.md.
package stage

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Name is a stage.
type Name uint8

// The stages in the order in which a request passes them.
const (
	Ingress Name = iota
	Admission
	Queue
	KVTransfer
	Prefill
	Decode
	Return
	count
)

var (
	names     = [count]string{"ingress", "admission", "queue", "kv_transfer", "prefill", "decode", "return"}
	spanNames = [count]string{"llm.ingress", "llm.admission", "llm.queue", "llm.kv_transfer", "llm.prefill", "llm.decode", "llm.return"}
)

func (n Name) String() string { return names[n] }

// SpanName is the name of the stage's child span.
func (n Name) SpanName() string { return spanNames[n] }

// Stage is one placed stage, in Unix nanoseconds.
type Stage struct {
	Name       Name
	Start, End pcommon.Timestamp
	// Outer says that the stage lies in the outermost layer's span and not in the request's own.
	Outer bool
}

// Placed is the list of stages of one request, N of them.
type Placed struct {
	Stages [count]Stage
	N      int
	// FirstToken and LastToken are the instants that the placement found; FirstToken is 0 when there was none.
	FirstToken, LastToken pcommon.Timestamp
}

func (p *Placed) add(n Name, start, end pcommon.Timestamp, outer bool) {
	p.Stages[p.N] = Stage{Name: n, Start: start, End: end, Outer: outer}
	p.N++
}

// All is the placed stages.
func (p *Placed) All() []Stage { return p.Stages[:p.N] }

// Place splits an engine's span into stages that partition it exactly: contiguous, in order, from Start to End. A stage that the source
// knows nothing of is left out and its time belongs to its neighbour; a stage of no length that the source does state is there. A span
// that ends before it starts has no stages.
func Place(r *request.Request) Placed {
	var p Placed
	if r.End < r.Start {
		return p
	}
	prefill, queue := nanos(r.Prefill.Or(0)), nanos(r.Queue.Or(0))
	var first pcommon.Timestamp
	switch {
	case r.TTFT.Known:
		first = after(r.Start, nanos(r.TTFT.Value), r.End)
	case r.Prefill.Known && !r.NoFirstToken:
		// The wall clock's figure was missing or rejected; the core's own are left.
		first = after(after(r.Start, queue, r.End), prefill, r.End)
	default:
		// No first token: the request ended on its way to the engine's core.
		p.add(Admission, r.Start, r.End, false)
		p.LastToken = r.End
		return p
	}
	prefillStart := before(first, prefill, r.Start)
	queueStart := prefillStart
	if r.Queue.Known {
		queueStart = before(prefillStart, queue, r.Start)
	}
	last := r.End
	switch {
	case r.Decode.Known:
		last = after(first, nanos(r.Decode.Value), r.End)
	case r.E2E.Known:
		last = max(first, after(r.Start, nanos(r.E2E.Value), r.End))
	}
	p.FirstToken, p.LastToken = first, last

	switch {
	case r.Admission.Known || !r.Queue.Known:
		p.add(Admission, r.Start, queueStart, false)
	default:
		queueStart = r.Start // V0: admission is inside its queue
	}
	if r.Queue.Known {
		p.add(Queue, queueStart, prefillStart, false)
	}
	p.add(Prefill, prefillStart, first, false)
	p.add(Decode, first, last, false)
	p.add(Return, last, r.End, false)
	return p
}

// Enclosure is the outermost layer around a request, or around the sequences that make one request.
type Enclosure struct {
	Start, End pcommon.Timestamp
}

// Surround are the stages between an outermost layer and the engine spans in it.
type Surround struct {
	// Ingress and Return are in seconds. Return is unknown when the layer ended before its engine: a layer whose span ends at the
	// headers of a stream says nothing about the way back.
	Ingress, Return request.Seconds
	// Skew is by how much the layer had to be moved because it started after the engine, or ended before it although it is the longer one.
	Skew request.Seconds
	// IngressStage and ReturnStage are placed; valid when the figure is known.
	IngressStage, ReturnStage Stage
}

// Enclose places ingress and return: from the layer's start to the first engine's start, and from the last token to the layer's end.
// engineStart and engineEnd are the hull of the engine spans, lastToken the last token of any.
func Enclose(e Enclosure, engineStart, engineEnd, lastToken pcommon.Timestamp) Surround {
	var s Surround
	switch {
	case e.Start > engineStart:
		// The layer's clock is ahead by no less. All of it is moved, so that its stages still sum to its length.
		skew := e.Start - engineStart
		s.Skew = request.Some(seconds(skew))
		e.Start, e.End = engineStart, e.End-min(skew, e.End)
	case e.Start <= e.End && e.End < engineEnd && engineEnd >= engineStart && e.End-e.Start >= engineEnd-engineStart:
		// It lasted long enough to enclose the engine, unlike one that ends at the headers of a stream, so its clock is behind by no less.
		skew := engineEnd - e.End
		s.Skew = request.Some(seconds(skew))
		e.Start, e.End = e.Start+skew, engineEnd
	}
	s.Ingress = request.Some(seconds(engineStart - e.Start))
	s.IngressStage = Stage{Name: Ingress, Start: e.Start, End: engineStart, Outer: true}
	if e.End >= engineEnd {
		s.Return = request.Some(seconds(e.End - lastToken))
		s.ReturnStage = Stage{Name: Return, Start: lastToken, End: e.End, Outer: true}
	}
	return s
}

// WithSurround replaces the engine's own return by the one of the enclosing layer and puts ingress before.
func (p Placed) WithSurround(s Surround) Placed {
	var out Placed
	out.FirstToken, out.LastToken = p.FirstToken, p.LastToken
	if s.Ingress.Known {
		i := s.IngressStage
		out.add(i.Name, i.Start, i.End, true)
	}
	for _, st := range p.All() {
		if st.Name == Return && s.Return.Known {
			continue
		}
		out.add(st.Name, st.Start, st.End, st.Outer)
	}
	if s.Return.Known {
		out.add(Return, s.ReturnStage.Start, s.ReturnStage.End, true)
	}
	return out
}

// SpanID is the id of a stage's child span: a hash of the parent's id and the stage, so that a retry makes the same one. It is never zero.
func SpanID(parent pcommon.SpanID, n Name) pcommon.SpanID {
	// The finaliser of SplitMix64 (public domain, S. Vigna): each bit of the input moves half of the bits of the output.
	var x uint64
	for _, b := range parent {
		x = x<<8 | uint64(b)
	}
	x += (uint64(n) + 1) * 0x9e3779b97f4a7c15
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	if x == 0 {
		x = 1
	}
	var id pcommon.SpanID
	for i := 7; i >= 0; i-- {
		id[i] = byte(x)
		x >>= 8
	}
	return id
}

// nanos converts seconds to nanoseconds; what does not fit is cut at the length of a span that could never be.
func nanos(s float64) pcommon.Timestamp {
	const most = 1e10 // seconds, three centuries
	if !(s > 0) {
		return 0
	}
	if s > most {
		s = most
	}
	return pcommon.Timestamp(s*1e9 + 0.5)
}

func seconds(d pcommon.Timestamp) float64 { return float64(d) / 1e9 }

// before is t − d, at the earliest floor; t is not before floor.
func before(t, d, floor pcommon.Timestamp) pcommon.Timestamp {
	if d > t-floor {
		return floor
	}
	return t - d
}

// after is t + d, at the latest ceiling; t is not after ceiling. Neither sum can overflow.
func after(t, d, ceiling pcommon.Timestamp) pcommon.Timestamp {
	if d > ceiling-t {
		return ceiling
	}
	return t + d
}
