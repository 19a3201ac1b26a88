package engine

import (
	"strconv"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/page"
)

// Advice is something an operator may want to set on the engine.
type Advice struct {
	// Code is stable; one engine has a code once.
	Code string
	// Warn tells advice without which figures are missing or wrong from advice that adds some.
	Warn bool
	// Text says what is the matter and what it costs; Flag is what to set.
	Text, Flag string
}

// The codes of advice.
const (
	AdviceStats       = "stats_disabled"
	AdviceTracingOff  = "tracing_unsupported"
	AdviceTracing     = "tracing_unseen"
	AdviceCached      = "cached_tokens_not_reported"
	AdviceBlocks      = "block_metrics_off"
	AdviceMFU         = "mfu_metrics_off"
	AdviceSplit       = "api_servers_split"
	AdviceNoPage      = "metrics_page_off"
	AdviceUnknown     = "families_unknown"
	tracesFlag        = "--otlp-traces-endpoint=http://localhost:4317 and OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc"
	multiprocVariable = "PROMETHEUS_MULTIPROC_DIR"
)

// Advise looks at a page for what its engine could tell and does not.
func Advise(p *page.Page, o Owner, v Version, r *Result) []Advice {
	if o.Table == nil {
		return nil
	}
	if len(r.Missing) == len(o.Table.Required) && !ownSamples(p, o.Table) {
		return []Advice{StatsDisabled(o.Table.Name)}
	}
	out := tracing(p, o, v)
	if o.Table.Name == "vllm" {
		out = append(out, vllmAdvice(p, o, v, r)...)
	}
	return out
}

func ownSamples(p *page.Page, t *Table) bool {
	for _, n := range p.Names {
		if hasPrefix(n, t.Prefixes) {
			return true
		}
	}
	return false
}

// StatsDisabled is the advice for an engine that answers without any figure of its own.
func StatsDisabled(kind string) Advice {
	a := Advice{Code: AdviceStats, Warn: true, Text: "the page has no figure of the engine: its statistics are off", Flag: "the flag that enables metrics"}
	switch kind {
	case "vllm", "lmdeploy":
		a.Flag = "remove --disable-log-stats"
	case "sglang":
		a.Flag = "--enable-metrics"
	case "llamacpp":
		a.Flag = "--metrics"
	case "trtllm":
		a.Flag = "return_perf_metrics: true, and scrape /prometheus/metrics"
	}
	return a
}

// tracing: no page says whether spans are sent, but some engines cannot send any. For the others the flag of the version is named once, at the
// lower level.
func tracing(p *page.Page, o Owner, v Version) []Advice {
	off := func(text, flag string) []Advice {
		return []Advice{{Code: AdviceTracingOff, Warn: true, Text: text, Flag: flag}}
	}
	unseen := func(flag string) []Advice {
		return []Advice{{Code: AdviceTracing, Text: "a metrics page cannot show whether spans are sent; if none arrive, set", Flag: flag}}
	}
	switch o.Table.Name {
	case "vllm":
		switch {
		case o.Frontend == "rust":
			return off("the Rust front end sends no spans", "unset VLLM_USE_RUST_FRONTEND")
		case isV1(p, o.Table) && v.Before("0.10.2"):
			return off("engine V1 of this version sends no spans; asking for them makes vLLM fall back to V0, with other metrics", "upgrade to 0.10.2 or later, then "+tracesFlag)
		case v.Before("0.17"):
			return unseen(tracesFlag + "; install opentelemetry-sdk, opentelemetry-api, opentelemetry-exporter-otlp and opentelemetry-semantic-conventions-ai, which this version does not require")
		}
		return unseen(tracesFlag)
	case "sglang":
		return unseen("--enable-trace --otlp-traces-endpoint=localhost:4317")
	case "dynamo_frontend", "dynamo_worker":
		return unseen("OTEL_EXPORT_ENABLED=1")
	case "llamacpp", "lmdeploy":
		return off("this engine sends no spans; the stages of a request stay unknown", "trace the gateway or client in front of it")
	}
	return nil
}

func vllmAdvice(p *page.Page, o Owner, v Version, r *Result) []Advice {
	if o.Frontend != "" && o.Frontend != "ray" {
		return nil
	}
	has := func(name string) bool { return p.Has(o.Table.Prefixes[0] + name) }
	var out []Advice
	if a, ok := cachedTokens(p, o, v, has); ok {
		out = append(out, a)
	}
	if v.AtLeast("0.12") && !has("kv_block_lifetime_seconds_count") {
		out = append(out, Advice{Code: AdviceBlocks, Text: "lifetime, idle time and reuse of KV blocks are not measured", Flag: "--kv-cache-metrics"})
	}
	if s := p.Samples(o.Table.Prefixes[0] + "estimated_flops_per_gpu_total"); len(s) > 0 && v.AtLeast("0.17") {
		flops, tokens := 0.0, 0.0
		for i := range s {
			flops += s[i].Value
		}
		for i := range r.Points {
			if r.Points[i].Metric == OutputTokens {
				tokens += r.Points[i].Value
			}
		}
		if flops == 0 && tokens > 0 {
			out = append(out, Advice{Code: AdviceMFU, Text: "operations and memory traffic per GPU are not estimated", Flag: "--enable-mfu-metrics"})
		}
	}
	return out
}

func cachedTokens(p *page.Page, o Owner, v Version, has func(string) bool) (Advice, bool) {
	for _, s := range p.Samples(o.Table.Prefixes[0] + "cache_config_info") {
		if on, ok := s.Label("enable_prefix_caching"); ok && strings.EqualFold(on, "false") {
			return Advice{Code: AdviceCached, Text: "the prefix cache is off: no prompt token is ever cached", Flag: "--enable-prefix-caching"}, true
		}
	}
	if v.Before("0.16") && !has("prompt_tokens_cached_total") {
		return Advice{
			Code: AdviceCached, Text: "this version does not count cached prompt tokens; the prefix-cache counters are the nearest it has",
			Flag: "upgrade to 0.16 or later; --enable-prompt-tokens-details for usage.prompt_tokens_details in answers",
		}, true
	}
	return Advice{}, false
}

// Split is the advice for answers that come from different processes in turn.
func Split() Advice {
	return Advice{
		Code: AdviceSplit, Warn: true, Text: "scrapes are answered by different processes in turn, so counters jump back and forth and no rate is right",
		Flag: "let the API servers share their counters (" + multiprocVariable + " on one writable directory), or scrape each on a port of its own",
	}
}

// NoPage is the advice for a server that answers without such a page.
func NoPage(path string) Advice {
	return Advice{
		Code: AdviceNoPage, Warn: true, Text: "the server answers but serves no metrics at " + path,
		Flag: "SGLang: --enable-metrics; llama.cpp: --metrics; TensorRT-LLM: scrape /prometheus/metrics",
	}
}

// Unknown is the advice for families that no table names: names have moved, or a new release has new ones.
func Unknown(count int, names []string) Advice {
	return Advice{
		Code: AdviceUnknown, Text: strconv.Itoa(count) + " families are not known to this version: " + strings.Join(names, ", "),
		Flag: "raw: true passes them through until a release maps them",
	}
}
