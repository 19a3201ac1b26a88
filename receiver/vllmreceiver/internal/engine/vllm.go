package engine

import (
	"strconv"
	"strings"
)

// vllmTable is vLLM's page, V0 and V1; prefix is "vllm:" and under Ray "ray_vllm:" or "ray_vllm_".
//
// Sources: vllm/v1/metrics/loggers.py and vllm/engine/metrics.py from 0.4.3 to 0.32.0, and recorded pages of both engines.
func vllmTable(name, title, note, prefix string) *Table {
	v := func(s string) string { return prefix + s }
	fam := func(names ...string) []Source { return family(prefixed(prefix, names)...) }
	keep := func(label, attr string, names ...string) []Source {
		return keeping(label, attr, prefixed(prefix, names)...)
	}
	hits := func(local, old string) []Source {
		return []Source{
			one(Term{Family: v(local)}).versions("≥0.9.2"),
			one(Term{Family: v(old), Blocks: true}).versions("V1 0.8–0.11; 0.8 counts blocks"),
		}
	}
	local, external := Attr{AttrCache, "local"}, Attr{AttrCache, "external"}
	return &Table{
		Name: name, Title: title, Note: note,
		Prefixes: []string{prefix},
		Model:    []string{"model_name", "model"},
		Rank:     []string{"engine"},
		Replica:  []string{"ReplicaId", "WorkerId"},
		Pid:      "pid",
		Required: [][]string{
			{v("num_requests_running")},
			{v("prompt_tokens_total"), v("prompt_tokens")},
			{v("time_to_first_token_seconds_count")},
		},
		Rules: []Rule{
			{Metric: ActiveSequences, From: fam("num_requests_running")},
			{Metric: QueueRequests, From: fam("num_requests_waiting")},
			{Metric: QueueByReason, From: since("≥0.20", keep("reason", AttrReason, "num_requests_waiting_by_reason"))},
			{Metric: KVCacheUsage, From: []Source{
				largest(v("kv_cache_usage_perc"))[0].versions("≥0.9.2"),
				largest(v("gpu_cache_usage_perc"))[0].versions("V0; V1 <0.12"),
			}},
			{Metric: KVCacheCapacity, From: []Source{{
				Func: cacheCapacity(v("cache_config_info")), Reads: []string{v("cache_config_info")}, InheritModel: true,
				Doc: "`" + v("cache_config_info") + "`: `kv_cache_size_tokens`, else `num_gpu_blocks` × `block_size`",
			}}},
			{Metric: PrefixQueries, Const: []Attr{local}, From: hits("prefix_cache_queries", "gpu_prefix_cache_queries")},
			{Metric: PrefixQueries, Const: []Attr{external}, From: since("≥0.12", fam("external_prefix_cache_queries"))},
			{Metric: PrefixHits, Const: []Attr{local}, From: hits("prefix_cache_hits", "gpu_prefix_cache_hits")},
			{Metric: PrefixHits, Const: []Attr{external}, From: since("≥0.12", fam("external_prefix_cache_hits"))},
			{Metric: MMQueries, From: since("≥0.12", fam("mm_cache_queries"))},
			{Metric: MMHits, From: since("≥0.12", fam("mm_cache_hits"))},
			{Metric: Preemptions, From: fam("num_preemptions")},
			{Metric: InputTokens, From: fam("prompt_tokens")},
			{Metric: InputBySource, From: since("≥0.16", keep("source", AttrSource, "prompt_tokens_by_source"))},
			{Metric: InputCached, From: since("≥0.16", fam("prompt_tokens_cached"))},
			{Metric: OutputTokens, From: fam("generation_tokens")},
			// llm-d-inference-sim prints finish_reason where vLLM prints finished_reason.
			{Metric: Requests, From: []Source{one(Term{Family: v("request_success"), Keep: []Keep{
				{Label: "finished_reason", Attr: AttrFinishReason}, {Label: "finish_reason", Attr: AttrFinishReason},
			}})}},
			{Metric: RequestsRejected, From: since("≥0.32", keep("reason", AttrReason, "admission_rejections"))},
			{Metric: RequestsStarted, From: []Source{one(Term{Family: v("time_to_first_token_seconds"), Part: PartCount})}},
			{Metric: TimeToFirstToken, From: fam("time_to_first_token_seconds")},
			{Metric: InterTokenLatency, From: []Source{
				one(Term{Family: v("inter_token_latency_seconds")}).versions("≥0.10.2"),
				one(Term{Family: v("time_per_output_token_seconds")}).versions("<0.15"),
			}},
			{Metric: TimePerOutput, From: since("≥0.11", fam("request_time_per_output_token_seconds"))},
			{Metric: RequestDuration, From: fam("e2e_request_latency_seconds")},
			{Metric: QueueDuration, From: []Source{
				one(Term{Family: v("request_queue_time_seconds")}).versions("≥0.6.6"),
				one(Term{Family: v("time_in_queue_requests")}).versions("V0 0.6.6–0.8.5"),
			}},
			{Metric: PrefillDuration, From: since("≥0.6.6", fam("request_prefill_time_seconds"))},
			{Metric: DecodeDuration, From: since("≥0.6.6", fam("request_decode_time_seconds"))},
			{Metric: InferenceDuration, From: since("≥0.6.6", fam("request_inference_time_seconds"))},
			{Metric: ReqInputTokens, From: fam("request_prompt_tokens")},
			{Metric: ReqOutputTokens, From: fam("request_generation_tokens")},
			{Metric: ReqMaxTokens, From: since("≥0.6.6", fam("request_params_max_tokens", "request_max_num_generation_tokens"))},
			{Metric: ReqKVComputed, From: since("≥0.13", fam("request_prefill_kv_computed_tokens"))},
			{Metric: ReqPreemptions, From: since("≥0.32", fam("request_num_preemptions"))},
			{Metric: ReqN, From: fam("request_params_n")},
			{Metric: IterationTokens, From: since("≥0.6.6", fam("iteration_tokens_total"))},
			{Metric: SpecDrafts, From: since("V1 ≥0.8.5", fam("spec_decode_num_drafts"))},
			{Metric: SpecDraftTokens, From: since("≥0.8.5", fam("spec_decode_num_draft_tokens"))},
			{Metric: SpecAccepted, From: since("≥0.8.5", fam("spec_decode_num_accepted_tokens"))},
			{Metric: SpecAcceptedByPos, From: since("V1 ≥0.8.5", keep("position", AttrPosition, "spec_decode_num_accepted_tokens_per_pos"))},
			{Metric: Sleeping, From: []Source{one(Term{Family: v("engine_sleep_state"), Max: true, Keep: []Keep{
				{Label: "sleep_state", Attr: AttrSleepLevel, Map: sleepLevel},
			}}).versions("≥0.12")}},
			{Metric: LoraRunning, From: []Source{{
				Func: loraAdapters(v("lora_requests_info"), "running_lora_adapters"), Reads: []string{v("lora_requests_info")}, InheritModel: true,
				Doc: "`" + v("lora_requests_info") + "`: adapters listed in `running_lora_adapters` of the newest series",
			}}},
			{Metric: LoraWaiting, From: []Source{{
				Func: loraAdapters(v("lora_requests_info"), "waiting_lora_adapters"), Reads: []string{v("lora_requests_info")}, InheritModel: true,
				Doc: "`" + v("lora_requests_info") + "`: adapters listed in `waiting_lora_adapters` of the newest series",
			}}},
			{Metric: KVBlockLifetime, From: since("≥0.12, --kv-cache-metrics", fam("kv_block_lifetime_seconds"))},
			{Metric: KVBlockIdle, From: since("≥0.12, --kv-cache-metrics", fam("kv_block_idle_before_evict_seconds"))},
			{Metric: KVBlockReuseGap, From: since("≥0.12, --kv-cache-metrics", fam("kv_block_reuse_gap_seconds"))},
			{Metric: KVTransferTime, Const: []Attr{{AttrConnector, "nixl"}}, From: since("≥0.12, NIXL connector", fam("nixl_xfer_time_seconds"))},
			{Metric: KVTransferBytes, Const: []Attr{{AttrConnector, "nixl"}}, From: since("≥0.12, NIXL connector", fam("nixl_bytes_transferred"))},
			{Metric: KVTransferFailed, Const: []Attr{{AttrConnector, "nixl"}}, From: since("≥0.12, NIXL connector", fam("nixl_num_failed_transfers"))},
			{Metric: Flops, From: since("≥0.17, --enable-mfu-metrics", fam("estimated_flops_per_gpu"))},
			{Metric: MemoryRead, From: since("≥0.17, --enable-mfu-metrics", fam("estimated_read_bytes_per_gpu"))},
			{Metric: MemoryWrite, From: since("≥0.17, --enable-mfu-metrics", fam("estimated_write_bytes_per_gpu"))},
			{Metric: HTTPRequests, From: []Source{one(Term{Family: "http_requests", Keep: []Keep{
				{Label: "handler", Attr: AttrRoute, Map: route}, {Label: "status", Attr: AttrStatusCode, Map: statusClass},
			}})}},
		},
		Ignored: prefixed(prefix, []string{
			"num_requests_swapped", "cpu_cache_usage_perc", "cpu_prefix_cache_hit_rate", "gpu_prefix_cache_hit_rate",
			"cpu_prefix_cache_hits", "cpu_prefix_cache_queries",
			"avg_prompt_throughput_toks_per_s", "avg_generation_throughput_toks_per_s", "request_params_best_of",
			"model_forward_time_milliseconds", "model_execute_time_milliseconds",
			"spec_decode_draft_acceptance_rate", "spec_decode_efficiency", "spec_decode_num_emitted_tokens",
			"tokens_lora", "prompt_tokens_recomputed", "prompt_tokens_cached_by_source", "corrupted_requests",
			"diffusion_*", "nixl_*", "kv_offload_*", "mooncake_*", "hf3fs_*", "websocket_*", "tool_call_parser_*",
		}),
	}
}

