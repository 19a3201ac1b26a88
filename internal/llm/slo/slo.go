// Package slo holds requests against objectives: goodput is the share of the traffic that met them.
package slo

import (
	"github.com/otelcol-llm/otelcol-llm/internal/llm/pattern"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Objective is what the requests of some models should keep to, in seconds; 0 leaves a figure out.
type Objective struct {
	// Model is a pattern: * stands for any characters.
	Model string
	// TTFT, TPOT and E2E are at the engine's vantage, UserTTFT at the outermost layer's.
	TTFT, TPOT, E2E, UserTTFT float64
}

// Objectives is a list of them; the first that matches a model holds.
type Objectives []Objective

// Figures is what is known of one logical request.
type Figures struct {
	Model  string
	Status request.Status
	// TTFT, TPOT, E2E and UserTTFT are in seconds.
	TTFT, TPOT, E2E, UserTTFT request.Seconds
}

// Judge says whether a request met its objective, and what it violated. A request that failed or was cancelled missed it. A figure that
// nobody stated is not held against a request; one of which no figure is known, and that did not fail, has no outcome.
func (o Objectives) Judge(f *Figures) (request.Outcome, request.Flags) {
	for i := range o {
		if pattern.Match(o[i].Model, f.Model) {
			return o[i].judge(f)
		}
	}
	return request.OutcomeNone, 0
}

func (o *Objective) judge(f *Figures) (request.Outcome, request.Flags) {
	var violated request.Flags
	switch f.Status {
	case request.StatusError:
		violated |= request.ViolatedError
	case request.StatusCancelled:
		violated |= request.ViolatedCancelled
	}
	judged := false
	for _, c := range [...]struct {
		limit float64
		v     request.Seconds
		flag  request.Flags
	}{
		{o.TTFT, f.TTFT, request.ViolatedTTFT},
		{o.TPOT, f.TPOT, request.ViolatedTPOT},
		{o.E2E, f.E2E, request.ViolatedE2E},
		{o.UserTTFT, f.UserTTFT, request.ViolatedUserTTFT},
	} {
		if c.limit <= 0 || !c.v.Known {
			continue
		}
		judged = true
		if c.v.Value > c.limit {
			violated |= c.flag
		}
	}
	switch {
	case violated != 0:
		return request.OutcomeMissed, violated
	case judged:
		return request.OutcomeMet, 0
	}
	return request.OutcomeNone, 0
}
