package content

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// place is one place of a signal that holds attributes.
type place struct {
	name string
	at   func(b *batch) pcommon.Map
}

// batch is one request of each signal, with one of everything.
type batch struct {
	td     ptrace.Traces
	span   ptrace.Span
	event  ptrace.SpanEvent
	link   ptrace.SpanLink
	ld     plog.Logs
	record plog.LogRecord
	md     pmetric.Metrics
	sum    pmetric.NumberDataPoint
	gauge  pmetric.NumberDataPoint
	hist   pmetric.HistogramDataPoint
	exp    pmetric.ExponentialHistogramDataPoint
	summ   pmetric.SummaryDataPoint
}

func newBatch() *batch {
	b := &batch{td: ptrace.NewTraces(), ld: plog.NewLogs(), md: pmetric.NewMetrics()}
	b.span = b.td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	b.event, b.link = b.span.Events().AppendEmpty(), b.span.Links().AppendEmpty()
	b.record = b.ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	ms := b.md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	b.sum = ms.AppendEmpty().SetEmptySum().DataPoints().AppendEmpty()
	b.gauge = ms.AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
	b.hist = ms.AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty()
	b.exp = ms.AppendEmpty().SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
	b.summ = ms.AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty()
	return b
}

func (b *batch) metric(i int) pmetric.Metric {
	return b.md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(i)
}

func (b *batch) redact(r *Redactor) (f Facts) {
	r.Traces(b.td, &f)
	r.Logs(b.ld, &f)
	r.Metrics(b.md, &f)
	return f
}

// bytes is everything that an exporter could write: protobuf and JSON of all signals.
func (b *batch) bytes(t testing.TB) []byte {
	var out []byte
	add := func(p []byte, err error) {
		require.NoError(t, err)
		out = append(append(out, p...), '\n')
	}
	add((&ptrace.ProtoMarshaler{}).MarshalTraces(b.td))
	add((&ptrace.JSONMarshaler{}).MarshalTraces(b.td))
	add((&plog.ProtoMarshaler{}).MarshalLogs(b.ld))
	add((&plog.JSONMarshaler{}).MarshalLogs(b.ld))
	add((&pmetric.ProtoMarshaler{}).MarshalMetrics(b.md))
	add((&pmetric.JSONMarshaler{}).MarshalMetrics(b.md))
	return out
}

// at2 is the attribute set that at made: exemplars exist by then.
func (p place) at2(b *batch) pcommon.Map {
	switch p.name {
	case "sum exemplar":
		return b.sum.Exemplars().At(0).FilteredAttributes()
	case "gauge exemplar":
		return b.gauge.Exemplars().At(0).FilteredAttributes()
	case "histogram exemplar":
		return b.hist.Exemplars().At(0).FilteredAttributes()
	case "exponential exemplar":
		return b.exp.Exemplars().At(0).FilteredAttributes()
	}
	return p.at(b)
}

var places = []place{
	{"trace resource", func(b *batch) pcommon.Map { return b.td.ResourceSpans().At(0).Resource().Attributes() }},
	{"trace scope", func(b *batch) pcommon.Map { return b.td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().Attributes() }},
	{"span", func(b *batch) pcommon.Map { return b.span.Attributes() }},
	{"span event", func(b *batch) pcommon.Map { return b.event.Attributes() }},
	{"span link", func(b *batch) pcommon.Map { return b.link.Attributes() }},
	{"log resource", func(b *batch) pcommon.Map { return b.ld.ResourceLogs().At(0).Resource().Attributes() }},
	{"log scope", func(b *batch) pcommon.Map { return b.ld.ResourceLogs().At(0).ScopeLogs().At(0).Scope().Attributes() }},
	{"log", func(b *batch) pcommon.Map { return b.record.Attributes() }},
	{"metric resource", func(b *batch) pcommon.Map { return b.md.ResourceMetrics().At(0).Resource().Attributes() }},
	{"metric scope", func(b *batch) pcommon.Map {
		return b.md.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().Attributes()
	}},
	{"metric metadata", func(b *batch) pcommon.Map { return b.metric(0).Metadata() }},
	{"sum point", func(b *batch) pcommon.Map { return b.sum.Attributes() }},
	{"gauge point", func(b *batch) pcommon.Map { return b.gauge.Attributes() }},
	{"histogram point", func(b *batch) pcommon.Map { return b.hist.Attributes() }},
	{"exponential point", func(b *batch) pcommon.Map { return b.exp.Attributes() }},
	{"summary point", func(b *batch) pcommon.Map { return b.summ.Attributes() }},
	{"sum exemplar", func(b *batch) pcommon.Map { return b.sum.Exemplars().AppendEmpty().FilteredAttributes() }},
	{"gauge exemplar", func(b *batch) pcommon.Map { return b.gauge.Exemplars().AppendEmpty().FilteredAttributes() }},
	{"histogram exemplar", func(b *batch) pcommon.Map { return b.hist.Exemplars().AppendEmpty().FilteredAttributes() }},
	{"exponential exemplar", func(b *batch) pcommon.Map { return b.exp.Exemplars().AppendEmpty().FilteredAttributes() }},
}
