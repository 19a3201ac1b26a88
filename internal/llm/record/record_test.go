package record

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Unix(1_700_000_100, 0).UTC()

func write(qs ...*join.Logical) plog.Logs {
	ld := plog.NewLogs()
	w := NewWriter(ld, now)
	for _, q := range qs {
		w.Write(q)
	}
	return ld
}

func one(t *testing.T, ld plog.Logs) plog.LogRecord {
	t.Helper()
	require.Equal(t, 1, ld.LogRecordCount())
	return ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
}

func TestRecord(t *testing.T) {
	q := &join.Logical{First: true, Sequences: 1, TPOT: request.Some(.01)}
	q.Request = request.Request{
		Layer: request.LayerEngine, Dialect: "vllm", Source: &request.Source{Service: "svc", Namespace: "ns", Environment: "prod"},
		TraceID: pcommon.TraceID{1}, SpanID: pcommon.SpanID{2}, Start: 1_000_000_000, End: 3_000_000_000,
		RequestID: "chatcmpl-1", Model: "tiny", ResponseModel: "tiny-2", Operation: "chat", Provider: "vllm",
		InputTokens: request.Some[int64](10), OutputTokens: request.Some[int64](5), CachedTokens: request.Some[int64](4),
		CacheWriteToken: request.Some[int64](2), ReasoningTokens: request.Some[int64](1),
		Ingress: request.Some(.1), Admission: request.Some(.2), Queue: request.Some(.3), KVTransfer: request.Some(.4), Prefill: request.Some(.5),
		Decode: request.Some(.6), Return: request.Some(.7), TTFT: request.Some(.8), E2E: request.Some(.9), UserTTFT: request.Some(1.1), UserE2E: request.Some(1.2),
		ClockSkew: request.Some(.05), Status: request.StatusOK, FinishReason: "stop", Beam: true, Invalid: []string{"queue", "e2e"},
	}
	ld := write(q)
	lr := one(t, ld)
	assert.Equal(t, "llm.request", lr.EventName())
	assert.Equal(t, pcommon.Timestamp(3_000_000_000), lr.Timestamp(), "the end of the request")
	assert.Equal(t, now, lr.ObservedTimestamp().AsTime())
	assert.Equal(t, plog.SeverityNumberInfo, lr.SeverityNumber())
	assert.Equal(t, "INFO", lr.SeverityText())
	assert.Equal(t, pcommon.TraceID{1}, lr.TraceID())
	assert.Equal(t, pcommon.SpanID{2}, lr.SpanID())
	assert.Equal(t, pcommon.ValueTypeEmpty, lr.Body().Type(), "no text")
	assert.Equal(t, map[string]any{
		"gen_ai.request.model": "tiny", "gen_ai.response.model": "tiny-2", "gen_ai.operation.name": "chat", "gen_ai.provider.name": "vllm",
		"gen_ai.request.id": "chatcmpl-1", "llmspan.dialect": "vllm", "llmspan.layer": "engine",
		"gen_ai.usage.input_tokens": int64(10), "gen_ai.usage.output_tokens": int64(5), "gen_ai.usage.cache_read.input_tokens": int64(4),
		"gen_ai.usage.cache_creation.input_tokens": int64(2), "gen_ai.usage.reasoning.output_tokens": int64(1), "llm.total_tokens": int64(15),
		"llmspan.ingress.duration": .1, "llmspan.admission.duration": .2, "llmspan.queue.duration": .3, "llmspan.kv_transfer.duration": .4,
		"llmspan.prefill.duration": .5, "llmspan.decode.duration": .6, "llmspan.return.duration": .7, "llmspan.ttft": .8, "llmspan.tpot": .01,
		"llmspan.e2e": .9, "llmspan.user.ttft": 1.1, "llmspan.user.e2e": 1.2, "llmspan.clock_skew": .05,
		"llmspan.status": "ok", "gen_ai.response.finish_reasons": []any{"stop"}, "llmspan.beam": true, "llmspan.invalid": []any{"queue", "e2e"},
	}, lr.Attributes().AsRaw())
	assert.Equal(t, map[string]any{"service.name": "svc", "service.namespace": "ns", "deployment.environment.name": "prod"}, ld.ResourceLogs().At(0).Resource().Attributes().AsRaw())
	assert.Equal(t, ScopeName, ld.ResourceLogs().At(0).ScopeLogs().At(0).Scope().Name())
}

func TestWhatIsUnknownIsAbsent(t *testing.T) {
	q := &join.Logical{First: true}
	q.Request = request.Request{Source: &request.Source{}, Layer: request.LayerClient, Dialect: "semconv"}
	assert.Equal(t, map[string]any{"llmspan.dialect": "semconv", "llmspan.layer": "client", "llmspan.status": "unknown"}, one(t, write(q)).Attributes().AsRaw())

	q.Start, q.End = 1_000_000_000, 2_500_000_000
	assert.InDelta(t, 1.5, one(t, write(q)).Attributes().AsRaw()["llmspan.e2e"], 1e-12, "the span's own length")
	q.OutputTokens = request.Some[int64](3)
	assert.EqualValues(t, 3, one(t, write(q)).Attributes().AsRaw()["llm.total_tokens"])
}

