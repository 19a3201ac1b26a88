package split

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// outcome settles what only a whole trace can tell: a request that no engine's span answers. A layer that ended well without one, while
// the same service's others have one, was cancelled; vLLM makes no span for what it aborts, refuses or dies on.
func (w *Whole) outcome(now time.Time, t *view, cut bool) {
	for _, it := range t.items {
		r := &it.req
		if r.Tentative || r.Layer == request.LayerEngine || t.answered(it) {
			continue
		}
		if r.LayerOnly {
			if t.requestAround(it) || r.Operation == "" {
				continue // a layer of a request that another span stands for
			}
			if cut && r.HTTPStatus < 400 && r.Status != request.StatusError {
				continue // what stands for the request may be elsewhere
			}
			r.LayerOnly = false
		}
		switch {
		case r.HTTPStatus >= 400 && r.HTTPStatus < 499 && w.o.ClientErrors && r.Status != request.StatusCancelled:
			r.Status, r.ErrorType = request.StatusError, "_OTHER"
		case r.HTTPStatus >= 400 || r.Status == request.StatusError || r.Status == request.StatusCancelled:
		case r.InputTokens.Known || r.OutputTokens.Known || r.FinishReason != "":
			// It says itself how it ended.
		case !cut && w.seen.reaches(now, r.Source.Service):
			r.Status = request.StatusCancelled
		}
	}
}

// answered tells whether an engine's span stands below a layer.
func (t *view) answered(it *item) bool {
	for _, e := range t.items {
		if e.req.Layer == request.LayerEngine && t.below(e, it) {
			return true
		}
	}
	return false
}

// requestAround tells whether a span that is a request by itself stands above or below a plain HTTP layer, or another HTTP layer above
// it: the outermost one stands for the request.
func (t *view) requestAround(it *item) bool {
	for _, o := range t.items {
		switch {
		case o == it || o.req.Tentative:
		case t.below(it, o):
			return true
		case !o.req.LayerOnly && t.below(o, it):
			return true
		}
	}
	return false
}

// below tells whether a stands below b in the trace.
func (t *view) below(a, b *item) bool {
	at := a.req.ParentID
	for range maxDepth {
		if at == b.req.SpanID {
			return true
		}
		v, ok := t.spans[at]
		if !ok || v.parent.IsEmpty() {
			return false
		}
		at = v.parent
	}
	return false
}

// lone gives a request without an engine's span what the user saw of it: the outermost of its layers is the request span's own, or
// stands above it.
func (w *Whole) lone(t *view) {
	for _, it := range t.items {
		r := &it.req
		if r.LayerOnly || r.Tentative || r.Layer == request.LayerEngine || r.UserE2E.Known || t.answered(it) || t.hasRequestBelow(it) {
			continue
		}
		outer := it
		for _, o := range t.items {
			if !o.req.Tentative && t.below(outer, o) {
				outer = o
			}
		}
		if outer.req.End > outer.req.Start {
			r.UserE2E = request.Some(outer.req.Duration())
		}
		if r.UserTTFT.Known && r.Start > outer.req.Start {
			r.UserTTFT = request.Some(r.UserTTFT.Value + float64(r.Start-outer.req.Start)/1e9)
		}
	}
}

// hasRequestBelow tells whether another layer of the same request, closer to the engine, is a request span.
func (t *view) hasRequestBelow(it *item) bool {
	for _, o := range t.items {
		if o != it && !o.req.LayerOnly && !o.req.Tentative && t.below(o, it) {
			return true
		}
	}
	return false
}

// disaggregated joins the two engine spans of a request whose prefill and decode ran on different engines: the prefill side was asked
// for one token, and the decode side waited for its cache, which its engine counts as queue. For the user
//
//	queue = prefill's queue · prefill = prefill's prefill · kv_transfer = decode's queue · decode = decode's prefill + decode
func (w *Whole) disaggregated(b *batch) {
	type pair struct{ prefill, decode *item }
	pairs := map[callKey]*pair{}
	for _, it := range b.items {
		r := &it.req
		if r.Layer != request.LayerEngine || r.RequestID == "" || r.Dialect != "vllm" {
			continue
		}
		k := callKey{at: id{trace: r.TraceID}, base: r.RequestID}
		p, ok := pairs[k]
		if !ok {
			p = &pair{}
			pairs[k] = p
		}
		if r.MaxTokens == 1 && r.OutputTokens.Or(0) <= 1 {
			p.prefill = it
		} else {
			p.decode = it
		}
	}
	for _, p := range pairs {
		if p.prefill == nil || p.decode == nil || p.decode.req.Start < p.prefill.req.Start {
			continue
		}
		pre, dec := &p.prefill.req, &p.decode.req
		dec.KVTransfer = dec.Queue
		if dec.Prefill.Known && dec.Decode.Known {
			dec.Decode = request.Some(dec.Prefill.Value + dec.Decode.Value)
		}
		shift := float64(dec.Start-pre.Start) / 1e9
		if dec.TTFT.Known {
			dec.TTFT = request.Some(dec.TTFT.Value + shift)
		}
		if dec.E2E.Known {
			dec.E2E = request.Some(dec.E2E.Value + shift)
		}
		dec.Queue, dec.Prefill, dec.Admission = pre.Queue, pre.Prefill, pre.Admission
	}
}
