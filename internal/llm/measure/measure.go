// Package measure says which metrics a request is worth: it turns engine spans and settled requests into observations.
//
// An engine's span (a sequence: n = 3 gives three) is observed as the engine's own histograms observe it, so that the two can be
// compared. Requests and tokens are counted once whatever layers reported them.
package measure

import (
	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Label is one attribute of a point. Bool labels carry "true" or "false".
type Label struct {
	Key, Value string
	Bool       bool
}

// Sink takes observations. Labels are valid during the call only.
type Sink interface {
	// Observe adds value to a metric of a source; it stands for weight requests (1 unless an SDK has sampled).
	Observe(id names.MetricID, r *request.Request, labels []Label, value, weight float64)
	// Charge adds an amount to a metric of money of a source.
	Charge(id names.MetricID, r *request.Request, labels []Label, amount cost.Amount, weight float64)
}

// Measurer turns requests into observations. It is not safe for concurrent use; it reuses its label buffer.
type Measurer struct {
	sink   Sink
	labels []Label
}

// New returns a measurer that feeds sink.
func New(sink Sink) *Measurer { return &Measurer{sink: sink, labels: make([]Label, 0, 24)} }

// base starts the labels of a request: model, operation and dimensions.
func (m *Measurer) base(r *request.Request) []Label {
	model := r.Model
	if model == "" {
		model = names.Unknown
	}
	op := r.Operation
	if op == "" {
		op = names.Unknown
	}
	l := m.labels[:0]
	l = append(l, Label{Key: names.RequestModel, Value: model}, Label{Key: names.OperationName, Value: op})
	for _, d := range r.Dimensions {
		l = append(l, Label{Key: d.Name, Value: d.Value})
	}
	return l
}

// Engine observes what engines observe for each sequence.
func (m *Measurer) Engine(r *request.Request) {
	w := Weight(r)
	l := m.base(r)
	for _, o := range [...]struct {
		id names.MetricID
		v  request.Seconds
	}{
		{names.ServerTTFT, r.TTFT},
		{names.ServerTPOT, r.TPOT()},
		{names.AdmissionDuration, r.Admission},
		{names.QueueDuration, r.Queue},
		{names.KVTransferDuration, r.KVTransfer},
		{names.PrefillDuration, r.Prefill},
		{names.DecodeDuration, r.Decode},
		{names.TTFTMax, r.TTFT},
	} {
		if o.v.Known {
			m.sink.Observe(o.id, r, l, o.v.Value, w)
		}
	}
	d := r.E2E
	if !d.Known {
		d = r.Elapsed()
	}
	if d.Known {
		m.sink.Observe(names.RequestDurationMax, r, l, d.Value, w)
		if r.Status == request.StatusError {
			l = append(l, Label{Key: names.ErrorType, Value: r.ErrorType})
		}
		m.sink.Observe(names.ServerRequestDuration, r, l, d.Value, w)
	}
	m.Invalid(r, w)
}

// Invalid counts the rejected figures of a span.
func (m *Measurer) Invalid(r *request.Request, w float64) {
	for _, n := range r.Invalid {
		m.sink.Observe(names.SpansInvalid, r, append(m.base(r), Label{Key: names.MetricReason, Value: n}), 1, w)
	}
}

// Request counts a settled request, or what a later part of one adds.
func (m *Measurer) Request(q *join.Logical) {
	r := &q.Request
	w := Weight(r)
	status := Label{Key: names.MetricStatus, Value: r.Status.String()}
	if q.First {
		l := append(m.base(r), status)
		if r.FinishReason != "" {
			l = append(l, Label{Key: names.MetricFinishReason, Value: r.FinishReason})
		}
		m.sink.Observe(names.Requests, r, l, 1, w)
		l = m.base(r)
		if r.Ingress.Known {
			m.sink.Observe(names.IngressDuration, r, l, r.Ingress.Value, w)
		}
		if r.Return.Known {
			m.sink.Observe(names.ReturnDuration, r, l, r.Return.Value, w)
		}
		if r.UserE2E.Known {
			m.sink.Observe(names.UserRequestDuration, r, l, r.UserE2E.Value, w)
		}
		if r.UserGapMax.Known {
			m.sink.Observe(names.UserGapMaxDuration, r, l, r.UserGapMax.Value, w)
		}
		if r.UserTTFT.Known {
			estimated := Label{Key: names.MetricEstimated, Value: "false", Bool: true}
			if r.UserTTFTEstimated {
				estimated.Value = "true"
			}
			m.sink.Observe(names.UserTTFTDuration, r, append(l, estimated), r.UserTTFT.Value, w)
		}
		if q.Sequences == 0 {
			m.Invalid(r, w)
		}
	}
	m.tokens(r, names.InputTokensTotal, r.InputTokens, r.CachedTokens, names.MetricCached, status, w)
	m.tokens(r, names.OutputTokensTotal, r.OutputTokens, r.ReasoningTokens, names.MetricReasoning, status, w)
	m.business(q, status, w)
	if !q.First {
		return
	}
	l := m.base(r)
	if r.InputTokens.Known {
		m.sink.Observe(names.RequestInputTokens, r, l, float64(r.InputTokens.Value), w)
	}
	if r.OutputTokens.Known {
		m.sink.Observe(names.RequestOutputTokens, r, l, float64(r.OutputTokens.Value), w)
	}
}

// tokens counts a total, split by a part of it where the source tells the part. The two sum to the total.
func (m *Measurer) tokens(r *request.Request, id names.MetricID, all, part request.Tokens, key string, status Label, w float64) {
	if !all.Known {
		return
	}
	l := append(m.base(r), status)
	if !part.Known {
		m.sink.Observe(id, r, l, float64(all.Value), w)
		return
	}
	in := min(part.Value, all.Value)
	if in > 0 {
		m.sink.Observe(id, r, append(l, Label{Key: key, Value: "true", Bool: true}), float64(in), w)
	}
	m.sink.Observe(id, r, append(l, Label{Key: key, Value: "false", Bool: true}), float64(all.Value-in), w)
}

// Trace counts a decision on a trace; r is any span of it.
func (m *Measurer) Trace(r *request.Request) {
	l := m.labels[:0]
	l = append(l, Label{Key: names.MetricDecision, Value: r.Decision}, Label{Key: names.MetricRule, Value: r.Rule})
	m.sink.Observe(names.SamplingTraces, r, l, 1, Weight(r))
}
