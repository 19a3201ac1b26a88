package dialect

import (
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Tolerances of an engine's durations against its span. Healthy recordings stay within 30 ms (vLLM 0.8.5 to 0.26 on two busy
// cores); five times that is left for busier machines.
const (
	slackSeconds = 0.150
	slackRatio   = 0.02
)

// longest is the longest time that is believed of a span, in seconds.
func longest(r *request.Request) float64 {
	return min(r.Duration()*(1+slackRatio)+slackSeconds, maxSeconds)
}

var engineFigures = [...]figure{
	{fieldE2E, "e2e"}, {fieldTTFT, "ttft"}, {fieldQueue, "queue"}, {fieldPrefill, "prefill"}, {fieldDecode, "decode"},
}

// engineTimes reads the latency attributes of vLLM and SGLang and rejects what cannot be true: a negative time, one longer than its
// span (milliseconds under a name in seconds end here too), a first token after the end.
func (s *source) engineTimes(r *request.Request) {
	limit := longest(r)
	if s.has(fieldE2E) {
		// Milliseconds throughout: the short ones among them would pass for seconds.
		if d, ok := number(s.values[fieldE2E]); ok && d > limit && d/1000 <= limit {
			for _, f := range engineFigures {
				r.Reject(f.name)
			}
			return
		}
	}
	to := [len(engineFigures)]*request.Seconds{&r.E2E, &r.TTFT, &r.Queue, &r.Prefill, &r.Decode}
	for i, f := range engineFigures {
		*to[i] = s.seconds(r, f.field, f.name, limit)
	}
	if r.TTFT.Known && r.E2E.Known && r.TTFT.Value > r.E2E.Value*(1+slackRatio)+slackSeconds {
		r.TTFT = request.Seconds{}
		r.Reject("ttft")
	}
	if s.has(fieldTTFT) && r.TTFT.Known && r.TTFT.Value == 0 {
		// V1 writes 0 when there was no first token; the other zeros are then unset instants, not durations.
		r.TTFT, r.Prefill, r.Decode = request.Seconds{}, request.Seconds{}, request.Seconds{}
		r.NoFirstToken = true
	}
}

// seconds reads one duration in seconds from 0 to limit.
func (s *source) seconds(r *request.Request, f field, name string, limit float64) request.Seconds {
	if !s.has(f) {
		return request.Seconds{}
	}
	d, ok := number(s.values[f])
	if !ok || d < 0 || d > limit {
		r.Reject(name)
		return request.Seconds{}
	}
	return request.Some(d)
}

// Complete derives what an engine's own figures imply: for V0, which states neither prefill nor decode,
// prefill = TTFT − queue and decode = e2e − TTFT with admission inside queue; for V1, admission = TTFT − queue − prefill. A reader that
// learns a figure from elsewhere than the request's span calls it again.
func Complete(r *request.Request) {
	if !r.TTFT.Known {
		return
	}
	switch {
	case r.Prefill.Known && r.Queue.Known:
		r.Admission = admission(r, r.TTFT.Value-r.Queue.Value-r.KVTransfer.Or(0)-r.Prefill.Value)
	case r.Prefill.Known && r.PrefillHasQueue:
		r.Admission = admission(r, r.TTFT.Value-r.Prefill.Value)
	case r.Queue.Known && !r.Prefill.Known && !rejected(r, "prefill"):
		if d := r.TTFT.Value - r.Queue.Value; d >= 0 {
			r.Prefill = request.Some(d)
		}
	}
	if !r.Decode.Known && !rejected(r, "decode") && r.E2E.Known {
		if d := r.E2E.Value - r.TTFT.Value; d >= 0 {
			r.Decode = request.Some(d)
		}
	}
}

// admission is d, 0 when it is negative by no more than the two clocks differ, and rejected beyond.
func admission(r *request.Request, d float64) request.Seconds {
	if d < 0 && d > -slackSeconds {
		d = 0
	}
	if d < 0 {
		r.Reject("admission")
		return request.Seconds{}
	}
	return request.Some(d)
}

func rejected(r *request.Request, name string) bool {
	for _, n := range r.Invalid {
		if n == name {
			return true
		}
	}
	return false
}
