package join

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// priced is a span of trace 1 with a usage of 1000 and 100 at $1 and $2 for a million: $0.0012.
func priced(t *testing.T, layer request.Layer, id, parent byte, set func(*request.Request)) Span {
	t.Helper()
	p, err := cost.ParsePrice("USD input=1 output=2")
	require.NoError(t, err)
	r := &request.Request{
		Layer: layer, Source: &request.Source{Service: layer.String()}, TraceID: pcommon.TraceID{1}, SpanID: pcommon.SpanID{id}, Status: request.StatusOK,
		InputTokens: request.Some[int64](1000), OutputTokens: request.Some[int64](100), Start: 1, End: 2,
	}
	if layer == request.LayerEngine {
		r.RequestID = "chatcmpl-1"
	}
	r.Price = p
	if parent != 0 {
		r.ParentID = pcommon.SpanID{parent}
	}
	if set != nil {
		set(r)
	}
	return Span{TraceID: r.TraceID, SpanID: r.SpanID, ParentID: r.ParentID, Request: r}
}

func reported(amount float64) func(*request.Request) {
	return func(r *request.Request) {
		a, _ := cost.FromFloat(amount)
		r.Cost, r.Currency, r.Reported = request.Some(a), "USD", true
	}
}

// charges is what the requests of results cost together, and whether each was counted once.
func charges(t *testing.T, results ...Result) string {
	t.Helper()
	var sum cost.Amount
	first := 0
	for _, res := range results {
		for _, l := range res.Requests {
			sum = sum.Add(l.Charge.Amount)
			if l.First {
				first++
			}
		}
	}
	assert.Equal(t, 1, first, "one request")
	return sum.String()
}

func TestARequestIsChargedOnce(t *testing.T) {
	now := time.Unix(1, 0)
	client, gateway, engine := request.LayerClient, request.LayerGateway, request.LayerEngine
	for _, c := range []struct {
		name    string
		batches [][]Span
		want    string
	}{
		{"an engine and a client in one batch", [][]Span{{priced(t, client, 1, 0, nil), priced(t, engine, 2, 1, nil)}}, "0.0012"},
		{"the engine first", [][]Span{{priced(t, engine, 2, 1, nil)}, {priced(t, client, 1, 0, nil)}}, "0.0012"},
		{"the client first", [][]Span{{priced(t, client, 1, 0, nil)}, {priced(t, engine, 2, 1, nil)}}, "0.0012"},
		{"a client alone", [][]Span{{priced(t, client, 1, 0, nil)}}, "0.0012"},
		{"two sequences, one prompt", [][]Span{{priced(t, engine, 2, 1, nil), priced(t, engine, 3, 1, nil)}}, "0.0014"},
		{"two sequences in batches of their own", [][]Span{{priced(t, engine, 2, 1, nil)}, {priced(t, engine, 3, 1, nil)}}, "0.0014"},
		{"a retry of the sender", [][]Span{{priced(t, engine, 2, 1, nil)}, {priced(t, engine, 2, 1, nil)}}, "0.0012"},
		{"what a gateway says wins", [][]Span{{priced(t, gateway, 1, 0, reported(.5)), priced(t, engine, 2, 1, nil)}}, "0.5"},
		{"once, for two sequences too", [][]Span{{priced(t, gateway, 1, 0, reported(.5)), priced(t, engine, 2, 1, nil)}, {priced(t, engine, 3, 1, nil)}}, "0.5"},
		{"but not when the engine was counted before", [][]Span{{priced(t, engine, 2, 1, nil)}, {priced(t, gateway, 1, 0, reported(.5))}}, "0.0012"},
		{"three spans of a proxy that all say it", [][]Span{{priced(t, gateway, 1, 0, reported(.5)), priced(t, gateway, 2, 1, reported(.5)), priced(t, gateway, 3, 2, nil)}}, "0.5"},
		{
			"a fallback: two models below one gateway", [][]Span{{
				priced(t, gateway, 1, 0, func(r *request.Request) {
					r.InputTokens, r.OutputTokens = request.Tokens{}, request.Tokens{}
				}),
				priced(t, client, 2, 1, func(r *request.Request) { r.ResponseID = "a" }),
				priced(t, client, 3, 1, func(r *request.Request) { r.ResponseID = "b"; r.Price, _ = cost.ParsePrice("USD input=10 output=20") }),
			}}, "0.0132",
		},
		{"a fee for the request, once", [][]Span{
			{priced(t, engine, 2, 1, func(r *request.Request) { r.Price, _ = cost.ParsePrice("USD input=1 output=2 request=0.1") })},
			{priced(t, engine, 3, 1, func(r *request.Request) { r.Price, _ = cost.ParsePrice("USD input=1 output=2 request=0.1") })},
		}, "0.1014"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := New(Config{Window: time.Second, MaxSpans: 100})
			var all []Result
			for _, b := range c.batches {
				all = append(all, j.Add(now, b, false))
			}
			take := func(res Result) { all = append(all, res) }
			j.Expire(now.Add(time.Hour), take)
			j.Drain(take)
			assert.Equal(t, c.want, charges(t, all...))
		})
	}
}

func TestACostThatNobodyCanKnowIsUnknown(t *testing.T) {
	j := New(Config{Window: time.Second, MaxSpans: 100})
	res := j.Add(time.Unix(1, 0), []Span{priced(t, request.LayerEngine, 2, 1, func(r *request.Request) {
		r.InputTokens, r.OutputTokens = request.Tokens{}, request.Tokens{}
	})}, false)
	require.Len(t, res.Requests, 1)
	assert.False(t, res.Requests[0].Charge.Known)
}

// A client's span comes after its engine's: what it knows of the answer is counted once, and not as another request.
func TestQualityThatComesLateIsNoted(t *testing.T) {
	now := time.Unix(1, 0)
	j := New(Config{Window: time.Second, MaxSpans: 100})
	j.Add(now, []Span{priced(t, request.LayerEngine, 3, 2, func(r *request.Request) { r.Quality = request.IssueTruncated })}, false)
	bad := func(r *request.Request) { r.Quality = request.IssueTruncated | request.IssueRepetition }
	res := j.Add(now, []Span{priced(t, request.LayerGateway, 2, 1, bad), priced(t, request.LayerClient, 1, 0, bad)}, false)
	var notes []Logical
	take := func(r Result) {
		assert.Empty(t, r.Requests)
		notes = append(notes, r.Notes...)
	}
	take(res)
	j.Expire(now.Add(1500*time.Millisecond), take)
	j.Drain(take)
	require.Len(t, notes, 1)
	assert.Equal(t, request.IssueRepetition, notes[0].Quality, "truncated was counted with the engine's span")
}

// Two records of one request have keys of their own, so that a store can drop what was sent twice.
func TestALaterPartIsKnownByTheSpanThatBroughtIt(t *testing.T) {
	j := New(Config{Window: time.Second, MaxSpans: 100})
	a := j.Add(time.Unix(1, 0), []Span{priced(t, request.LayerEngine, 2, 1, nil)}, false)
	b := j.Add(time.Unix(1, 0), []Span{priced(t, request.LayerEngine, 3, 1, nil)}, false)
	assert.Equal(t, pcommon.SpanID{2}, a.Requests[0].SpanID)
	assert.Equal(t, pcommon.SpanID{3}, b.Requests[0].SpanID)
	assert.False(t, b.Requests[0].First)
}
