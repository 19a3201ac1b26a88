package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func adviceOn(text string) map[string]Advice {
	p := read(text)
	o := Detect(p)
	out := map[string]Advice{}
	if o.Table == nil {
		return out
	}
	r := (&Mapper{}).Map(p, o.Table)
	for _, a := range Advise(p, o, VersionOf(p, o), &r) {
		out[a.Code] = a
	}
	return out
}

func TestAdviceOnRecordedPages(t *testing.T) {
	tests := []struct {
		page string
		want map[string]string // code → part of the flag
	}{
		{"vllm-0.32.0-end.prom", map[string]string{AdviceTracing: "--otlp-traces-endpoint", AdviceBlocks: "--kv-cache-metrics", AdviceMFU: "--enable-mfu-metrics"}},
		{"vllm-0.32.0-start.prom", map[string]string{AdviceTracing: "--otlp-traces-endpoint", AdviceBlocks: "--kv-cache-metrics"}},
		{"vllm_v1_0.13_real.prom", map[string]string{AdviceTracing: "install opentelemetry-sdk", AdviceBlocks: "--kv-cache-metrics", AdviceCached: "--enable-prefix-caching"}},
		{"vllm-0.10.2.post2-end.prom", map[string]string{AdviceTracing: "--otlp-traces-endpoint", AdviceCached: "upgrade to 0.16"}},
		{"vllm-0.9.2.post2-start.prom", map[string]string{AdviceTracing: "--otlp-traces-endpoint", AdviceCached: "upgrade to 0.16"}},
		{"synthetic_vllm_rust_frontend_openmetrics.prom", map[string]string{AdviceTracingOff: "VLLM_USE_RUST_FRONTEND"}},
		{"sglang-0.5.23-end.prom", map[string]string{AdviceTracing: "--enable-trace"}},
		{"dynamo-1.6.1-frontend-end.prom", map[string]string{AdviceTracing: "OTEL_EXPORT_ENABLED"}},
		{"llama.cpp-b11434-end.prom", map[string]string{AdviceTracingOff: "gateway"}},
		{"trtllm_2026-01_real.prom", map[string]string{}},
		{"vllm-router-0.1.17-end.prom", map[string]string{}},
	}
	for _, tt := range tests {
		t.Run(tt.page, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("../../testdata/pages", tt.page))
			require.NoError(t, err)
			checkAdvice(t, tt.want, adviceOn(string(b)))
		})
	}
}

func TestAdvice(t *testing.T) {
	v1 := "process_start_time_seconds 1.7e9\nvllm:num_requests_running{engine=\"0\"} 0\nvllm:prompt_tokens_total{engine=\"0\"} 0\n" + hist("vllm:time_to_first_token_seconds", 0, 0)
	tests := []struct {
		name, page string
		want       map[string]string
	}{
		{"a V1 engine that cannot trace yet", v1 + "vllm:gpu_prefix_cache_queries_total 0\n", map[string]string{AdviceTracingOff: "upgrade to 0.10.2", AdviceCached: "0.16"}},
		{"statistics off", "# TYPE vllm:num_requests_running gauge\npython_info 1\n", map[string]string{AdviceStats: "--disable-log-stats"}},
		{
			"block metrics on", v1 + "vllm:engine_sleep_state{engine=\"0\"} 0\nvllm:request_time_per_output_token_seconds_count 0\n" + hist("vllm:kv_block_lifetime_seconds", 1, 1),
			map[string]string{AdviceTracing: "--otlp", AdviceCached: "0.16"},
		},
		{"estimates on", v1 + "vllm:estimated_flops_per_gpu_total 5\nvllm:generation_tokens_total 1\n" + hist("vllm:kv_block_lifetime_seconds", 1, 1), map[string]string{AdviceTracing: "--otlp"}},
		{"estimates at 0 before the first token say nothing", v1 + "vllm:estimated_flops_per_gpu_total 0\nvllm:generation_tokens_total 0\n" + hist("vllm:kv_block_lifetime_seconds", 1, 1), map[string]string{AdviceTracing: "--otlp"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkAdvice(t, tt.want, adviceOn(tt.page)) })
	}
}

func checkAdvice(t *testing.T, want map[string]string, got map[string]Advice) {
	t.Helper()
	for code, flag := range want {
		a, ok := got[code]
		if assert.True(t, ok, "no advice %s", code) {
			assert.Contains(t, a.Flag, flag, code)
			assert.NotEmpty(t, a.Text)
		}
	}
	for code := range got {
		assert.Contains(t, want, code)
	}
}

func TestAdviceFitsTheVersion(t *testing.T) {
	p := read("vllm:num_requests_running{engine=\"0\"} 0\nvllm:prompt_tokens_total 0\n" + hist("vllm:time_to_first_token_seconds", 0, 0))
	flag := func(v Version) string {
		r := Result{}
		for _, a := range Advise(p, Owner{Table: vllm}, v, &r) {
			if a.Code == AdviceTracing || a.Code == AdviceTracingOff {
				return a.Flag
			}
		}
		return ""
	}
	assert.Contains(t, flag(Version{From: "0.8", Below: "0.10.2"}), "upgrade to 0.10.2")
	assert.Contains(t, flag(Version{From: "0.13", Below: "0.16"}), "install opentelemetry-sdk")
	assert.NotContains(t, flag(Version{From: "0.20"}), "install")
}
