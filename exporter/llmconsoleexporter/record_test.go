package llmconsoleexporter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-llm/otelcol-llm/exporter/llmconsoleexporter/internal/line"
)

func TestReadsEveryFigure(t *testing.T) {
	rec := plog.NewLogRecord()
	rec.SetObservedTimestamp(1_000_000_000)
	for k, v := range map[string]float64{
		"llmspan.ingress.duration": 1, "llmspan.admission.duration": 2, "llmspan.queue.duration": 3, "llmspan.prefill.duration": 4,
		"llmspan.kv_transfer.duration": 5, "llmspan.decode.duration": 6, "llmspan.return.duration": 7,
		"llmspan.ttft": 8, "llmspan.tpot": 9, "llmspan.e2e": 10, "llmspan.user.ttft": 11, "llmspan.user.e2e": 12, "llmspan.cost": 13,
	} {
		rec.Attributes().PutDouble(k, v)
	}
	for k, v := range map[string]int64{
		"gen_ai.usage.input_tokens": 14, "gen_ai.usage.output_tokens": 15, "gen_ai.usage.cache_read.input_tokens": 16,
	} {
		rec.Attributes().PutInt(k, v)
	}
	for k, v := range map[string]string{
		"gen_ai.request.model": "m", "llmspan.status": "error", "error.type": "timeout", "llmspan.cost.currency": "EUR",
	} {
		rec.Attributes().PutStr(k, v)
	}
	rec.Attributes().PutEmptySlice("llmspan.slo.violated").AppendEmpty().SetStr("ttft")
	rec.Attributes().PutEmptySlice("llmspan.quality").AppendEmpty().SetStr("empty")

	assert.Equal(t, line.Request{
		End: time.Unix(1, 0).UTC(), Model: "m", Status: "error", ErrorType: "timeout",
		Stages: []line.Stage{
			{Name: "ingress", Seconds: line.Some(1.0)},
			{Name: "admission", Seconds: line.Some(2.0)},
			{Name: "queue", Seconds: line.Some(3.0)},
			{Name: "prefill", Seconds: line.Some(4.0)},
			{Name: "kv_transfer", Seconds: line.Some(5.0)},
			{Name: "decode", Seconds: line.Some(6.0)},
			{Name: "return", Seconds: line.Some(7.0)},
		},
		TTFT: line.Some(8.0), TPOT: line.Some(9.0), E2E: line.Some(10.0), UserTTFT: line.Some(11.0), UserE2E: line.Some(12.0),
		Input: line.Some[int64](14), Output: line.Some[int64](15), Cached: line.Some[int64](16),
		Cost: line.Some(13.0), Currency: "EUR", Missed: []string{"ttft"}, Quality: []string{"empty"},
	}, requestOf(rec, pcommon.NewMap(), time.UTC))
}

func TestAnAttributeOfTheWrongTypeIsNotTold(t *testing.T) {
	rec := plog.NewLogRecord()
	a := rec.Attributes()
	a.PutStr("llmspan.ttft", "0.1")
	a.PutInt("llmspan.e2e", 2) // a whole number of seconds is a number
	a.PutBool("llmspan.queue.duration", true)
	a.PutDouble("gen_ai.usage.input_tokens", 1.5)
	a.PutInt("gen_ai.request.model", 7)
	a.PutStr("llmspan.quality", "empty")
	a.PutEmptySlice("llmspan.slo.violated").AppendEmpty().SetInt(3)
	assert.Equal(t, line.Request{E2E: line.Some(2.0), Stages: []line.Stage{}}, requestOf(rec, pcommon.NewMap(), time.UTC))
}

func TestTheServiceStandsInForAModelThatIsNotTold(t *testing.T) {
	attrs, resource := pcommon.NewMap(), pcommon.NewMap()
	assert.Empty(t, modelOf(attrs, resource))
	resource.PutStr("service.name", "vllm-chat")
	assert.Equal(t, "(vllm-chat)", modelOf(attrs, resource))
	attrs.PutStr("gen_ai.request.model", "m")
	assert.Equal(t, "m", modelOf(attrs, resource))
}
