package measure

import (
	"strings"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/sampling"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Weight is the number of requests that a span stands for: the adjusted count of the ot=th member of its tracestate, 1 without one.
//
// A threshold is believed only when it is consistent: the trace's randomness (rv, else the trace id's last 56 bits) must reach it, or
// the sampler that wrote it would not have kept the trace. Source: OpenTelemetry tracestate handling, probability sampling.
func Weight(r *request.Request) float64 {
	if !strings.Contains(r.TraceState, "ot=") {
		return 1
	}
	w3c, err := sampling.NewW3CTraceState(r.TraceState)
	if err != nil {
		return 1
	}
	ot := w3c.OTelValue()
	threshold, ok := ot.TValueThreshold()
	if !ok {
		return 1
	}
	random, ok := ot.RValueRandomness()
	if !ok {
		random = sampling.TraceIDToRandomness(r.TraceID)
	}
	if !threshold.ShouldSample(random) {
		return 1
	}
	return threshold.AdjustedCount()
}
