package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDetect(t *testing.T) {
	tests := []struct {
		name, page, owner, frontend, foreign string
	}{
		{"vLLM", "vllm:num_requests_running 1\n", "vllm", "", ""},
		{"vLLM under Ray", "ray_vllm_num_requests_running 1\n", "vllm", "ray", ""},
		{"vLLM under an older Ray", "ray_vllm:num_requests_running 1\n", "vllm", "ray", ""},
		{"vLLM in Triton, by its labels", "vllm:prompt_tokens_total{model=\"m\",version=\"1\"} 1\n", "vllm", "triton", ""},
		{"vLLM in Triton, beside its families", "nv_inference_request_success 1\nvllm:prompt_tokens_total 1\n", "vllm", "triton", ""},
		{"vLLM's Rust front end", "# TYPE vllm:prompt_tokens counter\nvllm:prompt_tokens_total 1\n# EOF\n", "vllm", "rust", ""},
		{"vLLM that only declares its families", "# TYPE vllm:num_requests_running gauge\npython_info 1\n", "vllm", "", ""},
		{"a router that borrows vLLM's prefix, by its labels", "vllm:num_requests_running{server=\"http://a\"} 1\n", "production_stack_router", "", ""},
		{"a router that borrows vLLM's prefix, by its families", "vllm:current_qps 1\n", "production_stack_router", "", ""},
		{"SGLang", "sglang:num_running_reqs 1\n", "sglang", "", ""},
		{"TensorRT-LLM", "trtllm_request_success_total 1\n", "trtllm", "", ""},
		{"Triton", "nv_inference_request_success 1\nnv_gpu_utilization 1\n", "triton", "", ""},
		{"Triton with the TRT-LLM backend", "nv_inference_request_success 1\nnv_trt_llm_request_metrics 1\n", "triton_trtllm", "", ""},
		{"TGI", "tgi_queue_size 1\n", "tgi", "", ""},
		{"llama.cpp", "llamacpp:requests_processing 1\n", "llamacpp", "", ""},
		{"Dynamo's front end, which has component families too", "dynamo_component_x 1\ndynamo_frontend_requests_total 1\n", "dynamo_frontend", "", ""},
		{"a Dynamo worker, which has its engine's families too", "dynamo_component_requests_total 1\nvllm:num_requests_running 1\n", "dynamo_worker", "", ""},
		{"LMDeploy", "lmdeploy:num_requests_running 1\n", "lmdeploy", "", ""},
		{"a GPU exporter", "DCGM_FI_DEV_GPU_UTIL 1\n", "", "", "dcgm-exporter"},
		{"an SGLang gateway", "smg_http_requests_total 1\n", "", "", "SGLang model gateway"},
		{"a vLLM router", "vllm_router_requests_total 1\n", "", "", "vllm-router"},
		{"nothing we know", "go_goroutines 1\n", "", "", ""},
		{"nothing", "", "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := Detect(read(tt.page))
			name := ""
			if o.Table != nil {
				name = o.Table.Name
			}
			assert.Equal(t, []string{tt.owner, tt.frontend, tt.foreign}, []string{name, o.Frontend, o.Foreign})
		})
	}
}

func TestAPinIsTaken(t *testing.T) {
	assert.Equal(t, vllm, Pinned(read("go_goroutines 1\n"), "vllm").Table)
	assert.Equal(t, rayUnder, Pinned(read("ray_vllm_num_requests_running 1\n"), "vllm").Table, "the variant that is there")
	assert.Equal(t, sglang, Pinned(read("vllm:num_requests_running 1\n"), "sglang").Table, "whatever is there")
	for _, k := range Kinds() {
		assert.NotNil(t, Pinned(read(""), k).Table, k)
	}
}

func TestVersionOf(t *testing.T) {
	tests := map[string]string{
		"vllm_v0_0.4.3_real.prom":                       "<0.6.6",
		"vllm-0.9.2.post2-start.prom":                   ">=0.6.6 <0.11",
		"vllm-0.10.2.post2-end.prom":                    ">=0.10.2 <0.11",
		"vllm_v1_0.13_real.prom":                        ">=0.13 <0.16",
		"vllm-0.20.2-end.prom":                          ">=0.20 <0.32",
		"vllm-0.32.0-end.prom":                          ">=0.32",
		"vllm-0.32.0-multi-start.prom":                  ">=0.32",
		"vllm_v1_0.8_fragment_real.prom":                ">=0.8 <0.9.2",
		"synthetic_vllm_rust_frontend_openmetrics.prom": "",
		"dynamo-1.6.1-worker-end.prom":                  "",
		"sglang-0.5.23-end.prom":                        "",
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("../../testdata/pages", name))
			require.NoError(t, err)
			p := read(string(b))
			assert.Equal(t, want, VersionOf(p, Detect(p)).String())
		})
	}
}

func TestVersionsCompareByNumber(t *testing.T) {
	assert.Negative(t, compareVersions("0.9.2", "0.10"))
	assert.Zero(t, compareVersions("0.11", "0.11.0"))
	assert.True(t, Version{From: "0.13"}.AtLeast("0.12"))
	assert.False(t, Version{Below: "0.13"}.AtLeast("0.12"))
	assert.True(t, Version{Below: "0.11"}.Before("0.17"))
	assert.False(t, Version{From: "0.8"}.Before("0.17"))
	assert.True(t, Version{From: "0.20"}.Narrower(Version{From: "0.12"}))
	assert.False(t, Version{}.Narrower(Version{From: "0.12"}))
}

// TestTablesHoldTogether checks what the applying code relies on.
func TestTablesHoldTogether(t *testing.T) {
	for _, table := range append(Tables(), rayColon) {
		seen := map[string]bool{}
		for _, r := range table.Rules {
			key := r.Metric.Name
			for _, c := range r.Const {
				key += "," + c.Key + "=" + c.Value
			}
			// Two rules of one metric may only stand side by side when the points differ.
			if len(r.Const) == 0 && seen[key] && r.From[0].Terms[0].Keep == nil {
				t.Errorf("%s: %s has two rules", table.Title, key)
			}
			seen[key] = true
			require.NotEmpty(t, r.From, key)
			for _, s := range r.From {
				assert.NotEqual(t, s.Func == nil, len(s.Terms) == 0, "%s: %s: terms or a function", table.Title, key)
				if s.Func != nil {
					assert.NotEmpty(t, s.Doc, "%s: %s: a function has to say what it does", table.Title, key)
					assert.NotEmpty(t, s.Reads, "%s: %s: a function has to say what it reads", table.Title, key)
				}
				assert.False(t, r.Metric.Kind == Histogram && len(s.Terms) > 1, "%s: %s: histograms are not added up", table.Title, key)
			}
		}
		for _, g := range table.Required {
			assert.NotEmpty(t, g)
			for _, n := range g {
				assert.True(t, knownOf(table).has(n), "%s requires %s and does not know it", table.Title, n)
			}
		}
		for _, f := range table.Ignored {
			assert.LessOrEqual(t, strings.Count(f, "*"), 1, f)
			assert.False(t, slices.Contains(table.families(), f), "%s maps %s and ignores it", table.Title, f)
		}
	}
}
