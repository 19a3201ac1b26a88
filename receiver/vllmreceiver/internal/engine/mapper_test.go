package engine

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/page"
)

func read(text string) *page.Page { return (&page.Parser{}).Parse(text, false) }

// mapped returns the points of a page as lines: name, attributes, value.
func mapped(t testing.TB, text string) []string {
	t.Helper()
	p := read(text)
	o := Detect(p)
	require.NotNil(t, o.Table, "no owner")
	return lines((&Mapper{}).Map(p, o.Table).Points)
}

func lines(points []Point) []string {
	var out []string
	for _, p := range points {
		var attrs []string
		for _, a := range p.Attrs {
			attrs = append(attrs, a.Key[strings.LastIndexByte(a.Key, '.')+1:]+"="+a.Value)
		}
		value := fmt.Sprint(p.Value)
		if p.Hist != nil {
			value = fmt.Sprintf("n=%d sum=%v %v %v", p.Hist.Count, p.Hist.Sum, p.Hist.Bounds, p.Hist.Counts)
		}
		out = append(out, fmt.Sprintf("%s{%s} %s", strings.TrimPrefix(p.Metric.Name, "llm.engine."), strings.Join(attrs, ","), value))
	}
	return out
}

func TestOneNameOfAConceptWins(t *testing.T) {
	tests := []struct{ name, page, want string }{
		{"the new KV usage beside the old", "vllm:gpu_cache_usage_perc 0.5\nvllm:kv_cache_usage_perc 0.25\n", "kv_cache.usage{} 0.25"},
		{"the old KV usage alone", "vllm:gpu_cache_usage_perc 0.5\n", "kv_cache.usage{} 0.5"},
		{"the new prefix hits beside the old", "vllm:gpu_prefix_cache_hits_total 7\nvllm:prefix_cache_hits_total 5\n", "prefix_cache.hits{cache=local} 5"},
		{"the new inter-token latency beside the old", hist("vllm:time_per_output_token_seconds", 9, 9) + hist("vllm:inter_token_latency_seconds", 4, 2), "inter_token_latency{} n=4 sum=2 [1] [4 0]"},
		{"V0's queue time under its old name", hist("vllm:time_in_queue_requests", 4, 2), "queue.duration{} n=4 sum=2 [1] [4 0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { assert.Contains(t, mapped(t, tt.page), tt.want) })
	}
	got := mapped(t, "vllm:gpu_prefix_cache_hits_total 7\nvllm:prefix_cache_hits_total 5\n")
	assert.Len(t, got, 1, "the two are never added up and never both exported")
}

func TestUnitsAndRanges(t *testing.T) {
	info := `vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1` + "\n"
	blocks := "# HELP vllm:gpu_prefix_cache_hits_total GPU prefix cache hits, in terms of number of cached blocks.\nvllm:gpu_prefix_cache_hits_total 3\n"
	tokens := "# HELP vllm:gpu_prefix_cache_hits_total GPU prefix cache hits, in terms of number of cached tokens.\nvllm:gpu_prefix_cache_hits_total 3\n"
	tests := []struct {
		name, page string
		want       []string
	}{
		{"blocks become tokens by the block size", blocks + info, []string{"kv_cache.capacity{} 1600", "prefix_cache.hits{cache=local} 48"}},
		{"blocks of unknown size are not exported", blocks, nil},
		{"tokens stay tokens", tokens, []string{"prefix_cache.hits{cache=local} 3"}},
		{"a ratio of -1 means off", "vllm:kv_cache_usage_perc -1\n", nil},
		{"a ratio of 1 is full", "vllm:kv_cache_usage_perc 1\n", []string{"kv_cache.usage{} 1"}},
		{"a ratio of 57 is no ratio", "vllm:kv_cache_usage_perc 57\n", nil},
		{"a negative counter is no counter", "vllm:spec_decode_num_draft_tokens_total -3\n", nil},
		{"a gauge that is not a number is absent", "vllm:num_requests_running NaN\n", nil},
		{
			"microseconds become seconds", "nv_inference_request_success{model=\"m\"} 2\nnv_inference_request_duration_us{model=\"m\"} 1500000\n",
			[]string{"requests{model=m} 2", "request.duration{model=m} n=2 sum=1.5 [] []"},
		},
		{
			"milliseconds become seconds, bounds too", "nv_inference_request_success 1\n" + hist("nv_inference_first_response_histogram_ms", 1, 500),
			[]string{"requests{} 1", "time_to_first_token{} n=1 sum=0.5 [0.001] [1 0]"},
		},
		{"an info label of None is absent", `vllm:cache_config_info{block_size="16",num_gpu_blocks="None",kv_cache_size_tokens="None"} 1` + "\n", nil},
		{"a capacity in tokens beats blocks", `vllm:cache_config_info{block_size="16",num_gpu_blocks="10",kv_cache_size_tokens="999"} 1` + "\n", []string{"kv_cache.capacity{} 999"}},
		{"estimates that are all 0 are off", "vllm:estimated_flops_per_gpu_total 0\nvllm:estimated_read_bytes_per_gpu_total 5\n", []string{"memory.read{} 5"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, mapped(t, tt.page)) })
	}
}

