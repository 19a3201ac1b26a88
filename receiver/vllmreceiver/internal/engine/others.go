package engine

// tgiTable: text-generation-inference v3.3.7, router/src (metrics-rs names: counters without _total, seconds without a unit in the name). There is no
// model label and no first-token histogram; tgi_batch_* observe batches, not requests, so prefill and decode are not mapped.
func tgiTable() *Table {
	return &Table{
		Name: "tgi", Title: "TGI", Note: "No model label, no time to first token; prefill and decode are observed for each batch, not each request.",
		Prefixes: []string{"tgi_"},
		Required: [][]string{{"tgi_queue_size", "tgi_batch_current_size", "tgi_request_count", "tgi_request_success", "tgi_request_duration_count"}},
		Rules: []Rule{
			{Metric: ActiveSequences, From: family("tgi_batch_current_size")},
			{Metric: QueueRequests, From: family("tgi_queue_size")},
			{Metric: InputTokens, From: []Source{one(Term{Family: "tgi_request_input_length", Part: PartSum})}},
			{Metric: OutputTokens, From: []Source{one(Term{Family: "tgi_request_generated_tokens", Part: PartSum})}},
			{Metric: Requests, From: family("tgi_request_success")},
			{Metric: Requests, From: []Source{one(Term{Family: "tgi_request_failure", Keep: []Keep{{Label: "err", Attr: AttrFinishReason, Map: tgiFailure}}})}},
			{Metric: RequestsRejected, From: []Source{one(Term{Family: "tgi_request_failure", Keep: []Keep{{Label: "err", Attr: AttrReason, Map: tgiRejected}}})}},
			{Metric: TimePerOutput, From: family("tgi_request_mean_time_per_token_duration")},
			{Metric: RequestDuration, From: family("tgi_request_duration")},
			{Metric: QueueDuration, From: family("tgi_request_queue_duration")},
			{Metric: InferenceDuration, From: family("tgi_request_inference_duration")},
			{Metric: ReqInputTokens, From: family("tgi_request_input_length")},
			{Metric: ReqOutputTokens, From: family("tgi_request_generated_tokens")},
			{Metric: ReqMaxTokens, From: family("tgi_request_max_new_tokens")},
		},
		Ignored: []string{"tgi_batch_*", "tgi_request_*", "tgi_tokenize_*"},
	}
}

// tgiRejected: "overloaded" and "validation" are refused before they are queued.
func tgiRejected(err string) (string, bool) { return err, err == "overloaded" || err == "validation" }

func tgiFailure(err string) (string, bool) {
	_, rejected := tgiRejected(err)
	return "error", !rejected
}

// llamacppTable: llama.cpp's server with --metrics, b11434 and earlier. No labels at all, no histograms. prompt_tokens_total leaves out cached
// tokens, so both are added. Throughput gauges are reset by every scrape, whoever scrapes, and are never used.
func llamacppTable() *Table {
	return &Table{
		Name: "llamacpp", Title: "llama.cpp", Note: "`--metrics`. No labels and no histograms; the time per output token is one mean over all tokens, not over requests. A busy server answers late.",
		Prefixes: []string{"llamacpp:"},
		Required: [][]string{{"llamacpp:requests_processing"}, {"llamacpp:prompt_tokens_total"}},
		Rules: []Rule{
			{Metric: ActiveSequences, From: family("llamacpp:requests_processing")},
			{Metric: QueueRequests, From: family("llamacpp:requests_deferred")},
			{Metric: KVCacheUsage, From: []Source{largest("llamacpp:kv_cache_usage_ratio")[0].versions("until 2025-05")}},
			{Metric: InputTokens, From: []Source{{Terms: []Term{{Family: "llamacpp:prompt_tokens"}, {Family: "llamacpp:prompt_tokens_cached"}}}}},
			{Metric: InputCached, From: family("llamacpp:prompt_tokens_cached")},
			{Metric: OutputTokens, From: family("llamacpp:tokens_predicted")},
			{Metric: TimePerOutput, From: []Source{one(Term{Family: "llamacpp:tokens_predicted_seconds", Part: PartPair, Count: "llamacpp:tokens_predicted"})}},
			{Metric: SpecDrafts, From: family("llamacpp:spec_decode_num_drafts")},
			{Metric: SpecDraftTokens, From: family("llamacpp:spec_decode_num_draft_tokens")},
			{Metric: SpecAccepted, From: family("llamacpp:spec_decode_num_accepted_tokens")},
		},
		Ignored: []string{
			"llamacpp:prompt_tokens_seconds", "llamacpp:predicted_tokens_seconds", "llamacpp:n_busy_slots_per_decode", "llamacpp:n_decode",
			"llamacpp:n_tokens_max", "llamacpp:kv_cache_tokens", "llamacpp:prompt_seconds",
		},
	}
}

// lmdeployTable: LMDeploy 0.16 copies vLLM's names; its engine label is the data-parallel rank.
func lmdeployTable() *Table {
	t := vllmTable("lmdeploy", "LMDeploy", "vLLM's names under its own prefix.", "lmdeploy:")
	t.Required = [][]string{{"lmdeploy:num_requests_running", "lmdeploy:prompt_tokens_total", "lmdeploy:time_to_first_token_seconds_count"}}
	return t
}

// routerTable: vLLM production-stack's router prints vllm: families of its own, labelled by the server behind it. They say what the router
// sees; the engines behind it have their own pages, so do not add the two kinds up.
func routerTable() *Table {
	return &Table{
		Name: "production_stack_router", Title: "production-stack router", Note: "What the router sees, summed over the engines behind it: not to be added to theirs.",
		Prefixes: []string{"vllm:"},
		Required: [][]string{{"vllm:num_requests_running", "vllm:current_qps", "vllm:healthy_pods_total"}},
		Rules: []Rule{
			{Metric: ActiveSequences, From: family("vllm:num_requests_running")},
			{Metric: QueueRequests, From: family("vllm:num_queueing_requests", "vllm:num_requests_waiting")},
		},
		Ignored: []string{"vllm:*"},
	}
}
