package content

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Metrics redacts md in place and adds what it did to f: attributes of resources, scopes, data points and exemplars.
//
// No `<key>.length` is written: the attributes of a point are its identity. Sums and histograms that differed in removed
// attributes only are added up: see merge.
func (r *Redactor) Metrics(md pmetric.Metrics, f *Facts) {
	w := r.walk(SignalMetrics, r.mode, f)
	defer w.done()
	w.metrics(md)
}

func (w *walk) metrics(md pmetric.Metrics) {
	for i := range md.ResourceMetrics().Len() {
		rm := md.ResourceMetrics().At(i)
		w.mode = w.r.ModeOf(rm.Resource())
		w.resource(rm.Resource())
		rm.SetSchemaUrl(w.schemaURL(rm.SchemaUrl()))
		for j := range rm.ScopeMetrics().Len() {
			sm := rm.ScopeMetrics().At(j)
			w.scope(sm.Scope())
			sm.SetSchemaUrl(w.schemaURL(sm.SchemaUrl()))
			for k := range sm.Metrics().Len() {
				w.metric(sm.Metrics().At(k))
			}
		}
	}
}

func (w *walk) metric(m pmetric.Metric) {
	w.place = "metric"
	w.attributes(m.Metadata())
	before := w.counted
	defer func() {
		if w.counted > before {
			if n := merge(m); w.f != nil {
				w.f.Merged += n
			}
		}
	}()
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		w.numbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		w.numbers(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for i := range m.Histogram().DataPoints().Len() {
			p := m.Histogram().DataPoints().At(i)
			w.point(p.Attributes(), p.Exemplars())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for i := range m.ExponentialHistogram().DataPoints().Len() {
			p := m.ExponentialHistogram().DataPoints().At(i)
			w.point(p.Attributes(), p.Exemplars())
		}
	case pmetric.MetricTypeSummary:
		for i := range m.Summary().DataPoints().Len() {
			w.point(m.Summary().DataPoints().At(i).Attributes(), pmetric.NewExemplarSlice())
		}
	}
}

func (w *walk) numbers(points pmetric.NumberDataPointSlice) {
	for i := range points.Len() {
		p := points.At(i)
		w.point(p.Attributes(), p.Exemplars())
	}
}

func (w *walk) point(attrs pcommon.Map, exemplars pmetric.ExemplarSlice) {
	w.forget()
	w.place = "point"
	w.attributes(attrs)
	w.place = "exemplar"
	for i := range exemplars.Len() {
		w.attributes(exemplars.At(i).FilteredAttributes())
	}
}
