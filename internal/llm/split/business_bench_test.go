package split

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/dimension"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/quality"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/slo"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/warmup"
)

// twoLayers is n traces of a gateway's span and a vLLM span below it.
func twoLayers(n int) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("team", "search")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for i := range n {
		for layer := range 2 {
			s := spans.AppendEmpty()
			s.SetTraceID(pcommon.TraceID{1, byte(i >> 8), byte(i)})
			s.SetSpanID(pcommon.SpanID{byte(layer + 1), byte(i >> 8), byte(i)})
			s.SetKind(ptrace.SpanKindServer)
			s.SetStartTimestamp(pcommon.Timestamp(1_796_045_488_000_000_000 + layer*1e6))
			s.SetEndTimestamp(pcommon.Timestamp(1_796_045_489_000_000_000 - layer*1e6))
			a := s.Attributes()
			if layer == 0 {
				s.SetName("POST /v1/chat/completions")
				a.PutStr("http.request.method", "POST")
				a.PutStr("url.path", "/v1/chat/completions")
				a.PutInt("http.response.status_code", 200)
				a.PutEmptySlice("http.request.header.x_team").AppendEmpty().SetStr("search")
				continue
			}
			s.SetName("llm_request")
			s.SetParentSpanID(pcommon.SpanID{1, byte(i >> 8), byte(i)})
			a.PutStr("gen_ai.request.id", "chatcmpl-0123456789abcdef")
			a.PutStr("gen_ai.request.model", "Qwen/Qwen3-8B")
			a.PutInt("gen_ai.usage.prompt_tokens", 1000)
			a.PutInt("gen_ai.usage.completion_tokens", 200)
			a.PutDouble("gen_ai.latency.time_to_first_token", .2)
			a.PutDouble("gen_ai.latency.e2e", .9)
			a.PutDouble("gen_ai.latency.time_in_queue", .01)
			a.PutDouble("gen_ai.latency.time_in_model_prefill", .1)
			a.PutDouble("gen_ai.latency.time_in_model_decode", .7)
		}
	}
	return td
}

// What each part adds to a batch of 512 spans; divide by 512 for a span.
func BenchmarkBusiness(b *testing.B) {
	table, err := cost.NewTable([]cost.Entry{{Model: "Qwen/*", Price: cost.Price{Currency: "USD", Input: 500_000, Output: 1_500_000}}})
	if err != nil {
		b.Fatal(err)
	}
	dims, err := dimension.New([]dimension.Config{
		{Name: "team", From: []string{"header.x-team", "resource.team"}, Default: "unknown", Max: 200},
		{Name: "tier", From: []string{"span.tier", "baggage.tier"}, Default: "unknown", Max: 200},
	})
	if err != nil {
		b.Fatal(err)
	}
	all := Business{
		Objectives: slo.Objectives{{Model: "*", TTFT: 1, TPOT: .05, E2E: 30}}, Prices: func() *cost.Table { return table }, Dimensions: dims,
		Quality: quality.New(quality.Config{Repetition: true}), Oversize: 100_000,
		Warmup: warmup.New(warmup.Config{Requests: 3, Max: 1000}),
	}
	for _, c := range []struct {
		name string
		b    Business
	}{
		{"none", Business{}},
		{"objectives", Business{Objectives: all.Objectives}},
		{"prices", Business{Prices: all.Prices}},
		{"dimensions", Business{Dimensions: all.Dimensions}},
		{"quality-warmup-oversize", Business{Quality: all.Quality, Warmup: all.Warmup, Oversize: all.Oversize}},
		{"all", all},
	} {
		b.Run(c.name, func(b *testing.B) {
			in := twoLayers(256)
			now := time.Unix(1_796_045_490, 0)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				td := ptrace.NewTraces()
				in.CopyTo(td)
				b.StartTimer()
				Traces(td, Options{Business: c.b, Now: now})
			}
		})
	}
}
