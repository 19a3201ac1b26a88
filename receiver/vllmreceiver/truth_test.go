package vllmreceiver

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// truth is what a client saw of one request while an engine was recorded.
type truth struct {
	Scenario     string `json:"scenario"`
	Status       int    `json:"status"`
	N            int    `json:"n"`
	InputTokens  int    `json:"prompt_tokens"`
	OutputTokens int    `json:"completion_tokens"`
	Finished     int    `json:"finished"`
	Aborted      bool   `json:"aborted"`
}

func clientSaw(t *testing.T, name string, without ...string) (input, output, finished float64) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "truth", name))
	require.NoError(t, err)
	var all []truth
	require.NoError(t, json.Unmarshal(b, &all))
next:
	for _, r := range all {
		for _, w := range without {
			if r.Scenario == w {
				continue next
			}
		}
		input += float64(r.InputTokens * r.N) // every sequence of n counts its prompt
		output += float64(r.OutputTokens)
		finished += float64(r.Finished)
	}
	return input, output, finished
}

// totals sums a metric over all its points: the value of a counter, the count and sum of a histogram.
func totals(md pmetric.Metrics, name string) (value, sum float64) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != name {
					continue
				}
				switch m.Type() {
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						value += float64(p.IntValue()) + p.DoubleValue()
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						value += float64(p.Count())
						sum += p.Sum()
					}
				}
			}
		}
	}
	return value, sum
}

// TestTotalsAreWhatTheClientSaw compares recorded pages with the usage their engines answered.
func TestTotalsAreWhatTheClientSaw(t *testing.T) {
	tests := []struct {
		page, truth string
		without     []string // scenarios that came after the page
		// Tokens and requests the client was not told of.
		input, output, finished float64
		started                 float64 // requests that got a first token and were not finished
	}{
		{page: "vllm-0.9.2.post2-detailed-end.prom", truth: "vllm-0.9.2.post2-detailed.json", without: []string{"abort", "n3"}},
		{page: "vllm-0.20.2-end.prom", truth: "vllm-0.20.2.json", without: []string{"abort", "n3"}},
		// The abort: its prompt of 20 tokens and 2 tokens that were generated before it; it never finishes.
		{page: "vllm-0.20.2-afterabort.prom", truth: "vllm-0.20.2.json", without: []string{"n3"}, input: 20, output: 2, started: 1},
		// n=3 makes a warm-up sequence that repeats the prompt; the abort had a prompt of 21 tokens and got 174.
		{page: "sglang-0.5.23-end.prom", truth: "sglang-0.5.23.json", input: 21 + 21, output: 174, finished: math.NaN()},
		// These two answer n=3 with one sequence. The aborts had a prompt of 21 tokens and got 61 and 59.
		{page: "dynamo-1.6.1-frontend-end.prom", truth: "dynamo-1.6.1.json", input: 21 - 2*21, output: 61, finished: math.NaN()},
		{page: "llama.cpp-b11434-end.prom", truth: "llama.cpp-b11434.json", input: 21 - 2*21, output: 59, finished: math.NaN()},
	}
	for _, tt := range tests {
		t.Run(tt.page, func(t *testing.T) {
			md := scrapeOnce(t, readPage(t, filepath.Join("testdata/pages", tt.page)), nil)
			input, output, finished := clientSaw(t, tt.truth, tt.without...)
			got, _ := totals(md, "llm.engine.input_tokens")
			assert.Equal(t, input+tt.input, got)
			got, _ = totals(md, "llm.engine.output_tokens")
			assert.Equal(t, output+tt.output, got)
			if math.IsNaN(tt.finished) {
				return
			}
			got, _ = totals(md, "llm.engine.requests")
			assert.Equal(t, finished, got)
			got, _ = totals(md, "llm.engine.time_to_first_token")
			assert.Equal(t, finished+tt.started, got)
			started, _ := totals(md, "llm.engine.requests.started")
			assert.Equal(t, tt.started, started-finished, "started less finished less running is what was cancelled")
		})
	}
}

// TestPagesAgreeWithSpans is the cross-check on real traffic: the spans and the page of one run of vLLM 0.20.2. Token totals agree exactly;
// durations agree too, since both come from the same figures of the engine.
func TestPagesAgreeWithSpans(t *testing.T) {
	md := scrapeOnce(t, readPage(t, "testdata/pages/vllm-0.20.2-end.prom"), nil)
	spans, sums := 0.0, map[string]float64{}
	files, err := filepath.Glob("testdata/traces/vllm-0.20.2-*.traces.jsonl")
	require.NoError(t, err)
	require.Len(t, files, 7)
	for _, f := range files {
		for line := range strings.SplitSeq(strings.TrimSpace(readPage(t, f)), "\n") {
			td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(line))
			require.NoError(t, err)
			for _, rs := range td.ResourceSpans().All() {
				for _, ss := range rs.ScopeSpans().All() {
					for _, s := range ss.Spans().All() {
						if s.Name() != "llm_request" {
							continue
						}
						spans++
						for k, v := range s.Attributes().All() {
							switch k {
							case "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens":
								sums[k] += float64(v.Int())
							default:
								if strings.HasPrefix(k, "gen_ai.latency.") {
									sums[k] += v.Double()
								}
							}
						}
					}
				}
			}
		}
	}
	// One request was sent with an unsampled traceparent: the page counts it, and no span does.
	const unsampledInput, unsampledOutput = 18, 10
	input, _ := totals(md, "llm.engine.input_tokens")
	assert.Equal(t, input, sums["gen_ai.usage.prompt_tokens"]+unsampledInput)
	output, _ := totals(md, "llm.engine.output_tokens")
	assert.Equal(t, output, sums["gen_ai.usage.completion_tokens"]+unsampledOutput)
	for metric, key := range map[string]string{
		"llm.engine.time_to_first_token": "gen_ai.latency.time_to_first_token",
		"llm.engine.request.duration":    "gen_ai.latency.e2e",
		"llm.engine.queue.duration":      "gen_ai.latency.time_in_queue",
		"llm.engine.prefill.duration":    "gen_ai.latency.time_in_model_prefill",
		"llm.engine.decode.duration":     "gen_ai.latency.time_in_model_decode",
		"llm.engine.inference.duration":  "gen_ai.latency.time_in_model_inference",
	} {
		count, sum := totals(md, metric)
		assert.Equal(t, spans+1, count, metric)
		assert.InEpsilon(t, sum, sums[key], 0.05, "%s: page %v, spans %v", metric, sum, sums[key])
	}
}
