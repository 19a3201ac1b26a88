package join

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// pdSide is one engine span of a request that was prefilled on one engine and decoded on another.
func pdSide(span, parent byte, maxTokens, output int64, start uint64, id string) Span {
	r := &request.Request{
		Layer: request.LayerEngine, Dialect: "vllm", Source: &request.Source{Service: "vllm"}, Status: request.StatusOK,
		TraceID: pcommon.TraceID{1}, SpanID: pcommon.SpanID{span}, ParentID: pcommon.SpanID{parent}, RequestID: id,
		Start: pcommon.Timestamp(start), End: pcommon.Timestamp(start + 100), MaxTokens: maxTokens,
		InputTokens: request.Some(int64(50)), OutputTokens: request.Some(output),
		TTFT: request.Some(.1), E2E: request.Some(.1 * float64(output)),
	}
	return Span{TraceID: r.TraceID, SpanID: r.SpanID, ParentID: r.ParentID, Request: r}
}

func TestADisaggregatedRequestIsOneWhateverSideComesFirst(t *testing.T) {
	prefill, decode := pdSide(2, 1, 1, 1, 1000, "chatcmpl-a"), pdSide(3, 2, 64, 20, 2000, "chatcmpl-a")
	for name, order := range map[string][][]Span{
		"together":      {{prefill, decode}},
		"prefill first": {{prefill}, {decode}},
		"decode first":  {{decode}, {prefill}},
	} {
		t.Run(name, func(t *testing.T) {
			j := New(Config{Window: 10 * time.Second, MaxSpans: 100})
			requests, in, out := 0, int64(0), int64(0)
			var last Logical
			for _, batch := range order {
				for _, l := range j.Add(time.Unix(1, 0), batch, false).Requests {
					if l.First {
						requests++
					}
					in += l.InputTokens.Or(0)
					out += l.OutputTokens.Or(0)
					last = l
				}
			}
			assert.Equal(t, 1, requests)
			assert.EqualValues(t, 50, in)
			assert.EqualValues(t, 20, out, "the prefill's token is the decode's first")
			assert.EqualValues(t, 1000, last.Start)
			assert.InDelta(t, 2, last.E2E.Value, 1e-9, "the side that answered speaks for the request")
		})
	}
}

func TestOneTokenAnswersAreNoPairs(t *testing.T) {
	j := New(Config{Window: 10 * time.Second, MaxSpans: 100})
	res := j.Add(time.Unix(1, 0), []Span{pdSide(2, 1, 1, 1, 1000, "cmpl-a-0"), pdSide(3, 1, 1, 1, 1000, "cmpl-a-1"), pdSide(4, 1, 64, 9, 1000, "cmpl-b-0")}, false)
	assert.Len(t, res.Requests, 2, "two prompts of one call, and another call")
	assert.EqualValues(t, 2, res.Requests[0].OutputTokens.Value)
}
