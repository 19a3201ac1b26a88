package engine

// sglangTable: python/sglang/srt/observability/metrics_collector.py to 0.5.23, and recorded pages from 2024 on.
//
// Families of the scheduler carry tp_rank, pp_rank and moe_ep_rank, and every rank may print its own copy (sglang#31896: running ×8); with
// data-parallel attention dp_rank tells real ones apart. Families of the tokenizer carry none of them but is_streaming.
func sglangTable() *Table {
	waits := []struct{ family, reason string }{
		{"sglang:num_queue_reqs", "capacity"},
		{"sglang:num_grammar_queue_reqs", "grammar"},
		{"sglang:num_prefill_bootstrap_queue_reqs", "prefill_bootstrap"},
		{"sglang:num_prefill_prealloc_queue_reqs", "prefill_prealloc"},
		{"sglang:num_prefill_inflight_queue_reqs", "prefill_inflight"},
		{"sglang:num_decode_prealloc_queue_reqs", "decode_prealloc"},
		{"sglang:num_decode_transfer_queue_reqs", "decode_transfer"},
	}
	t := &Table{
		Name: "sglang", Title: "SGLang",
		Note:     "`--enable-metrics`. Request families appear with the first request.",
		Prefixes: []string{"sglang:"},
		Model:    []string{"model_name"},
		Rank:     []string{"dp_rank"},
		Copies:   []string{"pp_rank", "tp_rank", "moe_ep_rank"},
		Total:    "priority",
		Pid:      "pid",
		// A server that has not answered a request yet prints neither running nor queued requests, and that is no fault.
		Required: [][]string{{"sglang:max_total_num_tokens", "sglang:num_running_reqs", "sglang:token_usage", "sglang:startup_time_seconds"}},
		Rules: []Rule{
			{Metric: ActiveSequences, From: family("sglang:num_running_reqs")},
			{Metric: KVCacheUsage, From: largest("sglang:token_usage")},
			{Metric: KVCacheCapacity, From: family("sglang:max_total_num_tokens")},
			{Metric: PrefixQueries, Const: []Attr{{AttrCache, "local"}}, From: []Source{{
				Func:  onlyWith("sglang:cached_tokens_total", "sglang:prompt_tokens"),
				Reads: []string{"sglang:cached_tokens", "sglang:prompt_tokens"}, Doc: "`sglang:prompt_tokens`, once `sglang:cached_tokens` is there",
			}}},
			{Metric: PrefixHits, Const: []Attr{{AttrCache, "local"}}, From: family("sglang:cached_tokens")},
			{Metric: Preemptions, From: family("sglang:num_retracted_requests")},
			{Metric: InputTokens, From: family("sglang:prompt_tokens")},
			{Metric: InputCached, From: family("sglang:cached_tokens")},
			{Metric: OutputTokens, From: family("sglang:generation_tokens")},
			{Metric: Requests, From: family("sglang:num_requests")},
			{Metric: RequestsStarted, From: []Source{one(Term{Family: "sglang:time_to_first_token_seconds", Part: PartCount})}},
			{Metric: RequestsAborted, From: family("sglang:num_aborted_requests")},
			{Metric: TimeToFirstToken, From: family("sglang:time_to_first_token_seconds")},
			{Metric: InterTokenLatency, From: []Source{
				one(Term{Family: "sglang:inter_token_latency_seconds"}),
				one(Term{Family: "sglang:time_per_output_token_seconds"}).versions("2024–2025"),
			}},
			{Metric: TimePerOutput, From: family("sglang:request_time_per_output_token_seconds")},
			{Metric: RequestDuration, From: family("sglang:e2e_request_latency_seconds")},
			{Metric: QueueDuration, From: family("sglang:queue_time_seconds")},
			{Metric: PrefillDuration, From: []Source{one(Term{Family: "sglang:per_stage_req_latency_seconds", Where: []Attr{{"stage", "prefill_forward"}}})}},
			{Metric: DecodeDuration, From: []Source{one(Term{Family: "sglang:per_stage_req_latency_seconds", Where: []Attr{{"stage", "decode_forward"}}})}},
			{Metric: ReqInputTokens, From: family("sglang:prompt_tokens_histogram")},
			{Metric: ReqOutputTokens, From: family("sglang:generation_tokens_histogram")},
			{Metric: ReqKVComputed, From: family("sglang:uncached_prompt_tokens_histogram")},
			{Metric: ReqPreemptions, From: family("sglang:num_retractions")},
			{Metric: KVTransferFailed, From: family("sglang:num_transfer_failed_reqs")},
			{Metric: HTTPRequests, From: []Source{one(Term{Family: "sglang:http_responses", Keep: []Keep{
				{Label: "endpoint", Attr: AttrRoute, Map: route}, {Label: "status_code", Attr: AttrStatusCode, Map: statusClass},
			}})}},
		},
		Ignored: []string{
			// averages over a window of the engine's own choice, and rates of the last batch
			"sglang:gen_throughput", "sglang:cache_hit_rate", "sglang:spec_*", "sglang:new_token_ratio", "sglang:utilization", "sglang:fwd_occupancy",
			"sglang:avg_request_queue_latency", "sglang:func_latency_seconds",
			// sizes of pools that kv_cache.usage and kv_cache.capacity sum up
			"sglang:num_used_tokens", "sglang:kv_*", "sglang:swa_*", "sglang:mamba_*", "sglang:full_token_usage", "sglang:page_size", "sglang:num_pages",
			"sglang:pending_prealloc_token_usage", "sglang:prealloc_*", "sglang:hicache_*", "sglang:decode_sum_seq_lens", "sglang:weight_memory_usage_gb",
			"sglang:graph_memory_usage_gb", "sglang:context_len", "sglang:lora_pool_*",
			// what the scheduler does with its time
			"sglang:scheduler_*", "sglang:dp_attention_*", "sglang:cuda_graph_passes", "sglang:is_cuda_graph", "sglang:process_cpu_seconds",
			"sglang:startup_*", "sglang:engine_*", "sglang:eplb_*", "sglang:dp_cooperation_*",
			"sglang:prefill_effective_tokens", "sglang:realtime_tokens", "sglang:num_retracted_input_tokens", "sglang:num_retracted_output_tokens",
			"sglang:num_retracted_reqs", "sglang:num_paused_reqs", "sglang:num_running_reqs_offline_batch", "sglang:num_decode_host_receive_queue_reqs",
			"sglang:num_decode_deferred_kv_release_reqs", "sglang:num_bootstrap_failed_reqs", "sglang:num_so_requests", "sglang:num_grammar_*",
			"sglang:routing_key*", "sglang:num_unique_running_routing_keys", "sglang:http_requests", "sglang:http_requests_active",
			"sglang:http_request_*", "sglang:http_response_*", "sglang:grammar_*",
		},
	}
	var all []Term
	for _, w := range waits {
		all = append(all, Term{Family: w.family})
		t.Rules = append(t.Rules, Rule{Metric: QueueByReason, Const: []Attr{{AttrReason, w.reason}}, From: family(w.family)})
	}
	t.Rules = append(t.Rules, Rule{Metric: QueueRequests, From: []Source{{Terms: all}}})
	return t
}

// onlyWith reads a counter only when another family is on the page, so that a hit rate is never computed with hits that are not reported.
func onlyWith(present, counter string) func(*view) []Point {
	return func(v *view) []Point {
		if !v.page.Has(present) {
			return nil
		}
		return v.terms(PrefixQueries, []Term{{Family: counter}}, nil)
	}
}
