package main

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// mapTimes replaces every timestamp of the request that is set by what f makes of it. A zero means "not told" and stays.
func (r request) mapTimes(f func(pcommon.Timestamp) pcommon.Timestamp) {
	m := func(get func() pcommon.Timestamp, set func(pcommon.Timestamp)) {
		if ts := get(); ts != 0 {
			set(f(ts))
		}
	}
	switch {
	case r.traces != nil:
		mapSpans(*r.traces, m)
	case r.logs != nil:
		mapLogs(*r.logs, m)
	case r.metrics != nil:
		mapMetrics(*r.metrics, m)
	}
}

// move changes one timestamp through its getter and setter.
type move = func(get func() pcommon.Timestamp, set func(pcommon.Timestamp))

func mapSpans(td ptrace.Traces, m move) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				m(s.StartTimestamp, s.SetStartTimestamp)
				m(s.EndTimestamp, s.SetEndTimestamp)
				for _, e := range s.Events().All() {
					m(e.Timestamp, e.SetTimestamp)
				}
			}
		}
	}
}

func mapLogs(ld plog.Logs, m move) {
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, l := range sl.LogRecords().All() {
				m(l.Timestamp, l.SetTimestamp)
				m(l.ObservedTimestamp, l.SetObservedTimestamp)
			}
		}
	}
}

func mapMetrics(md pmetric.Metrics, m move) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, x := range sm.Metrics().All() {
				mapPoints(x, m)
			}
		}
	}
}

func mapPoints(x pmetric.Metric, m move) {
	switch x.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range x.Gauge().DataPoints().All() {
			mapPoint(p, p.Exemplars(), m)
		}
	case pmetric.MetricTypeSum:
		for _, p := range x.Sum().DataPoints().All() {
			mapPoint(p, p.Exemplars(), m)
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range x.Histogram().DataPoints().All() {
			mapPoint(p, p.Exemplars(), m)
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range x.ExponentialHistogram().DataPoints().All() {
			mapPoint(p, p.Exemplars(), m)
		}
	case pmetric.MetricTypeSummary:
		for _, p := range x.Summary().DataPoints().All() {
			mapPoint(p, pmetric.NewExemplarSlice(), m)
		}
	}
}

// timed is what the five kinds of data points have in common.
type timed interface {
	StartTimestamp() pcommon.Timestamp
	SetStartTimestamp(pcommon.Timestamp)
	Timestamp() pcommon.Timestamp
	SetTimestamp(pcommon.Timestamp)
}

func mapPoint(p timed, exemplars pmetric.ExemplarSlice, m move) {
	m(p.StartTimestamp, p.SetStartTimestamp)
	m(p.Timestamp, p.SetTimestamp)
	for _, e := range exemplars.All() {
		m(e.Timestamp, e.SetTimestamp)
	}
}
