package engine

// microsecond converts Triton's counters (names end in _us, sums of µs: triton-inference-server/server docs/user_guide/metrics.md) to seconds.
const microsecond = 1e-6

// tritonRules are what every Triton server prints, whatever its backend. Durations are two counters, so the histograms have a sum and a count
// and no bounds. A model of an ensemble is a series of its own: a request through three models is counted three times, once for each.
func tritonRules() []Rule {
	us := func(family string) []Source {
		return []Source{one(Term{Family: family, Part: PartPair, Count: "nv_inference_request_success", Scale: microsecond})}
	}
	failed := func(keep func(string) (string, bool)) []Source {
		return []Source{one(Term{Family: "nv_inference_request_failure", Keep: []Keep{{Label: "reason", Attr: AttrFinishReason, Map: keep}}})}
	}
	return []Rule{
		{Metric: Requests, From: family("nv_inference_request_success")},
		{Metric: Requests, From: failed(tritonFailure)},
		{
			Metric: RequestsRejected, Const: []Attr{{AttrReason, "rejected"}},
			From: []Source{one(Term{Family: "nv_inference_request_failure", Where: []Attr{{"reason", "REJECTED"}}})},
		},
		{Metric: RequestDuration, From: us("nv_inference_request_duration_us")},
		{Metric: QueueDuration, From: us("nv_inference_queue_duration_us")},
		{Metric: TimeToFirstToken, From: []Source{one(Term{Family: "nv_inference_first_response_histogram_ms", Scale: 1e-3})}},
	}
}

var tritonIgnored = []string{
	"nv_inference_*", "nv_gpu_*", "nv_cpu_*", "nv_cache_*", "nv_energy_consumption", "nv_pinned_memory_*", "nv_model_*", "nv_ensemble_*",
}

// tritonFailure maps the reason of a failure; rejected requests have a metric of their own. Releases before 24.02 print no reason.
func tritonFailure(reason string) (string, bool) {
	switch reason {
	case "REJECTED":
		return "", false
	case "CANCELED":
		return "abort", true
	}
	return "error", true
}

func tritonTable() *Table {
	return &Table{
		Name: "triton", Title: "Triton", Note: "Any backend without metrics of its own. Counters of microseconds become sums and counts.",
		Prefixes: []string{"nv_"},
		Model:    []string{"model"},
		Required: [][]string{{"nv_inference_request_success"}},
		Rules:    append([]Rule{{Metric: QueueRequests, From: family("nv_inference_pending_request_count")}}, tritonRules()...),
		Ignored:  tritonIgnored,
	}
}

// tritonTRTLLMTable: one family carries many meanings (tensorrtllm_backend README), told apart by a label; their sum is nonsense.
//
// nv_trt_llm_v1_metrics and nv_trt_llm_inflight_batcher_metrics are gauges of the current iteration, so their token figures are no totals and
// are not mapped.
func tritonTRTLLMTable() *Table {
	request := func(kind string) Source {
		return one(Term{Family: "nv_trt_llm_request_metrics", Where: []Attr{{"request_type", kind}}})
	}
	const blocks = "nv_trt_llm_kv_cache_block_metrics"
	return &Table{
		Name: "triton_trtllm", Title: "Triton, TRT-LLM backend", Note: "The `tensorrt_llm` model may stay at 0 requests: watch the ensemble or BLS model in front of it.",
		Prefixes: []string{"nv_"},
		Model:    []string{"model"},
		Required: [][]string{{"nv_trt_llm_request_metrics"}},
		Rules: append([]Rule{
			{Metric: ActiveSequences, From: []Source{request("active"), request("scheduled")}},
			{Metric: QueueRequests, From: []Source{request("waiting"), one(Term{Family: "nv_inference_pending_request_count"})}},
			{Metric: KVCacheUsage, From: []Source{
				{
					Func:  twoOf(blocks, "kv_cache_block_type", "used", "max", func(a, b float64) float64 { return a / b }),
					Reads: []string{blocks}, Doc: "`" + blocks + "`: `used` ÷ `max`",
				},
				one(Term{Family: blocks, Where: []Attr{{"kv_cache_block_type", "fraction"}}, Max: true}),
			}},
			{Metric: KVCacheCapacity, From: []Source{
				{
					Func:  twoOf(blocks, "kv_cache_block_type", "max", "tokens_per", func(a, b float64) float64 { return a * b }),
					Reads: []string{blocks}, Doc: "`" + blocks + "`: `max` × `tokens_per`",
				},
			}},
			{Metric: KVTransferTime, From: []Source{{
				Func:  tritonTransfer,
				Reads: []string{"nv_trt_llm_disaggregated_serving_metrics"}, Doc: "`nv_trt_llm_disaggregated_serving_metrics`: `kv_cache_transfer_ms` over `request_count`",
			}}},
		}, tritonRules()...),
		Ignored: append([]string{"nv_trt_llm_*"}, tritonIgnored...),
	}
}

// plain is a gauge of no particular range, for figures that only go into others.
var plain = &Metric{Kind: Gauge}

// twoOf computes a value from two series of one family that differ in one label.
func twoOf(name, label, first, second string, f func(a, b float64) float64) func(*view) []Point {
	return func(v *view) []Point {
		a := v.terms(plain, []Term{{Family: name, Where: []Attr{{label, first}}}}, nil)
		b := v.terms(plain, []Term{{Family: name, Where: []Attr{{label, second}}}}, nil)
		var out []Point
		for _, x := range a {
			for _, y := range b {
				if attrsEqual(x.Attrs, y.Attrs) && y.Value > 0 {
					x.Value = f(x.Value, y.Value)
					out = append(out, x)
				}
			}
		}
		return out
	}
}

func tritonTransfer(v *view) []Point {
	const name = "nv_trt_llm_disaggregated_serving_metrics"
	a := v.terms(plain, []Term{{Family: name, Where: []Attr{{"disaggregated_serving_type", "kv_cache_transfer_ms"}}}}, nil)
	b := v.terms(plain, []Term{{Family: name, Where: []Attr{{"disaggregated_serving_type", "request_count"}}}}, nil)
	var out []Point
	for _, x := range a {
		for _, y := range b {
			if attrsEqual(x.Attrs, y.Attrs) && y.Value > 0 {
				x.Hist = &Hist{Sum: x.Value * 1e-3, Count: uint64(y.Value)}
				out = append(out, x)
			}
		}
	}
	return out
}
