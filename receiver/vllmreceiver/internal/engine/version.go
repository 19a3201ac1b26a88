package engine

import (
	"strconv"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/page"
)

// Version is a range of versions: at least From and before Below; either may be empty.
type Version struct{ From, Below string }

// String reads ">=0.13 <0.16"; "" when nothing is known.
func (v Version) String() string {
	var parts []string
	if v.From != "" {
		parts = append(parts, ">="+v.From)
	}
	if v.Below != "" {
		parts = append(parts, "<"+v.Below)
	}
	return strings.Join(parts, " ")
}

// AtLeast reports whether every version of the range is at least x.
func (v Version) AtLeast(x string) bool { return v.From != "" && compareVersions(v.From, x) >= 0 }

// Before reports whether every version of the range is before x.
func (v Version) Before(x string) bool {
	return v.Below != "" && x != "" && compareVersions(v.Below, x) <= 0
}

// Narrower reports whether v says more than o about the lower end. Families that appear with the first request raise it, nothing lowers it.
func (v Version) Narrower(o Version) bool { return compareVersions(v.From, o.From) > 0 }

func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := 0; i < len(as) || i < len(bs); i++ {
		x, y := versionPart(as, i), versionPart(bs, i)
		if x != y {
			return x - y
		}
	}
	return 0
}

func versionPart(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, err := strconv.Atoi(parts[i])
	if err != nil {
		return 0
	}
	return n
}

// vllmMarkers are families by the version that brought them, newest first. Versions of 2026 are inferred from merge dates (docs/engines.md).
var vllmMarkers = []struct{ name, since string }{
	{"admission_rejections_total", "0.32"},
	{"num_requests_waiting_by_reason", "0.20"},
	{"estimated_flops_per_gpu_total", "0.17"},
	{"prompt_tokens_by_source_total", "0.16"},
	{"request_prefill_kv_computed_tokens_count", "0.13"},
	{"engine_sleep_state", "0.12"},
	{"request_time_per_output_token_seconds_count", "0.11"},
	{"inter_token_latency_seconds_count", "0.10.2"},
	{"kv_cache_usage_perc", "0.9.2"},
	{"gpu_prefix_cache_queries_total", "0.8"},
}

// vllmGone are families by the version that has them no more.
var vllmGone = []struct{ name, below string }{
	{"avg_generation_throughput_toks_per_s", "0.8"},
	{"gpu_cache_usage_perc", "0.12"},
	{"time_per_output_token_seconds_count", "0.15"},
}

// VersionOf tells the version of vLLM from the families it prints. That a family is absent counts only on a page of one process: with several API
// servers families appear with their first value. The Rust front end prints a set of its own and tells nothing.
func VersionOf(p *page.Page, o Owner) Version {
	if o.Table == nil || o.Table.Name != "vllm" || o.Frontend == "rust" || o.Frontend == "triton" {
		return Version{}
	}
	has := func(name string) bool { return p.Has(o.Table.Prefixes[0] + name) }
	whole := p.Has("process_start_time_seconds") || has("prompt_tokens_created")
	v1 := isV1(p, o.Table)
	var v Version
	for _, m := range vllmMarkers {
		if has(m.name) {
			v.From = m.since
			break
		}
		if whole && v1 {
			v.Below = m.since
		}
	}
	if !v1 {
		// V0: gone with 0.11; its request times came with 0.6.6.
		v.Below = "0.11"
		if has("request_queue_time_seconds_count") {
			v.From = "0.6.6"
		} else if whole {
			v.Below = "0.6.6"
		}
	} else if v.From == "" {
		v.From = "0.8"
		if whole {
			v.Below = "0.9.2"
		}
	}
	for _, g := range vllmGone {
		if has(g.name) && (v.Below == "" || compareVersions(g.below, v.Below) < 0) && compareVersions(g.below, v.From) > 0 {
			v.Below = g.below
		}
	}
	return v
}

// isV1 tells the two engines apart: V1 labels its DP rank (from 0.8.3) and counts prefix-cache lookups.
func isV1(p *page.Page, t *Table) bool {
	for _, s := range p.Samples(t.Prefixes[0] + "num_requests_running") {
		if _, ok := s.Label("engine"); ok {
			return true
		}
	}
	for _, name := range []string{"gpu_prefix_cache_queries_total", "prefix_cache_queries_total", "kv_cache_usage_perc"} {
		if _, declared := p.Type(t.Prefixes[0] + name); declared || p.Has(t.Prefixes[0]+name) {
			return true
		}
	}
	return false
}