func prefixed(prefix string, names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = prefix + n
	}
	return out
}

// sleepLevel: awake is the absence of the other two. Level 1 offloads the weights, level 2 discards them (HELP of vllm:engine_sleep_state).
func sleepLevel(state string) (string, bool) {
	switch state {
	case "weights_offloaded":
		return "1", true
	case "discard_all":
		return "2", true
	}
	return "", false
}

// cacheCapacity reads the KV cache's size in tokens from the labels of an info family. They read "None" when the engine has not decided.
func cacheCapacity(name string) func(*view) []Point {
	return func(v *view) []Point {
		var out []Point
		for _, s := range v.page.Samples(name) {
			tokens, ok := labelNumber(s.Label("kv_cache_size_tokens"))
			if !ok {
				blocks, ok1 := labelNumber(s.Label("num_gpu_blocks"))
				size, ok2 := labelNumber(s.Label("block_size"))
				if !ok1 || !ok2 || blocks*size <= 0 {
					continue
				}
				tokens = blocks * size
			}
			out = append(out, Point{Value: tokens, Attrs: v.identity(&s)})
		}
		return out
	}
}

func labelNumber(s string, ok bool) (float64, bool) {
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && n > 0
}

// loraAdapters counts the adapters that the newest series lists: the value of the family is the time it was set, and every set of adapters is
// a series of its own, so that old ones stay on the page.
func loraAdapters(name, label string) func(*view) []Point {
	return func(v *view) []Point {
		newest, list := -1.0, ""
		for _, s := range v.page.Samples(name) {
			if most, _ := s.Label("max_lora"); most == "0" {
				continue // LoRA is off
			}
			if l, ok := s.Label(label); ok && s.Value > newest {
				newest, list = s.Value, l
			}
		}
		if newest < 0 {
			return nil
		}
		n := 0
		for _, a := range strings.Split(list, ",") {
			if strings.TrimSpace(a) != "" {
				n++
			}
		}
		return []Point{{Value: float64(n)}}
	}
}
