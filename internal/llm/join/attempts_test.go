package join

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// plainGateway is an HTTP server's span on an LLM route.
func plainGateway(span byte) Span {
	r := &request.Request{
		Layer: request.LayerGateway, LayerOnly: true, Dialect: "http", Operation: "chat", Source: &request.Source{Service: "gw"},
		TraceID: pcommon.TraceID{1}, SpanID: pcommon.SpanID{span},
	}
	return Span{TraceID: r.TraceID, SpanID: r.SpanID, Request: r}
}

func TestAttemptsOfOneCallAreOneRequestInAWholeTrace(t *testing.T) {
	batch := func() []Span {
		return []Span{plainGateway(1), pdSide(2, 1, 64, 5, 1000, "chatcmpl-a"), pdSide(3, 1, 64, 20, 2000, "chatcmpl-b")}
	}
	for _, c := range []struct {
		whole    bool
		requests int
	}{
		{true, 1},
		{false, 2}, // spans that come one by one cannot show it
	} {
		j := New(Config{Window: 10 * time.Second, MaxSpans: 100})
		requests, out := 0, int64(0)
		for _, l := range j.Add(time.Unix(1, 0), batch(), c.whole).Requests {
			if l.First {
				requests++
			}
			out += l.OutputTokens.Or(0)
		}
		assert.Equal(t, c.requests, requests, "whole: %v", c.whole)
		assert.EqualValues(t, 25, out, "every token that was made counts")
	}
}

func TestCallsOfAnAgentAreRequestsOfTheirOwn(t *testing.T) {
	j := New(Config{Window: 10 * time.Second, MaxSpans: 100})
	agent := Span{TraceID: pcommon.TraceID{1}, SpanID: pcommon.SpanID{1}}
	res := j.Add(time.Unix(1, 0), []Span{agent, pdSide(2, 1, 64, 5, 1000, "chatcmpl-a"), pdSide(3, 1, 64, 20, 2000, "chatcmpl-b")}, true)
	assert.Len(t, res.Requests, 2)
	assert.True(t, res.Requests[0].First && res.Requests[1].First)
}
