package llmspanconnector

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector/internal/metadatatest"
)

// harness is a started connector with what it tells of itself.
type harness struct {
	connector.Traces
	tel  *componenttest.Telemetry
	logs *observer.ObservedLogs
}

// newMetrics and newRecords build, by a factory of their own, and start a connector that has this output alone.
func newMetrics(t *testing.T, cfg *Config, next consumer.Metrics) harness {
	t.Helper()
	return start(t, func(set connector.Settings) (connector.Traces, error) {
		return NewFactory().CreateTracesToMetrics(t.Context(), set, cfg, next)
	})
}

func newRecords(t *testing.T, cfg *Config, next consumer.Logs) harness {
	t.Helper()
	return start(t, func(set connector.Settings) (connector.Traces, error) {
		return NewFactory().CreateTracesToLogs(t.Context(), set, cfg, next)
	})
}

func start(t *testing.T, create func(connector.Settings) (connector.Traces, error)) harness {
	t.Helper()
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, tel.Shutdown(context.Background())) })
	set := metadatatest.NewSettings(tel)
	core, logs := observer.New(zapcore.DebugLevel)
	set.Logger = zap.New(core)
	c, err := create(set)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Shutdown(context.Background())) }) // for a test that fails half way; safe twice
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	return harness{c, tel, logs}
}

// value adds up one of the connector's own metrics over its attributes; 0 when it has no point.
func (h harness) value(t *testing.T, name string) (total int64) {
	t.Helper()
	m, err := h.tel.GetMetric("otelcol_connector_llmspan_" + name)
	if err != nil {
		return 0
	}
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, dp := range d.DataPoints {
			total += dp.Value
		}
	case metricdata.Gauge[int64]:
		for _, dp := range d.DataPoints {
			total += dp.Value
		}
	default:
		t.Fatalf("%s is a %T", name, d)
	}
	return total
}

// assertAccounted holds the connector to its promise about what came in.
func (h harness) assertAccounted(t *testing.T) {
	t.Helper()
	assert.Equal(t, h.value(t, "request_spans"),
		h.value(t, "settled")+h.value(t, "unresolved")+h.value(t, "duplicates")+h.value(t, "held"),
		"request_spans = settled + unresolved + duplicates + held")
}

func (h harness) messages() []string {
	var out []string
	for _, e := range h.logs.All() {
		out = append(out, e.Message)
	}
	return out
}

func point(n int64, attrs ...attribute.KeyValue) []metricdata.DataPoint[int64] {
	return []metricdata.DataPoint[int64]{{Value: n, Attributes: attribute.NewSet(attrs...)}}
}

// gate is a consumer of logs and metrics that refuses as long as it is told to.
type gate struct {
	mu      sync.Mutex
	err     error
	records consumertest.LogsSink
	metrics consumertest.MetricsSink
}

func (*gate) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (g *gate) refuse(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

func (g *gate) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		ld.ResourceLogs().RemoveIf(func(plog.ResourceLogs) bool { return true }) // it may do what it likes with what it was given
		return g.err
	}
	return g.records.ConsumeLogs(ctx, ld)
}

func (g *gate) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return g.err
	}
	return g.metrics.ConsumeMetrics(ctx, md)
}

// bySpan counts the records that came through, by the span that they are about.
func (g *gate) bySpan() map[pcommon.SpanID]int {
	out := map[pcommon.SpanID]int{}
	for _, ld := range g.records.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					out[lr.SpanID()]++
				}
			}
		}
	}
	return out
}

// engineSpan is a batch of one request that an engine finished; n makes its ids.
func engineSpan(service string, n uint32) ptrace.Traces {
	td, s := span(service, n)
	s.SetName("llm_request")
	s.SetKind(ptrace.SpanKindServer)
	a := s.Attributes()
	a.PutStr("gen_ai.request.id", "chatcmpl-"+s.SpanID().String())
	a.PutDouble("gen_ai.latency.time_in_queue", 0.1)
	a.PutDouble("gen_ai.latency.time_to_first_token", 0.3)
	a.PutDouble("gen_ai.latency.e2e", 0.9)
	a.PutInt("gen_ai.usage.prompt_tokens", 10)
	a.PutInt("gen_ai.usage.completion_tokens", 5)
	return td
}

// clientSpan is a batch of one call that a client made; what is below it is not in it.
func clientSpan(service string, n uint32) ptrace.Traces {
	td, s := span(service, n)
	s.SetName("chat")
	s.SetKind(ptrace.SpanKindClient)
	s.Attributes().PutStr("gen_ai.operation.name", "chat")
	s.Attributes().PutStr("gen_ai.request.model", "tiny-llama")
	s.Attributes().PutInt("gen_ai.usage.input_tokens", 10)
	s.Attributes().PutInt("gen_ai.usage.output_tokens", 5)
	return td
}

func span(service string, n uint32) (ptrace.Traces, ptrace.Span) {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetTraceID(pcommon.TraceID{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n), 15: 1})
	s.SetSpanID(pcommon.SpanID{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n), 7: 1})
	s.SetStartTimestamp(1_796_045_488_000_000_000)
	s.SetEndTimestamp(1_796_045_489_000_000_000)
	return td, s
}
