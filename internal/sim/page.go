package sim

import (
	"fmt"
	"strconv"
)

// page writes the /metrics page of vLLM 0.32.0. Families, types, help texts, labels and their order are those of the recorded
// page (a test compares). What the model does not simulate stays 0, as on a server where it is off.
func (e *engine) page() []byte {
	st := e.stats
	w := &pageWriter{created: pythonFloat(st.created)}
	e.processFamilies(w)

	own := []label{{"engine", "0"}, {"model_name", e.Model}}
	one := func(v float64) point { return point{labels: own, value: v} }
	count := func(name, help string, v int64) { w.counter("vllm:"+name, help, one(float64(v))) }
	by := func(key string, values ...any) (points []point) {
		for i := 0; i < len(values); i += 2 {
			l := append(append([]label{}, own...), label{key, values[i].(string)})
			if key < "model_name" {
				l[1], l[2] = l[2], l[1]
			}
			points = append(points, point{labels: l, value: float64(values[i+1].(int64))})
		}
		return points
	}

	count("estimated_flops_per_gpu", "Estimated number of floating point operations per GPU (for Model Flops Utilization calculations).", 0)
	count("estimated_read_bytes_per_gpu", "Estimated number of bytes read from memory per GPU (for Model Flops Utilization calculations).", 0)
	count("estimated_write_bytes_per_gpu", "Estimated number of bytes written to memory per GPU (for Model Flops Utilization calculations).", 0)
	waiting := int64(len(e.waiting) + len(e.inbox))
	w.gauge("vllm:num_requests_running", "Number of requests in model execution batches.", one(float64(len(e.running))))
	w.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", one(float64(waiting)))
	w.gauge("vllm:num_requests_waiting_by_reason", "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; 'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all reasons equals vllm:num_requests_waiting.",
		by("reason", "capacity", waiting, "deferred", int64(0))...)
	w.gauge("vllm:engine_sleep_state", "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.",
		by("sleep_state", "awake", int64(1), "weights_offloaded", int64(0), "discard_all", int64(0))...)
	w.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", one(e.cache.usage()))
	count("prefix_cache_queries", "Prefix cache queries, in terms of number of queried tokens.", st.prefixQueries)
	count("prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", st.prefixHits)
	count("external_prefix_cache_queries", "External prefix cache queries from KV connector cross-instance cache sharing, in terms of number of queried tokens.", 0)
	count("external_prefix_cache_hits", "External prefix cache hits from KV connector cross-instance cache sharing, in terms of number of cached tokens.", 0)
	count("mm_cache_queries", "Multi-modal cache queries, in terms of number of queried items.", 0)
	count("mm_cache_hits", "Multi-modal cache hits, in terms of number of cached items.", 0)
	count("num_preemptions", "Cumulative number of preemption from the engine.", st.preemptions)
	count("prompt_tokens", "Number of prefill tokens processed.", st.promptTokens)
	w.counter("vllm:prompt_tokens_by_source", "Number of prompt tokens by source.",
		by("source", "local_compute", st.promptTokens-st.cachedTokens, "local_cache_hit", st.cachedTokens, "external_kv_transfer", int64(0))...)
	count("prompt_tokens_cached", "Number of cached prompt tokens (local + external).", st.cachedTokens)
	w.counter("vllm:prompt_tokens_cached_by_source", "Prefix-cache hit tokens by the cache tier that supplied them: device (local HBM), host (offloaded to DRAM), disk, p2p (transferred from another vLLM instance) or external_unspecified. Counted at admission; sums to vllm:prefix_cache_hits + vllm:external_prefix_cache_hits.",
		by("source", "device", st.prefixHits, "host", int64(0), "p2p", int64(0), "disk", int64(0), "external_unspecified", int64(0))...)
	count("generation_tokens", "Number of generation tokens processed.", st.generated)
	var success []any
	for _, r := range finishedReasons {
		success = append(success, r, st.success[r])
	}
	w.counter("vllm:request_success", "Count of successfully processed requests.", by("finished_reason", success...)...)
	w.counter("vllm:admission_rejections", "Number of admission attempts rejected by a queue limit, by reason.",
		point{labels: []label{{"model_name", e.Model}, {"reason", "max_num_queued_reqs"}}, value: float64(st.rejectedRequests)},
		point{labels: []label{{"model_name", e.Model}, {"reason", "max_num_queued_tokens"}}})
	e.histogramFamilies(w, own)
	w.gauge("vllm:cache_config_info", "Information of the LLMEngine CacheConfig", point{labels: e.cacheConfig(), value: 1})
	st.httpFamilies(w)
	return []byte(w.String())
}

