package engine

// trtllmTable: TensorRT-LLM's trtllm-serve at /prometheus/metrics (tensorrt_llm/metrics/collector.py), and a recorded page of January 2026 that has
// only requests, end-to-end, first token, time per output token and queue time. /metrics of the same server is JSON, another thing.
func trtllmTable() *Table {
	return &Table{
		Name: "trtllm", Title: "TensorRT-LLM", Note: "trtllm-serve; the page is `/prometheus/metrics`, `/metrics` is JSON.",
		Prefixes: []string{"trtllm_"},
		Model:    []string{"model_name"},
		Required: [][]string{{"trtllm_e2e_request_latency_seconds_count", "trtllm_time_to_first_token_seconds_count", "trtllm_request_success_total", "trtllm_num_requests_running"}},
		Rules: []Rule{
			{Metric: ActiveSequences, From: family("trtllm_num_requests_running")},
			{Metric: QueueRequests, From: family("trtllm_num_requests_waiting")},
			{Metric: KVCacheUsage, From: largest("trtllm_kv_cache_utilization")},
			{Metric: InputTokens, From: family("trtllm_prompt_tokens")},
			{Metric: OutputTokens, From: family("trtllm_generation_tokens")},
			{Metric: Requests, From: keeping("finished_reason", AttrFinishReason, "trtllm_request_success")},
			{Metric: Requests, Const: []Attr{{AttrFinishReason, "error"}}, From: family("trtllm_request_error")},
			{Metric: RequestsStarted, From: []Source{one(Term{Family: "trtllm_time_to_first_token_seconds", Part: PartCount})}},
			{Metric: TimeToFirstToken, From: family("trtllm_time_to_first_token_seconds")},
			{Metric: TimePerOutput, From: family("trtllm_time_per_output_token_seconds")},
			{Metric: RequestDuration, From: family("trtllm_e2e_request_latency_seconds")},
			{Metric: QueueDuration, From: family("trtllm_request_queue_time_seconds")},
			{Metric: PrefillDuration, From: family("trtllm_request_prefill_time_seconds")},
			{Metric: DecodeDuration, From: family("trtllm_request_decode_time_seconds")},
			{Metric: InferenceDuration, From: family("trtllm_request_inference_time_seconds")},
			{Metric: Preemptions, From: family("trtllm_num_paused_requests")},
			{Metric: SpecDraftTokens, From: family("trtllm_spec_decode_num_draft_tokens")},
			{Metric: SpecAccepted, From: family("trtllm_spec_decode_num_accepted_tokens")},
		},
		// Blocks without a block size cannot become tokens.
		Ignored: []string{"trtllm_kv_cache_*", "trtllm_iteration_latency_seconds", "trtllm_spec_decode_*", "trtllm_total_context_tokens", "trtllm_max_*", "trtllm_num_*"},
	}
}