func TestCopiesOfOneValueAreMerged(t *testing.T) {
	tests := []struct {
		name, page string
		want       []string
	}{
		{"every tensor-parallel rank prints the running requests", `
sglang:num_running_reqs{model_name="m",tp_rank="1",pp_rank="0"} 9
sglang:num_running_reqs{model_name="m",tp_rank="0",pp_rank="0"} 8
sglang:num_running_reqs{model_name="m",tp_rank="0",pp_rank="1"} 7
`, []string{"active_sequences{model=m} 8"}},
		{"data-parallel attention: each rank is real though its tensor rank is not 0", `
sglang:num_running_reqs{model_name="m",tp_rank="0",dp_rank="0"} 8
sglang:num_running_reqs{model_name="m",tp_rank="1",dp_rank="1"} 5
`, []string{"active_sequences{model=m,rank=0} 8", "active_sequences{model=m,rank=1} 5"}},
		{"the total beats its parts by priority", `
sglang:num_running_reqs{priority="",tp_rank="0"} 8
sglang:num_running_reqs{priority="1",tp_rank="0"} 3
sglang:num_running_reqs{priority="2",tp_rank="0"} 5
`, []string{"active_sequences{} 8"}},
		{"parts without a total are added up", "sglang:num_running_reqs{priority=\"1\"} 3\nsglang:num_running_reqs{priority=\"2\"} 5\n", []string{"active_sequences{} 8"}},
		{"streaming and other requests are one counter", "sglang:prompt_tokens_total{is_streaming=\"true\"} 3\nsglang:prompt_tokens_total{is_streaming=\"false\"} 5\n", []string{"input_tokens{} 8"}},
		{"of several processes one has the gauge; what the others print is not added to it", "vllm:num_requests_running{pid=\"1\"} 0\nvllm:num_requests_running{pid=\"2\"} 4\nvllm:num_requests_running{pid=\"3\"} 4\n", []string{"active_sequences{} 4"}},
		{"ranks of vLLM are kept apart", "vllm:num_requests_running{engine=\"0\"} 1\nvllm:num_requests_running{engine=\"1\"} 2\n", []string{"active_sequences{rank=0} 1", "active_sequences{rank=1} 2"}},
		{
			"replicas under Ray are kept apart", "ray_vllm_num_requests_running{ReplicaId=\"a\",WorkerId=\"x\"} 1\nray_vllm_num_requests_running{ReplicaId=\"b\",WorkerId=\"y\"} 2\n",
			[]string{"active_sequences{replica=a} 1", "active_sequences{replica=b} 2"},
		},
		{"labels without a bound are merged away", "vllm:prompt_tokens_total{request_id=\"r1\",user=\"u\"} 1\nvllm:prompt_tokens_total{request_id=\"r2\",user=\"v\"} 2\n", []string{"input_tokens{} 3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, without(mapped(t, tt.page), "queue.")) })
	}
}

func TestManySeriesAreMergedLikeFew(t *testing.T) {
	var b strings.Builder
	for round := range 2 {
		for i := range 100 {
			fmt.Fprintf(&b, "vllm:prompt_tokens_total{engine=\"%d\",round=\"%d\"} %d\n", i, round, i)
			for _, le := range []string{"1", "+Inf"} {
				fmt.Fprintf(&b, "vllm:e2e_request_latency_seconds_bucket{engine=\"%d\",round=\"%d\",le=\"%s\"} %d\n", i, round, le, i)
			}
			fmt.Fprintf(&b, "vllm:e2e_request_latency_seconds_sum{engine=\"%d\",round=\"%d\"} %d\n", i, round, i)
		}
	}
	got := mapped(t, b.String())
	require.Len(t, got, 200)
	for i := range 100 {
		assert.Contains(t, got, fmt.Sprintf("input_tokens{rank=%d} %d", i, 2*i))
		assert.Contains(t, got, fmt.Sprintf("request.duration{rank=%d} n=%d sum=%d [1] [%d 0]", i, 2*i, 2*i, 2*i))
	}
}

func TestHistograms(t *testing.T) {
	const f = "vllm:e2e_request_latency_seconds"
	tests := []struct {
		name, page string
		want       []string
	}{
		{"counts between the bounds", f + `_bucket{le="1"} 1
` + f + `_bucket{le="2"} 3
` + f + `_bucket{le="+Inf"} 6
` + f + `_sum 9
` + f + "_count 6\n", []string{"request.duration{} n=6 sum=9 [1 2] [1 2 3]"}},
		{"_sum first, as several processes print it", f + "_sum 9\n" + f + `_bucket{le="1"} 1
` + f + `_bucket{le="+Inf"} 6
` + f + "_count 6\n", []string{"request.duration{} n=6 sum=9 [1] [1 5]"}},
		{"bounds out of order", f + `_bucket{le="+Inf"} 6
` + f + `_bucket{le="10"} 5
` + f + `_bucket{le="2"} 1
` + f + "_sum 9\n" + f + "_count 6\n", []string{"request.duration{} n=6 sum=9 [2 10] [1 4 1]"}},
		{"a bucket below the one before it: what was counted was counted", f + `_bucket{le="1"} 4
` + f + `_bucket{le="2"} 3
` + f + `_bucket{le="+Inf"} 6
` + f + "_sum 9\n" + f + "_count 6\n", []string{"request.duration{} n=6 sum=9 [1 2] [4 0 2]"}},
		{"+Inf and _count differ by a request in flight", f + `_bucket{le="1"} 4
` + f + `_bucket{le="+Inf"} 6
` + f + "_sum 9\n" + f + "_count 7\n", []string{"request.duration{} n=7 sum=9 [1] [4 3]"}},
		{"no +Inf", f + `_bucket{le="1"} 4
` + f + "_sum 9\n" + f + "_count 7\n", []string{"request.duration{} n=7 sum=9 [1] [4 3]"}},
		{"no buckets", f + "_sum 9\n" + f + "_count 7\n", []string{"request.duration{} n=7 sum=9 [] []"}},
		{"cut in the buckets", f + `_bucket{le="1"} 4
` + f + "_bucket{le=\"2\"} 5\n", nil},
		{"cut before the sum", f + `_bucket{le="1"} 4
` + f + "_bucket{le=\"+Inf\"} 5\n" + f + "_count 5\n", nil},
		{"a sum that is not a number", f + "_sum NaN\n" + f + "_count 7\n", nil},
		{"a count that is no count", f + "_sum 1\n" + f + "_count -7\n", nil},
		{"merged parts with equal bounds", part("true", "1", 3, 4) + part("false", "1", 2, 5), []string{"request.duration{} n=9 sum=2 [1] [5 4]"}},
		{"merged parts keep the bounds they share", part("true", "1", 3, 4) + part("false", "2", 2, 5), []string{"request.duration{} n=9 sum=2 [] []"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, without(mapped(t, tt.page), "requests.started")) })
	}
}

// part is one of two series that are merged: below of count observations lie under the bound.
func part(streaming, le string, below, count int) string {
	const f = "vllm:e2e_request_latency_seconds"
	return fmt.Sprintf("%[1]s_bucket{s=%[2]q,le=%[3]q} %[4]d\n%[1]s_bucket{s=%[2]q,le=\"+Inf\"} %[5]d\n%[1]s_sum{s=%[2]q} 1\n%[1]s_count{s=%[2]q} %[5]d\n", f, streaming, le, below, count)
}

func TestCommonBoundsAreExact(t *testing.T) {
	a := &Hist{Bounds: []float64{1, 2, 4}, Counts: []uint64{1, 2, 3, 4}, Sum: 20, Count: 10}
	b := &Hist{Bounds: []float64{2, 3, 4}, Counts: []uint64{5, 6, 7, 8}, Sum: 60, Count: 26}
	a.add(b)
	assert.Equal(t, &Hist{Bounds: []float64{2, 4}, Counts: []uint64{8, 16, 12}, Sum: 80, Count: 36}, a)
}

func TestSpecialFamilies(t *testing.T) {
	tests := []struct {
		name, page string
		want       []string
	}{
		{"of several sets of adapters the newest counts", `
vllm:lora_requests_info{max_lora="4",running_lora_adapters="a,b",waiting_lora_adapters="c"} 1.7e9
vllm:lora_requests_info{max_lora="4",running_lora_adapters="a",waiting_lora_adapters=""} 1.8e9
`, []string{"lora.running{} 1", "lora.waiting{} 0"}},
		{"without LoRA there is no figure", "vllm:lora_requests_info{max_lora=\"0\",running_lora_adapters=\"\",waiting_lora_adapters=\"\"} 1.8e9\n", nil},
		{
			"awake is the absence of sleep", "vllm:engine_sleep_state{sleep_state=\"awake\"} 0\nvllm:engine_sleep_state{sleep_state=\"weights_offloaded\"} 1\nvllm:engine_sleep_state{sleep_state=\"discard_all\"} 0\n",
			[]string{"sleeping{sleep_level=1} 1", "sleeping{sleep_level=2} 0"},
		},
		{
			"a family without a model takes the page's only one", "vllm:prompt_tokens_total{model_name=\"m\"} 1\nvllm:cache_config_info{kv_cache_size_tokens=\"9\",engine=\"0\"} 1\n",
			[]string{"kv_cache.capacity{model=m,rank=0} 9", "input_tokens{model=m} 1"},
		},
		{
			"with two models it takes none", "vllm:prompt_tokens_total{model_name=\"m\"} 1\nvllm:prompt_tokens_total{model_name=\"n\"} 2\nvllm:cache_config_info{kv_cache_size_tokens=\"9\"} 1\n",
			[]string{"kv_cache.capacity{} 9", "input_tokens{model=m} 1", "input_tokens{model=n} 2"},
		},
		{"routes are a closed set and probes no requests", `vllm:prompt_tokens_total 1
http_requests_total{handler="/v1/completions",status="2xx"} 1
http_requests_total{handler="/v1/whatever/42",status="4xx"} 2
http_requests_total{handler="/v1/whatever/43",status="4xx"} 3
http_requests_total{handler="/metrics",status="2xx"} 99
`, []string{"input_tokens{} 1", "http.requests{status_code=2xx,route=/v1/completions} 1", "http.requests{status_code=4xx,route=other} 5"}},
		{
			"codes become classes", "sglang:http_responses_total{endpoint=\"/generate\",status_code=\"404\"} 1\nsglang:http_responses_total{endpoint=\"/generate\",status_code=\"400\"} 2\n",
			[]string{"http.requests{status_code=4xx,route=/generate} 3"},
		},
		{"the simulator's finish reason", "vllm:request_success_total{finish_reason=\"stop\"} 1\n", []string{"requests{finish_reason=stop} 1"}},
		{"running in Dynamo is in flight less queued", "dynamo_frontend_inflight_requests{model=\"m\"} 12\ndynamo_frontend_queued_requests{model=\"m\"} 8\n", []string{"active_sequences{model=m} 4", "queue.requests{model=m} 8"}},
		{"and never negative, though the two are not read at once", "dynamo_frontend_inflight_requests 1\ndynamo_frontend_queued_requests 2\n", []string{"active_sequences{} 0", "queue.requests{} 2"}},
		{"cached prompt tokens are prompt tokens in llama.cpp", "llamacpp:prompt_tokens_total 775\nllamacpp:prompt_tokens_cached_total 104\n", []string{"input_tokens{} 879", "input_tokens.cached{} 104"}},
		{
			"Triton's failures by reason", "nv_inference_request_failure{model=\"m\",reason=\"CANCELED\"} 1\nnv_inference_request_failure{model=\"m\",reason=\"REJECTED\"} 2\nnv_inference_request_failure{model=\"m\",reason=\"OTHER\"} 3\nnv_inference_request_failure{model=\"m\",reason=\"BACKEND\"} 4\n",
			[]string{"requests{model=m,finish_reason=abort} 1", "requests{model=m,finish_reason=error} 7", "requests.rejected{model=m,reason=rejected} 2"},
		},
		{
			"one family, many meanings", "nv_trt_llm_request_metrics{request_type=\"waiting\"} 3\nnv_trt_llm_request_metrics{request_type=\"max\"} 512\nnv_trt_llm_request_metrics{request_type=\"scheduled\"} 5\n",
			[]string{"active_sequences{} 5", "queue.requests{} 3"},
		},
		{
			"TGI's refused requests are not finished ones", "tgi_request_failure{err=\"overloaded\"} 1\ntgi_request_failure{err=\"generation\"} 2\n",
			[]string{"requests{finish_reason=error} 2", "requests.rejected{reason=overloaded} 1"},
		},
		{"TGI's tokens are sums of histograms", hist("tgi_request_input_length", 2, 30), []string{"input_tokens{} 30", "request.input_tokens{} n=2 sum=30 [1] [2 0]"}},
		{"LMDeploy has vLLM's names", "lmdeploy:gpu_cache_usage_perc{engine=\"1\"} 0.5\n", []string{"kv_cache.usage{rank=1} 0.5"}},
		{"a router sums up the servers behind it", "vllm:num_requests_running{server=\"http://a\"} 1\nvllm:num_requests_running{server=\"http://b\"} 2\n", []string{"active_sequences{} 3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, mapped(t, tt.page)) })
	}
}

func TestStartTimesComeFromThePage(t *testing.T) {
	p := read(`vllm:prompt_tokens_total{engine="0"} 5
vllm:prompt_tokens_total{engine="1"} 6
vllm:prompt_tokens_created{engine="1"} 1.7e9
vllm:prompt_tokens_created{engine="0"} 1.6e9
vllm:iteration_tokens_total_bucket{le="+Inf"} 1
vllm:iteration_tokens_total_sum 3
vllm:iteration_tokens_total_created 1.5e9
process_start_time_seconds 1.4e9
`)
	r := (&Mapper{}).Map(p, vllm)
	require.Len(t, r.Points, 3)
	assert.Equal(t, 1.6e9, r.Points[0].Created)
	assert.Equal(t, 1.7e9, r.Points[1].Created)
	assert.Equal(t, 1.5e9, r.Points[2].Created, "of a histogram whose name ends in _total")
	assert.Equal(t, 1.4e9, r.ProcessStart)
	assert.Zero(t, r.UnknownCount, "_created is no family of its own")
}

func TestUnknownFamiliesAreNamed(t *testing.T) {
	p := read("vllm:brand_new_total 1\nvllm:brand_new_created 1\nvllm:other_seconds_bucket{le=\"1\"} 1\nvllm:other_seconds_sum 1\nvllm:nixl_post_time_seconds_sum 1\nlmcache:x 1\nhttp_requests_total 1\nvllm:prompt_tokens_total 1\n")
	r := (&Mapper{}).Map(p, vllm)
	assert.Equal(t, []string{"vllm:brand_new", "vllm:other_seconds"}, r.Unknown)
	assert.Equal(t, 2, r.UnknownCount)
}

func TestRequiredFamilies(t *testing.T) {
	full := "vllm:num_requests_running 1\nvllm:prompt_tokens_total 1\n" + hist("vllm:time_to_first_token_seconds", 1, 1)
	declared := "# TYPE vllm:num_requests_running gauge\n# TYPE vllm:prompt_tokens_total counter\n# TYPE vllm:time_to_first_token_seconds histogram\n"
	tests := []struct {
		name, page string
		want       []string
	}{
		{"a whole page", full, nil},
		{"half of one", "vllm:num_requests_running 1\n", []string{"vllm:prompt_tokens_total", "vllm:time_to_first_token_seconds_count"}},
		{"gauges without a value yet, as with several API servers", declared + "vllm:prompt_tokens_total 0\n", nil},
		{"declared and nothing else: statistics are off", declared, []string{"vllm:num_requests_running", "vllm:prompt_tokens_total", "vllm:time_to_first_token_seconds_count"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, (&Mapper{}).Map(read(tt.page), vllm).Missing) })
	}
}

func FuzzMap(f *testing.F) {
	files, err := filepath.Glob("../../testdata/pages/*.prom")
	require.NoError(f, err)
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		for i, lines := 0, strings.SplitAfter(string(b), "\n"); i < len(lines); i += 200 { // small inputs are changed much faster
			f.Add(strings.Join(lines[i:min(i+25, len(lines))], ""), uint8(0))
		}
	}
	for i := range Tables() {
		f.Add(hist("vllm:e2e_request_latency_seconds", 3, 1)+"sglang:num_running_reqs{tp_rank=\"x\"} 1\n", uint8(i))
	}
	raw := &Raw{MaxFamilies: 100}
	f.Fuzz(func(t *testing.T, text string, pick uint8) {
		p := (&page.Parser{MaxSamples: 2000}).Parse(text, false)
		o := Detect(p)
		if o.Table == nil || pick > 0 {
			o.Table = Tables()[int(pick)%len(Tables())]
		}
		r := (&Mapper{}).Map(p, o.Table)
		VersionOf(p, o)
		Advise(p, o, Version{}, &r)
		passed, _ := raw.Append(nil, p)
		for _, pt := range append(slices.Clone(r.Points), passed...) {
			if why := wrong(&pt); why != "" {
				t.Fatalf("%s: %s: %+v", pt.Metric.Name, why, pt)
			}
		}
	})
}

// wrong says what no exported point may be.
func wrong(p *Point) string {
	if !slices.IsSortedFunc(p.Attrs, func(a, b Attr) int { return strings.Compare(a.Key, b.Key) }) {
		return "attributes are not sorted"
	}
	if (p.Metric.Kind == Histogram) != (p.Hist != nil) {
		return "kind and value disagree"
	}
	switch h := p.Hist; {
	case h != nil:
		var sum uint64
		for _, c := range h.Counts {
			sum += c
		}
		switch {
		case len(h.Bounds) > 0 && len(h.Counts) != len(h.Bounds)+1, len(h.Bounds) == 0 && len(h.Counts) > 1:
			return "bounds and counts do not fit"
		case len(h.Counts) > 0 && sum != h.Count:
			return "counts do not sum to the count"
		case math.IsNaN(h.Sum) || h.Sum < 0:
			return "sum"
		}
		for i := 1; i < len(h.Bounds); i++ {
			if !(h.Bounds[i-1] < h.Bounds[i]) {
				return "bounds are not increasing"
			}
		}
	case math.IsNaN(p.Value):
		return "not a number"
	case p.Metric.Kind == Counter && p.Value < 0:
		return "negative counter"
	case p.Metric.Ratio && (p.Value < 0 || p.Value > 1+1e-6):
		return "ratio out of range"
	}
	return ""
}

// hist is a histogram of count observations below 1.
func hist(family string, count int, sum float64) string {
	return fmt.Sprintf("%[1]s_bucket{le=\"1\"} %[2]d\n%[1]s_bucket{le=\"+Inf\"} %[2]d\n%[1]s_sum %[3]v\n%[1]s_count %[2]d\n", family, count, sum)
}

func without(lines []string, prefix string) []string {
	return slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, prefix) })
}
