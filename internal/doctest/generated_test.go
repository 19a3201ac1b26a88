package doctest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func TestPart(t *testing.T) {
	const page = "a\n<!-- generated: x -->\nold\n<!-- end -->\nb\n<!-- generated: y -->\nopen\n"
	text, start, end, err := part(page, "x")
	require.NoError(t, err)
	assert.Equal(t, "old\n", text)
	assert.Equal(t, text, page[start:end])
	_, _, _, err = part(page, "y")
	assert.EqualError(t, err, `"y" has no <!-- end -->`)
	_, _, _, err = part(page, "z")
	assert.EqualError(t, err, `no "<!-- generated: z -->"`)
}

func TestFirstDifference(t *testing.T) {
	assert.Empty(t, firstDifference("a\nb", "a\nb"))
	assert.Equal(t, "line 2\n  page: b\n  code: c", firstDifference("a\nb", "a\nc"))
	assert.Equal(t, "line 2\n  page: \n  code: b", firstDifference("a", "a\nb"))
}

func TestTableEscapesPipes(t *testing.T) {
	assert.Equal(t, "| a | b |\n|---|---|\n| x\\|y | z |\n", Table([]string{"a", "b"}, [][]string{{"x|y", "z"}}))
	assert.Equal(t, "```text\nx\n```\n", Fence("text", "x\n"))
}

func TestSpansShowWhatChanged(t *testing.T) {
	in := ptrace.NewTraces()
	s := in.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetName("call")
	s.SetSpanID(pcommon.SpanID{1})
	s.SetEndTimestamp(2_500_000)
	s.Attributes().PutInt("stays", 1)
	s.Attributes().PutStr("goes", "text")
	s.Attributes().PutStr("changes", "old")
	out := ptrace.NewTraces()
	in.CopyTo(out)
	o := out.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	o.At(0).Attributes().Remove("goes")
	o.At(0).Attributes().PutStr("changes", "new")
	o.At(0).Attributes().PutDouble("comes", 1.0/3)
	c := o.AppendEmpty()
	c.SetName("part")
	c.SetSpanID(pcommon.SpanID{2})
	c.SetParentSpanID(pcommon.SpanID{1})
	c.SetEndTimestamp(1_000_000)
	const changes = "-     goes: text\n-     changes: old\n+     changes: new\n+     comes: 0.333333\n+ part  Unspecified 1 ms, child of call\n"
	assert.Equal(t, "  call  Unspecified 2.5 ms\n"+changes, Spans(in, out, false))
	assert.Equal(t, "  call  Unspecified 2.5 ms\n      stays: 1\n"+changes, Spans(in, out, true))
}

func TestPointsAndRecords(t *testing.T) {
	md := pmetric.NewMetrics()
	ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	m := ms.AppendEmpty()
	m.SetName("z.count")
	dp := m.SetEmptySum().DataPoints().AppendEmpty()
	dp.SetDoubleValue(3)
	dp.Attributes().PutStr("b", "y")
	dp.Attributes().PutStr("a", "x")
	m = ms.AppendEmpty()
	m.SetName("a.time")
	h := m.SetEmptyHistogram().DataPoints().AppendEmpty()
	h.SetCount(2)
	h.SetSum(0.5)
	m = ms.AppendEmpty()
	m.SetName("b.time")
	e := m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
	e.SetCount(1)
	e.SetSum(2)
	m = ms.AppendEmpty()
	m.SetName("c.max")
	m.SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(7)
	assert.Equal(t, "a.time{} count 2, sum 0.5\nb.time{} count 1, sum 2\nc.max{} 7\nz.count{a=x, b=y} 3\n", Points(md))

	lr := plog.NewLogRecord()
	lr.SetEventName("llm.request")
	lr.SetSeverityText("INFO")
	lr.SetSpanID(pcommon.SpanID{7: 1})
	lr.Attributes().PutDouble("d", 1.0/3)
	lr.Attributes().PutStr("s", "text")
	assert.Equal(t, "llm.request INFO trace  span 0000000000000001\n  d: 0.333333\n  s: text\n", Record(lr))
}