func TestAFailureIsAnError(t *testing.T) {
	q := &join.Logical{}
	q.Request = request.Request{Source: &request.Source{}, Status: request.StatusError, ErrorType: "500"}
	lr := one(t, write(q))
	assert.Equal(t, plog.SeverityNumberError, lr.SeverityNumber())
	assert.Equal(t, "ERROR", lr.SeverityText())
	assert.Equal(t, "500", lr.Attributes().AsRaw()["error.type"])

	q.Status = request.StatusCancelled
	lr = one(t, write(q))
	assert.Equal(t, plog.SeverityNumberInfo, lr.SeverityNumber())
	assert.NotContains(t, lr.Attributes().AsRaw(), "error.type", "an error type without an error")
}

func TestARecordSaysWhatTheBusinessAsks(t *testing.T) {
	amount, _ := cost.FromFloat(0.0014675)
	saved, _ := cost.FromFloat(0.00036)
	price, err := cost.ParsePrice("USD input=0.5 output=1.5 cached_input=0.05")
	require.NoError(t, err)
	q := &join.Logical{First: true, Charge: join.Charge{Amount: amount, Saved: saved, Currency: "USD", Known: true}}
	q.Request = request.Request{Source: &request.Source{}, Layer: request.LayerEngine, Dialect: "vllm", Status: request.StatusOK}
	q.Business = request.Business{
		Outcome: request.OutcomeMissed, Violated: request.ViolatedTTFT | request.ViolatedUserTTFT, Price: price,
		Quality: request.IssueTruncated | request.IssueRepetition, Warmup: true, Oversize: true, ColdStart: request.Some(31.5),
		Dimensions: []request.Dimension{{Name: "team", Value: "search"}, {Name: "tier", Value: "unknown", Default: true}},
	}
	lr := one(t, write(q))
	assert.Equal(t, plog.SeverityNumberWarn, lr.SeverityNumber(), "a missed objective")
	assert.Equal(t, map[string]any{
		"llmspan.dialect": "vllm", "llmspan.layer": "engine", "llmspan.status": "ok", "llmspan.e2e": 0.,
		"llmspan.slo.outcome": "missed", "llmspan.slo.violated": []any{"ttft", "user_ttft"}, "llmspan.quality": []any{"truncated", "repetition"},
		"llmspan.cost": 0.0014675, "llmspan.cost.exact": "0.0014675", "llmspan.cost.saved.exact": "0.00036", "llmspan.cost.currency": "USD",
		"llmspan.price": "USD input=0.5 output=1.5 cached_input=0.05", "llmspan.warmup": true, "llmspan.oversize": true,
		"llmspan.cold_start.duration": 31.5, "team": "search", "tier": "unknown",
	}, withE2E(lr.Attributes().AsRaw()))

	q.First = false
	later := one(t, write(q)).Attributes().AsRaw()
	assert.Equal(t, true, later["llm.request.part"], "a number of requests leaves it out")
	assert.NotContains(t, later, "llmspan.cold_start.duration", "it was said of the request")
}

// withE2E is what a record says, with the length that a span without instants does not have.
func withE2E(m map[string]any) map[string]any { m["llmspan.e2e"] = 0.; return m }

func TestIDsAreIDs(t *testing.T) {
	for _, c := range []struct{ request, response, want string }{
		{"chatcmpl-1", "x", "chatcmpl-1"},
		{"", "chatcmpl-2", "chatcmpl-2"},
		{"", "", ""},
		{"two words", "", ""},
		{"naïve", "", ""},
		{"a\nb", "", ""},
		{strings.Repeat("a", 128), "", strings.Repeat("a", 128)},
		{strings.Repeat("a", 129), "", ""},
	} {
		q := &join.Logical{}
		q.Request = request.Request{Source: &request.Source{}, RequestID: c.request, ResponseID: c.response}
		got, _ := one(t, write(q)).Attributes().AsRaw()["gen_ai.request.id"].(string)
		assert.Equal(t, c.want, got)
	}
}

// Records of one service share a resource, whichever batch their spans came in.
func TestResourcesAreOnePerSource(t *testing.T) {
	of := func(s request.Source) *join.Logical {
		q := &join.Logical{}
		q.Source = &s
		return q
	}
	ld := write(of(request.Source{Service: "a"}), of(request.Source{Service: "b"}), of(request.Source{Service: "a", Model: "m"}), of(request.Source{Service: "a", Namespace: "n"}))
	require.Equal(t, 3, ld.ResourceLogs().Len())
	assert.Equal(t, 2, ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().Len())
}
