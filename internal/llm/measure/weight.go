package measure

import (
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/sampling"
)

// Weight is the number of requests that a span stood for when it came in: the adjusted count of the ot=th member of its tracestate, 1
// without one. Where llmspan has decided on the trace, and so has written a threshold of its own, the incoming one is an attribute.
func Weight(r *request.Request) float64 {
	if r.Decision != "" {
		return r.IncomingWeight.Or(1)
	}
	if s := sampling.ReadState(r.TraceID, r.TraceState); s.Known {
		return s.Incoming.AdjustedCount()
	}
	return 1
}
