package recordings_test

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector"
	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
	"github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor"
)

// result is what the llmspan pair made of a recording in its default configuration.
type result struct {
	spansIn int
	traces  []ptrace.Traces
	metrics pmetric.Metrics // the last export
	records []plog.LogRecord
}

// run sends batches through the processor and the connector, built by their factories.
func run(t *testing.T, batches []ptrace.Traces) result {
	t.Helper()
	ctx := context.Background()
	metrics, logs, traces := new(consumertest.MetricsSink), new(consumertest.LogsSink), new(consumertest.TracesSink)
	cf := llmspanconnector.NewFactory()
	cs := connectortest.NewNopSettings(cf.Type())
	toMetrics, err := cf.CreateTracesToMetrics(ctx, cs, cf.CreateDefaultConfig(), metrics)
	require.NoError(t, err)
	toLogs, err := cf.CreateTracesToLogs(ctx, cs, cf.CreateDefaultConfig(), logs)
	require.NoError(t, err)
	pf := llmspanprocessor.NewFactory()
	p, err := pf.CreateTraces(ctx, processortest.NewNopSettings(pf.Type()), pf.CreateDefaultConfig(), traces)
	require.NoError(t, err)
	require.NoError(t, p.Start(ctx, nil))
	require.NoError(t, toMetrics.Start(ctx, nil))
	require.NoError(t, toLogs.Start(ctx, nil))
	var res result
	for i, td := range batches {
		res.spansIn += td.SpanCount()
		require.NoError(t, p.ConsumeTraces(ctx, td))
		require.NoError(t, toMetrics.ConsumeTraces(ctx, traces.AllTraces()[i]))
		require.NoError(t, toLogs.ConsumeTraces(ctx, traces.AllTraces()[i]))
	}
	require.NoError(t, p.Shutdown(ctx))
	require.NoError(t, toMetrics.Shutdown(ctx))
	require.NoError(t, toLogs.Shutdown(ctx))
	res.traces = traces.AllTraces()
	res.metrics = pmetric.NewMetrics()
	if all := metrics.AllMetrics(); len(all) > 0 {
		res.metrics = all[len(all)-1]
	}
	for _, ld := range logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					res.records = append(res.records, lr)
				}
			}
		}
	}
	return res
}

func load(t *testing.T, name string) []ptrace.Traces {
	t.Helper()
	batches, err := recordings.Traces(name)
	require.NoError(t, err)
	return batches
}

// points are the values of the counters and the counts and sums of the histograms, as name{attributes}.
func (r result) points() map[string]float64 {
	out := map[string]float64{}
	for _, rm := range r.metrics.ResourceMetrics().All() {
		service, _ := rm.Resource().Attributes().Get("service.name")
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeSum:
					for _, dp := range m.Sum().DataPoints().All() {
						out[key(m.Name(), service.AsString(), dp.Attributes())] += dp.DoubleValue()
					}
				case pmetric.MetricTypeHistogram:
					for _, dp := range m.Histogram().DataPoints().All() {
						k := key(m.Name(), service.AsString(), dp.Attributes())
						out[k+" count"] += float64(dp.Count())
						out[k+" sum"] += dp.Sum()
					}
				}
			}
		}
	}
	return out
}

// total sums a metric over its attributes.
func (r result) total(name string) float64 {
	var sum float64
	for k, v := range r.points() {
		if strings.HasPrefix(k, name+"{") {
			sum += v
		}
	}
	return sum
}

func key(name, service string, a pcommon.Map) string {
	parts := []string{"service=" + service}
	for k, v := range a.All() {
		parts = append(parts, k+"="+v.AsString())
	}
	sort.Strings(parts)
	return name + "{" + strings.Join(parts, ",") + "}"
}

// summary is the whole result as text, one fact a line, to be reviewed.
func (r result) summary() string {
	var b strings.Builder
	out, stages := 0, map[string]int{}
	layers := map[string]int{}
	for _, td := range r.traces {
		out += td.SpanCount()
		each(td, func(s ptrace.Span) {
			if v, ok := s.Attributes().Get("llmspan.stage"); ok {
				stages[v.Str()]++
			}
			if v, ok := s.Attributes().Get("llmspan.layer"); ok {
				d, _ := s.Attributes().Get("llmspan.dialect")
				layers[v.Str()+" "+d.Str()]++
			}
		})
	}
	fmt.Fprintf(&b, "spans in %d, out %d\n", r.spansIn, out)
	for _, k := range sorted(layers) {
		fmt.Fprintf(&b, "layer %s: %d\n", k, layers[k])
	}
	for _, k := range sorted(stages) {
		fmt.Fprintf(&b, "stage %s: %d\n", k, stages[k])
	}
	p := r.points()
	for _, k := range sorted(p) {
		fmt.Fprintf(&b, "%s = %.6g\n", k, p[k])
	}
	var lines []string
	for _, lr := range r.records {
		var parts []string
		for k, v := range lr.Attributes().All() {
			s := v.AsString()
			if v.Type() == pcommon.ValueTypeDouble {
				s = fmt.Sprintf("%.6g", v.Double())
			}
			parts = append(parts, k+"="+s)
		}
		sort.Strings(parts)
		lines = append(lines, fmt.Sprintf("record %s %s %s", lr.TraceID(), lr.SpanID(), strings.Join(parts, " ")))
	}
	sort.Strings(lines)
	b.WriteString(strings.Join(lines, "\n"))
	if len(lines) > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

func each(td ptrace.Traces, f func(ptrace.Span)) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				f(s)
			}
		}
	}
}

func sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
