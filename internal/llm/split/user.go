package split

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// isChunk tells the span of one chunk of a streamed answer: an ASGI server makes one for each body event.
func isChunk(s ptrace.Span) bool {
	if s.Kind() != ptrace.SpanKindInternal {
		return false
	}
	v, ok := s.Attributes().Get("asgi.event.type")
	return ok && v.Type() == pcommon.ValueTypeStr && v.Str() == "http.response.body"
}

// streamedChunks is the number of body events from which an answer was streamed: a whole answer has one, or two with an empty last one.
const streamedChunks = 3

// firstTokenEvent is the span event of Envoy's AI gateway at the first token.
const firstTokenEvent = "First Token Stream Event"

// user finds what the user saw of a call: the length of the outermost layer, the first token there and the longest stall.
func (w *Whole) user(c *call, t *view) {
	if c.outer == nil {
		return
	}
	outer := &c.outer.req
	var e2e, ttft, gap request.Seconds
	estimated := false
	switch start, end, _ := c.hull(); {
	case outer.End <= outer.Start:
	case outer.End-outer.Start >= end-start:
		e2e = request.Some(float64(outer.End-outer.Start) / 1e9) // whatever its clock says beside the engine's
	case outer.End >= end:
		e2e = request.Some(float64(outer.End-min(outer.Start, start)) / 1e9)
	}
	if at, ok := w.firstToken(c, t); ok && at >= outer.Start {
		ttft = request.Some(float64(at-outer.Start) / 1e9)
	} else if r := &c.sequences[0].req; r.TTFT.Known && r.Ingress.Known {
		ttft, estimated = request.Some(r.Ingress.Value+r.TTFT.Value), true
	}
	for _, l := range slices.Backward(c.layers) {
		if starts := t.chunks[l.req.SpanID]; len(starts) >= streamedChunks {
			gap = longestGap(starts)
			break
		}
	}
	for _, it := range c.sequences {
		it.req.UserE2E, it.req.UserTTFT, it.req.UserTTFTEstimated, it.req.UserGapMax = e2e, ttft, estimated, gap
	}
}

// firstToken is the instant of the first token at a layer outside the engine, by the most trusted signal there is: Envoy's event, the
// first chunk that an ASGI server sent, the first chunk that a client or gateway measured.
func (w *Whole) firstToken(c *call, t *view) (pcommon.Timestamp, bool) {
	for _, l := range slices.Backward(c.layers) {
		for _, e := range l.span.Events().All() {
			if e.Name() == firstTokenEvent {
				return e.Timestamp(), true
			}
		}
	}
	for _, l := range slices.Backward(c.layers) {
		if starts := t.chunks[l.req.SpanID]; len(starts) >= streamedChunks {
			return slices.Min(starts), true
		}
	}
	for _, l := range slices.Backward(c.layers) {
		if l.req.UserTTFT.Known {
			return l.req.Start + pcommon.Timestamp(l.req.UserTTFT.Value*1e9), true
		}
	}
	return 0, false
}

// longestGap is the longest time between two neighbours, in seconds.
func longestGap(starts []pcommon.Timestamp) request.Seconds {
	slices.Sort(starts)
	var most pcommon.Timestamp
	for i := 1; i < len(starts); i++ {
		most = max(most, starts[i]-starts[i-1])
	}
	return request.Some(float64(most) / 1e9)
}
