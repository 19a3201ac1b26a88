package engine

// dynamoFrontendTable: NVIDIA Dynamo's front end, recorded with 1.6.1. inflight includes queued (queued: waiting for the first token). A cancelled
// request stays in the token counters. Everything is what the front end sees, not what the worker behind it does.
func dynamoFrontendTable() *Table {
	f := func(s string) string { return "dynamo_frontend_" + s }
	return &Table{
		Name: "dynamo_frontend", Title: "Dynamo front end", Note: "Front-end vantage: the router and the network to the worker are inside every duration.",
		Prefixes: []string{"dynamo_frontend_"},
		Model:    []string{"model"},
		Required: [][]string{{f("inflight_requests"), f("requests_total"), f("model_ready"), f("model_context_length"), f("tokenizer_cache_hits_total")}},
		Rules: []Rule{
			{Metric: ActiveSequences, From: []Source{{Terms: []Term{{Family: f("inflight_requests")}, {Family: f("queued_requests"), Scale: -1}}}}},
			{Metric: QueueRequests, From: family(f("queued_requests"))},
			{Metric: KVCacheCapacity, From: []Source{{
				Func: dynamoCapacity, Reads: []string{f("model_total_kv_blocks"), f("model_kv_cache_block_size")},
				Doc: "`dynamo_frontend_model_total_kv_blocks` × `dynamo_frontend_model_kv_cache_block_size`",
			}}},
			{Metric: InputTokens, From: []Source{one(Term{Family: f("input_sequence_tokens"), Part: PartSum})}},
			{Metric: InputCached, From: []Source{one(Term{Family: f("cached_tokens"), Part: PartSum})}},
			{Metric: OutputTokens, From: []Source{one(Term{Family: f("output_tokens")}), one(Term{Family: f("output_sequence_tokens"), Part: PartSum})}},
			{Metric: Requests, From: []Source{one(Term{Family: f("requests"), Keep: []Keep{{Label: "error_type", Attr: AttrFinishReason, Map: dynamoOutcome}}})}},
			{Metric: RequestsStarted, From: []Source{one(Term{Family: f("time_to_first_token_seconds"), Part: PartCount})}},
			{Metric: RequestsAborted, From: family(f("model_cancellation"))},
			{Metric: RequestsRejected, From: keeping("reason", AttrReason, f("router_admission_rejected"))},
			{Metric: TimeToFirstToken, From: family(f("time_to_first_token_seconds"))},
			{Metric: InterTokenLatency, From: family(f("inter_token_latency_seconds"))},
			{Metric: RequestDuration, From: family(f("request_duration_seconds"))},
			{Metric: ReqInputTokens, From: family(f("input_sequence_tokens"))},
			{Metric: ReqOutputTokens, From: family(f("output_sequence_tokens"))},
		},
		Ignored: []string{
			f("active_requests"), f("*_per_request"), f("detokenize_*"), f("disconnected_clients"), f("event_loop_*"), f("failures"), f("model_*"),
			f("requests_started"), f("router_*"), f("stage_*"), f("template_seconds"), f("tokenize_seconds"), f("tokenizer_*"), f("worker_*"),
		},
	}
}

// dynamoOutcome: the label is empty on success, whose finish reason the front end does not print.
func dynamoOutcome(errorType string) (string, bool) {
	switch errorType {
	case "":
		return "", true
	case "cancelled":
		return "abort", true
	}
	return "error", true
}

func dynamoCapacity(v *view) []Point {
	blocks := v.terms(plain, []Term{{Family: "dynamo_frontend_model_total_kv_blocks"}}, nil)
	size := v.terms(plain, []Term{{Family: "dynamo_frontend_model_kv_cache_block_size"}}, nil)
	var out []Point
	for _, b := range blocks {
		for _, s := range size {
			if attrsEqual(b.Attrs, s.Attrs) && b.Value*s.Value > 0 {
				b.Value *= s.Value
				out = append(out, b)
			}
		}
	}
	return out
}

// dynamoWorkerTable: a worker's page mixes Dynamo's own families with those of the engine inside it. For each concept the engine's family is
// taken, and Dynamo's own where the engine prints none.
func dynamoWorkerTable(engines ...*Table) *Table {
	c := func(s string) string { return "dynamo_component_" + s }
	generate := []Attr{{"dynamo_endpoint", "generate"}}
	t := &Table{
		Name: "dynamo_worker", Title: "Dynamo worker", Note: "The families of the engine inside, then Dynamo's own.",
		Prefixes: []string{"dynamo_component_"},
		Model:    []string{"model_name", "model"},
		Rank:     []string{"engine", "dp_rank"},
		Copies:   []string{"pp_rank", "tp_rank", "moe_ep_rank"},
		Total:    "priority",
		Pid:      "pid",
		Required: [][]string{{c("requests_total"), c("inflight_requests"), c("uptime_seconds")}},
		Ignored:  []string{"dynamo_component_*"},
	}
	own := []Rule{
		{Metric: ActiveSequences, From: []Source{one(Term{Family: c("inflight_requests"), Where: generate})}},
		{Metric: QueueRequests, From: family("dynamo_request_queue")},
		{Metric: KVCacheUsage, From: largest(c("kvstats_gpu_cache_usage_percent"))},
		{Metric: Requests, From: []Source{one(Term{Family: c("requests"), Where: generate})}},
		{Metric: RequestsAborted, From: []Source{one(Term{Family: c("cancellation"), Where: generate})}},
		{Metric: RequestsRejected, Const: []Attr{{AttrReason, "capacity"}}, From: family("dynamo_rejection_request")},
		{Metric: RequestDuration, From: []Source{one(Term{Family: c("request_duration_seconds"), Where: generate})}},
	}
	for _, e := range engines {
		t.Prefixes = append(t.Prefixes, e.Prefixes...)
		t.Ignored = append(t.Ignored, e.Ignored...)
		t.Rules = mergeRules(t.Rules, e.Rules)
	}
	for _, o := range own {
		o.From[0].InheritModel = true
		t.Rules = mergeRules(t.Rules, []Rule{o})
	}
	return t
}

// mergeRules appends alternatives to the rules of the same metric and constants, and the other rules as they are.
func mergeRules(rules, more []Rule) []Rule {
next:
	for _, m := range more {
		for i := range rules {
			if rules[i].Metric == m.Metric && attrsEqual(rules[i].Const, m.Const) {
				rules[i].From = append(rules[i].From[:len(rules[i].From):len(rules[i].From)], m.From...)
				continue next
			}
		}
		rules = append(rules, m)
	}
	return rules
}
