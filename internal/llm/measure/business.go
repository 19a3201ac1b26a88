package measure

import (
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// ReasonUpstream is the reason of waste of an engine that worked on after its client had left.
const ReasonUpstream = "upstream_ran_on"

// business counts what the business asks of a settled request, or what a later part of one adds.
func (m *Measurer) business(q *join.Logical, status Label, w float64) {
	r := &q.Request
	if r.Outcome != request.OutcomeNone {
		outcome := Label{Key: names.MetricSLOOutcome, Value: r.Outcome.String()}
		if q.First {
			l := append(m.base(r), outcome)
			if v := r.Violated.First(request.Violations); v != "" {
				l = append(l, Label{Key: names.MetricSLOViolated, Value: v})
			}
			m.sink.Observe(names.SLORequests, r, l, 1, w)
		}
		if r.OutputTokens.Known {
			m.sink.Observe(names.SLOOutputTokens, r, append(m.base(r), outcome), float64(r.OutputTokens.Value), w)
		}
	}
	if q.Charge.Known {
		l := append(m.base(r), Label{Key: names.MetricCurrency, Value: q.Charge.Currency}, status)
		m.sink.Charge(names.CostTotal, r, l, q.Charge.Amount, w)
		if !q.Charge.Saved.IsZero() {
			m.sink.Charge(names.CostSaved, r, l, q.Charge.Saved, w)
		}
	}
	m.Issues(q, w)
	m.wasted(q, status, w)
	if !q.First {
		return
	}
	l := append(m.base(r), status)
	for _, c := range [...]struct {
		id names.MetricID
		is bool
	}{
		{names.RequestsUnpriced, r.Unpriced},
		{names.RequestsOversize, r.Oversize},
		{names.WarmupRequests, r.Warmup},
		{names.TokensUnknown, !r.InputTokens.Known && !r.OutputTokens.Known},
	} {
		if c.is {
			m.sink.Observe(c.id, r, l, 1, w)
		}
	}
	if r.ColdStart.Known {
		m.sink.Observe(names.ColdStartDuration, r, m.base(r), r.ColdStart.Value, w)
	}
}

// Issues counts what is wrong with an answer.
func (m *Measurer) Issues(q *join.Logical, w float64) {
	r := &q.Request
	if r.Quality == 0 {
		return
	}
	for i, n := range request.Issues {
		if r.Quality&(1<<i) != 0 {
			m.sink.Observe(names.QualityIssues, r, append(m.base(r), Label{Key: names.MetricIssue, Value: n}), 1, w)
		}
	}
}

// Note counts what a layer knew of a request that was counted before it came.
func (m *Measurer) Note(q *join.Logical) { m.Issues(q, Weight(&q.Request)) }

// wasted counts an engine's work that nobody got: tokens generated, and the time from the arrival to the end.
func (m *Measurer) wasted(q *join.Logical, status Label, w float64) {
	r := &q.Request
	if r.Status != request.StatusError && r.Status != request.StatusCancelled && !r.Wasted {
		return
	}
	reason := Label{Key: names.MetricReason, Value: r.Status.String()}
	if r.Wasted {
		reason.Value = ReasonUpstream
	}
	l := append(m.base(r), status, reason)
	if r.OutputTokens.Known {
		m.sink.Observe(names.WastedOutputTokens, r, l, float64(r.OutputTokens.Value), w)
	}
	if !q.First {
		return
	}
	d := r.E2E
	if !d.Known && r.End >= r.Start {
		d = request.Some(r.Duration())
	}
	if d.Known {
		m.sink.Observe(names.WastedDuration, r, l, d.Value, w)
	}
}
