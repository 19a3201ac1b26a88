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

// A span without an id is over nothing: not over roots, whose parent has none either.
func TestASpanWithoutAnIDHidesNoRoot(t *testing.T) {
	client := func(span byte) Span {
		r := &request.Request{
			Layer: request.LayerClient, Dialect: "otel", Operation: "chat", Source: &request.Source{Service: "app"}, Status: request.StatusOK,
			TraceID: pcommon.TraceID{1}, InputTokens: request.Some(int64(65)), OutputTokens: request.Some(int64(30)),
		}
		if span != 0 {
			r.SpanID = pcommon.SpanID{span}
		}
		return Span{TraceID: r.TraceID, SpanID: r.SpanID, Request: r}
	}
	for _, ids := range [][2]byte{{0, 1}, {1, 0}, {1, 2}} {
		j := New(Config{Window: 10 * time.Second, MaxSpans: 100})
		in, requests := int64(0), 0
		count := func(res Result) {
			for i := range res.Requests {
				in += res.Requests[i].InputTokens.Or(0)
				requests++
			}
		}
		count(j.Add(time.Unix(1, 0), []Span{client(ids[0]), client(ids[1])}, false))
		j.Expire(time.Unix(60, 0), count)
		assert.EqualValues(t, 130, in, "%v", ids)
		assert.Equal(t, 2, requests, "%v", ids)
	}
}