func (e *engine) histogramFamilies(w *pageWriter, own []label) {
	st := e.stats
	for _, f := range []struct {
		name, help string
		h          *histogram
	}{
		{"request_prompt_tokens", "Number of prefill tokens processed.", st.prompt},
		{"request_generation_tokens", "Number of generation tokens processed.", st.generation},
		{"iteration_tokens_total", "Histogram of number of tokens per engine_step.", st.iteration},
		{"request_max_num_generation_tokens", "Histogram of maximum number of requested generation tokens.", st.maxGeneration},
		{"request_params_n", "Histogram of the n request parameter.", st.paramsN},
		{"request_params_max_tokens", "Histogram of the max_tokens request parameter.", st.paramsMax},
		{"time_to_first_token_seconds", "Histogram of time to first token in seconds.", st.ttft},
		{"inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", st.itl},
		{"request_time_per_output_token_seconds", "Histogram of time_per_output_token_seconds per request.", st.tpot},
		{"e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", st.e2e},
		{"request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", st.queue},
		{"request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request.", st.inference},
		{"request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", st.prefill},
		{"request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", st.decode},
		{"request_num_preemptions", "Histogram of the number of times a request was preempted.", st.requestPreempts},
		{"request_prefill_kv_computed_tokens", "Histogram of new KV tokens computed during prefill (excluding cached tokens).", st.computedTokens},
	} {
		w.histogram("vllm:"+f.name, f.help, histogramPoint{before: own[:1], after: own[1:], h: f.h})
	}
}

// processFamilies are the Python client's own. Their values are invented: they grow with the engine's work.
func (e *engine) processFamilies(w *pageWriter) {
	st := e.stats
	steps := float64(st.iteration.count)
	gen := func(g string, v float64) point { return point{labels: []label{{"generation", g}}, value: v} }
	floor := func(v float64) float64 { return float64(int64(v)) }
	w.plainCounter("python_gc_objects_collected_total", "Objects collected during gc",
		gen("0", 14000+floor(steps/16)), gen("1", 2800+floor(steps/12)), gen("2", 1650))
	w.plainCounter("python_gc_objects_uncollectable_total", "Uncollectable objects found during GC", gen("0", 0), gen("1", 0), gen("2", 0))
	w.plainCounter("python_gc_collections_total", "Number of times this generation was collected",
		gen("0", 1700+floor(steps/100)), gen("1", 160+floor(steps/1000)), gen("2", 11))
	w.gauge("python_info", "Python platform information", point{value: 1, labels: []label{
		{"implementation", "CPython"}, {"major", "3"}, {"minor", "11"}, {"patchlevel", "7"}, {"version", "3.11.7"},
	}})
	w.gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", point{value: 5.35107584e+09})
	w.gauge("process_resident_memory_bytes", "Resident memory size in bytes.", point{value: 1.054670848e+09 + 4096*floor(steps/50)})
	w.gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", point{value: st.processStart})
	w.plainCounter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", point{value: 12 + floor(steps*0.2)/100})
	w.gauge("process_open_fds", "Number of open file descriptors.", point{value: 38 + float64(len(e.calls))})
	w.gauge("process_max_fds", "Maximum number of open file descriptors.", point{value: 1048576})
}

