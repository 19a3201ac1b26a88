package doctest

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Points shows the points of metrics, sorted, one a line: a number, or count and sum of a histogram.
//
//	llm.requests{gen_ai.operation.name=chat, llm.status=ok} 1
//	llm.queue.duration{gen_ai.operation.name=chat} count 1, sum 5.0912e-05
func Points(md pmetric.Metrics) string {
	var lines []string
	add := func(m pmetric.Metric, a pcommon.Map, text string) {
		lines = append(lines, fmt.Sprintf("%s{%s} %s\n", m.Name(), strings.Join(pairs(a, "="), ", "), text))
	}
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeSum:
					for _, dp := range m.Sum().DataPoints().All() {
						add(m, dp.Attributes(), fmt.Sprintf("%.6g", dp.DoubleValue()))
					}
				case pmetric.MetricTypeGauge:
					for _, dp := range m.Gauge().DataPoints().All() {
						add(m, dp.Attributes(), fmt.Sprintf("%.6g", dp.DoubleValue()))
					}
				case pmetric.MetricTypeHistogram:
					for _, dp := range m.Histogram().DataPoints().All() {
						add(m, dp.Attributes(), fmt.Sprintf("count %d, sum %.6g", dp.Count(), dp.Sum()))
					}
				case pmetric.MetricTypeExponentialHistogram:
					for _, dp := range m.ExponentialHistogram().DataPoints().All() {
						add(m, dp.Attributes(), fmt.Sprintf("count %d, sum %.6g", dp.Count(), dp.Sum()))
					}
				}
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// Record shows a log record: its event name and severity, then one line an attribute in the order in which they stand.
func Record(lr plog.LogRecord) string {
	head := fmt.Sprintf("%s %s trace %s span %s\n", lr.EventName(), lr.SeverityText(), lr.TraceID(), lr.SpanID())
	var b strings.Builder
	b.WriteString(head)
	for k, v := range lr.Attributes().All() {
		b.WriteString("  " + k + ": " + value(v) + "\n")
	}
	return b.String()
}

func pairs(a pcommon.Map, between string) []string {
	var out []string
	for k, v := range a.All() {
		out = append(out, k+between+value(v))
	}
	slices.Sort(out)
	return out
}
