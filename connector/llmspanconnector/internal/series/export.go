package series

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
)

// ScopeName is the instrumentation scope of the metrics.
const ScopeName = "github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector"

// Export is every series as it stands at now: cumulative, with its start. Series that are older than the expiry are forgotten first; a
// maximum that was not observed since the last export is marked as having no value, once. The caller says with Taken when it was taken.
func (s *Store) Export(now time.Time) pmetric.Metrics {
	s.expire(now)
	md := pmetric.NewMetrics()
	type place struct {
		scope   pmetric.ScopeMetrics
		metrics [names.NumMetrics]pmetric.Metric
		have    [names.NumMetrics]bool
	}
	places := map[resource]*place{}
	for _, se := range s.order {
		m := &names.Metrics[se.id]
		if m.Kind == names.MaxGauge {
			se.takeBack()
			se.out = true
		}
		if m.Kind == names.MaxGauge && !se.fresh && !se.shown {
			continue
		}
		p, ok := places[se.res]
		if !ok {
			p = &place{scope: newScope(md, se.res)}
			places[se.res] = p
		}
		if !p.have[se.id] {
			p.metrics[se.id], p.have[se.id] = s.newMetric(p.scope, m), true
		}
		s.point(p.metrics[se.id], m, se, now)
	}
	return md
}

// Taken says that a consumer took the last export: maxima begin anew, and exemplars make room.
func (s *Store) Taken() {
	for _, se := range s.order {
		se.exemplar.shown = true
		if se.out {
			se.shown, se.fresh, se.sum = se.fresh, se.nextFresh, se.next
			se.out, se.nextFresh = false, false
		}
	}
}

// takeBack puts what an export that was not taken had shown together with what was observed since.
func (se *series) takeBack() {
	if !se.out {
		return
	}
	if se.nextFresh && (!se.fresh || se.next > se.sum) {
		se.sum, se.fresh = se.next, true
	}
	se.out, se.nextFresh = false, false
}

func newScope(md pmetric.Metrics, res resource) pmetric.ScopeMetrics {
	rm := md.ResourceMetrics().AppendEmpty()
	for _, a := range [...]struct{ k, v string }{
		{names.ServiceName, res.service}, {names.ServiceNamespace, res.namespace}, {names.DeploymentEnvName, res.environment},
	} {
		if a.v != "" {
			rm.Resource().Attributes().PutStr(a.k, a.v)
		}
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(ScopeName)
	return sm
}

func (s *Store) newMetric(sm pmetric.ScopeMetrics, m *names.Metric) pmetric.Metric {
	out := sm.Metrics().AppendEmpty()
	out.SetName(m.Name)
	out.SetUnit(m.Unit)
	out.SetDescription(m.Description)
	switch {
	case m.Kind == names.Counter, m.Kind == names.Money:
		sum := out.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	case m.Kind == names.MaxGauge:
		out.SetEmptyGauge()
	case s.cfg.Exponential:
		out.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	default:
		out.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	return out
}

func (s *Store) point(out pmetric.Metric, m *names.Metric, se *series, now time.Time) {
	start, ts := pcommon.NewTimestampFromTime(se.start), pcommon.NewTimestampFromTime(now)
	switch {
	case m.Kind == names.Counter, m.Kind == names.Money:
		dp := out.Sum().DataPoints().AppendEmpty()
		dp.SetStartTimestamp(start)
		dp.SetTimestamp(ts)
		dp.SetDoubleValue(se.sum)
		if m.Kind == names.Money {
			dp.SetDoubleValue(se.money.Float64())
		}
		putLabels(dp.Attributes(), se)
	case m.Kind == names.MaxGauge:
		dp := out.Gauge().DataPoints().AppendEmpty()
		dp.SetTimestamp(ts)
		if se.fresh {
			dp.SetDoubleValue(se.sum)
		} else {
			// Nothing was observed since the value that was shown: it must not be repeated as if it were new.
			dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}
		putLabels(dp.Attributes(), se)
	case s.cfg.Exponential:
		dp := out.ExponentialHistogram().DataPoints().AppendEmpty()
		dp.SetStartTimestamp(start)
		dp.SetTimestamp(ts)
		se.hist.exponential(dp)
		putLabels(dp.Attributes(), se)
		putExemplar(dp.Exemplars(), se)
	default:
		dp := out.Histogram().DataPoints().AppendEmpty()
		dp.SetStartTimestamp(start)
		dp.SetTimestamp(ts)
		se.hist.explicit(dp)
		putLabels(dp.Attributes(), se)
		putExemplar(dp.Exemplars(), se)
	}
}

func putLabels(a pcommon.Map, se *series) {
	if se.overflow {
		a.PutBool(names.MetricOverflow, true)
		return
	}
	a.EnsureCapacity(len(se.labels))
	for _, l := range se.labels {
		if l.Bool {
			a.PutBool(l.Key, l.Value == "true")
		} else {
			a.PutStr(l.Key, l.Value)
		}
	}
}

func putExemplar(to pmetric.ExemplarSlice, se *series) {
	if !se.exemplar.set {
		return
	}
	e := to.AppendEmpty()
	e.SetDoubleValue(se.exemplar.value)
	e.SetTimestamp(pcommon.NewTimestampFromTime(se.exemplar.at))
	e.SetTraceID(se.exemplar.trace)
	e.SetSpanID(se.exemplar.span)
}
