package sampling

import (
	"strings"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/sampling"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Threshold is a rejection threshold on 56 bits: a trace is kept when its randomness reaches it.
type Threshold = sampling.Threshold

// Always is the threshold that keeps every trace.
var Always = sampling.AlwaysSampleThreshold

// Ratio is the threshold that keeps a share of traces from 0 to 1, at full precision: 0.05 is f3333333333333, a weight of exactly 20.
// keep is false for a share of 0, which has no threshold: nothing is kept.
func Ratio(share float64) (t Threshold, keep bool) {
	switch {
	case share <= 0:
		return Threshold{}, false
	case share >= 1:
		return Always, true
	}
	t, err := sampling.ProbabilityToThreshold(share)
	return t, err == nil
}

// State is what a trace brings along: its randomness and, when an SDK has sampled, the threshold that it passed.
type State struct {
	Randomness sampling.Randomness
	Incoming   Threshold
	// Known says that there is an incoming threshold that the randomness agrees with. One that it does not agree with was not applied.
	Known bool
}

// ReadState reads the tracestate of any span of a trace.
func ReadState(id pcommon.TraceID, traceState string) State {
	s := State{Randomness: sampling.TraceIDToRandomness(id), Incoming: Always}
	if !strings.Contains(traceState, "ot=") {
		return s
	}
	w3c, err := sampling.NewW3CTraceState(traceState)
	if err != nil {
		return s
	}
	if rv, ok := w3c.OTelValue().RValueRandomness(); ok {
		s.Randomness = rv
	}
	if th, ok := w3c.OTelValue().TValueThreshold(); ok && th.ShouldSample(s.Randomness) {
		s.Incoming, s.Known = th, true
	}
	return s
}

// WriteThreshold puts ot=th into a tracestate and keeps its other members. A tracestate that cannot be parsed is replaced: its
// threshold would be believed by nobody.
func WriteThreshold(traceState string, t Threshold) string {
	w3c, err := sampling.NewW3CTraceState(traceState)
	if err != nil {
		w3c, _ = sampling.NewW3CTraceState("")
	}
	w3c.OTelValue().ClearTValue()
	// The only error is an attempt to raise the probability of a threshold that is there, and there is none any more.
	_ = w3c.OTelValue().UpdateTValueWithSampling(t)
	var b strings.Builder
	if err := w3c.Serialize(&b); err != nil {
		return "ot=th:" + t.TValue()
	}
	return b.String()
}

// Stricter is the higher of two thresholds.
func Stricter(a, b Threshold) Threshold {
	if sampling.ThresholdGreater(a, b) {
		return a
	}
	return b
}