// cacheConfig is vLLM's CacheConfig as labels; every value is Python's str().
func (e *engine) cacheConfig() []label {
	tokens := e.Blocks * e.BlockSize
	const bytesPerToken = 131072 // of an 8B model in bfloat16
	return []label{
		{"_block_size_resolved", "True"},
		{"block_size", strconv.Itoa(e.BlockSize)},
		{"cache_dtype", "auto"},
		{"cache_hit_alignment_tokens", "None"},
		{"effective_attention_block_size", strconv.Itoa(e.BlockSize)},
		{"enable_mamba_shared_prefix_checkpoint", "False"},
		{"enable_prefix_caching", "True"},
		{"engine", "0"},
		{"gpu_memory_utilization", fmt.Sprint(gpuMemoryShare)},
		{"hash_block_size", "None"},
		{"is_attention_free", "False"},
		{"kv_cache_dtype_skip_layers", "[]"},
		{"kv_cache_layout", "None"},
		{"kv_cache_max_concurrency", pythonFloat(float64(tokens) / float64(e.MaxModelLen))},
		{"kv_cache_memory_bytes", strconv.Itoa(tokens * bytesPerToken)},
		{"kv_cache_size_tokens", strconv.Itoa(tokens)},
		{"kv_offloading_backend", "native"},
		{"kv_offloading_size", "None"},
		{"kv_sharing_fast_prefill", "False"},
		{"mamba_block_size", "None"},
		{"mamba_cache_dtype", "auto"},
		{"mamba_cache_mode", "none"},
		{"mamba_page_size_padded", "None"},
		{"mamba_ssm_cache_dtype", "float32"},
		{"num_cpu_blocks", "None"},
		{"num_gpu_blocks", strconv.Itoa(e.Blocks)},
		{"num_gpu_blocks_override", "None"},
		{"prefix_cache_retention_interval", "0"},
		{"prefix_caching_hash_algo", "sha256"},
		{"prefix_match_unit", "None"},
		{"replayssm_buffer_len", "16"},
		{"skip_page_size_padded", "None"},
		{"sliding_window", "None"},
		{"swa_bounded_replay", "True"},
		{"use_kda_recoverssm", "False"},
		{"use_replayssm", "False"},
		{"user_specified_block_size", "False"},
	}
}

// httpFamilies are those of prometheus_fastapi_instrumentator. A handler appears with its first call.
func (st *stats) httpFamilies(w *pageWriter) {
	const (
		helpIn  = "Content length of incoming requests by handler. Only value of header is respected. Otherwise ignored. No percentile calculated. "
		helpOut = "Content length of outgoing responses by handler. Only value of header is respected. Otherwise ignored. No percentile calculated. "
	)
	var requests []point
	var in, out []summaryPoint
	var durations []histogramPoint
	for _, r := range st.routes {
		handler := label{"handler", r.route}
		post := label{"method", "POST"}
		for _, s := range r.status {
			requests = append(requests, point{
				labels: []label{handler, post, {"status", s.class}}, value: float64(s.n), created: s.created,
			})
		}
		n := float64(r.duration.count)
		in = append(in, summaryPoint{[]label{handler}, n, r.in, r.created})
		out = append(out, summaryPoint{[]label{handler}, n, r.out, r.created})
		durations = append(durations, histogramPoint{[]label{handler}, []label{post}, r.duration, r.created})
	}
	w.counter("http_requests", "Total number of requests by method, status and handler.", requests...)
	w.summary("http_request_size_bytes", helpIn, in...)
	w.summary("http_response_size_bytes", helpOut, out...)
	w.histogram("http_request_duration_highr_seconds", "Latency with many buckets but no API specific labels. Made for more accurate percentile calculations. ",
		histogramPoint{h: st.highr})
	w.histogram("http_request_duration_seconds", "Latency with only few buckets by handler. Made to be only used if aggregation by handler is important. ", durations...)
}
