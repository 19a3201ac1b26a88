//go:build e2e

package e2e

import (
	"fmt"
	"math"
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

// mode is how the processor works in a run.
type mode struct {
	name string
	// processor is its configuration. whole says that it sees whole traces: then it can tell what became of requests that no
	// engine's span answers, and a request has one record.
	processor string
	whole     bool
}

var (
	stateless = mode{name: "stateless", processor: "{}"}
	// Every trace is kept, so that all of them can be compared. Refused calls (4xx) count as errors: otherwise those that only an
	// HTTP span tells of are no requests.
	assembled = mode{
		name: "assembled", whole: true,
		processor: "{sampling: {enabled: true, apply: tag, baseline_ratio: 1, decision_delay: 2s, idle_timeout: 10s, client_errors: true}}",
	}
)

// engineSums are the figures of one engine's sequences, as the truth has them.
type engineSums struct {
	requests, input, output   float64 // of calls with at least one engine span; tokens counted once
	sequences, twoTokens      float64
	ttft, e2e, queue, prefill float64 // sums in seconds
	decode, admission         float64
	ttftValues, tpotValues    []float64 // sorted
}

// byEngine adds up the truths of calls that have an engine span.
func byEngine(truths []sim.Truth) map[string]*engineSums {
	all := map[string]*engineSums{}
	for i := range truths {
		x := &truths[i]
		s := all[x.Engine]
		if s == nil {
			s = &engineSums{}
			all[x.Engine] = s
		}
		if len(x.Sequences) == 0 {
			continue
		}
		s.requests++
		s.input += float64(x.Seen.InputTokens)
		s.output += float64(x.Seen.OutputTokens)
		for _, q := range x.Sequences {
			s.sequences++
			s.ttft += q.TTFT.Float()
			s.e2e += q.E2E.Float()
			s.queue += q.Queue.Float()
			s.prefill += q.Prefill.Float()
			s.decode += q.Decode.Float()
			s.admission += q.Admission.Float()
			s.ttftValues = append(s.ttftValues, q.TTFT.Float())
			if q.OutputTokens > 1 {
				s.twoTokens++
				s.tpotValues = append(s.tpotValues, (q.E2E.Float()-q.TTFT.Float())/float64(q.OutputTokens-1))
			}
		}
	}
	for _, s := range all {
		slices.Sort(s.ttftValues)
		slices.Sort(s.tpotValues)
	}
	return all
}

// quantile is the exact value that histogram_quantile estimates: the smallest one with at least q of all at or below it.
func quantile(sorted []float64, q float64) float64 {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// bucketOf returns the bounds of the bucket that holds v.
func bucketOf(bounds []float64, v float64) (low, high float64) {
	i, _ := slices.BinarySearch(bounds, v)
	if i > 0 {
		low = bounds[i-1]
	}
	if i == len(bounds) {
		return low, math.Inf(1)
	}
	return low, bounds[i]
}

// report collects differences.
type report struct{ lines []string }

func (r *report) add(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// equal compares counts.
func (r *report) equal(what string, got, want float64) {
	if got != want {
		r.add("%s: %v, the truth is %v", what, got, want)
	}
}

// near compares sums of durations: vLLM's wall clock is a double of seconds, so each summand may be off by half a microsecond.
func (r *report) near(what string, got, want, n float64) {
	if math.Abs(got-want) > 5e-7*n+1e-9*math.Abs(want) {
		r.add("%s: %v, the truth is %v (%v summands)", what, got, want, n)
	}
}
