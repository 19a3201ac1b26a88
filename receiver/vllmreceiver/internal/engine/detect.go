package engine

import (
	"sort"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/page"
)

// The tables of all engines.
var (
	vllm         = vllmTable("vllm", "vLLM", "V0 and V1, also behind Triton's vLLM backend and vLLM's Rust front end.", "vllm:")
	rayColon     = vllmTable("vllm", "vLLM under Ray Serve (old)", "", "ray_vllm:")
	rayUnder     = vllmTable("vllm", "vLLM under Ray Serve", "`ray_vllm_*`, before vLLM 0.11 `ray_vllm:*`. One page carries every replica of a node: `llm.engine.replica` tells them apart.", "ray_vllm_")
	sglang       = sglangTable()
	trtllm       = trtllmTable()
	triton       = tritonTable()
	tritonTRTLLM = tritonTRTLLMTable()
	tgi          = tgiTable()
	llamacpp     = llamacppTable()
	dynamoFE     = dynamoFrontendTable()
	dynamoWorker = dynamoWorkerTable(vllm, sglang, trtllm)
	lmdeploy     = lmdeployTable()
	router       = routerTable()

	knownByTable = map[*Table]*known{}
)

func init() {
	for _, t := range append(Tables(), rayColon) {
		knownByTable[t] = index(t)
	}
}

// Tables lists the tables in the order of the documentation.
func Tables() []*Table {
	return []*Table{vllm, rayUnder, sglang, trtllm, triton, tritonTRTLLM, tgi, llamacpp, dynamoFE, dynamoWorker, lmdeploy, router}
}

// Kinds lists what llm.engine.kind can be and what a pin accepts.
func Kinds() []string {
	seen := map[string]bool{}
	var out []string
	for _, t := range Tables() {
		if !seen[t.Name] {
			seen[t.Name] = true
			out = append(out, t.Name)
		}
	}
	sort.Strings(out)
	return out
}

// Owner is who a page belongs to.
type Owner struct {
	// Table says how to read the page; nil when no engine owns it.
	Table *Table
	// Frontend tells variants of one engine apart: "ray", "triton" or "rust" for vLLM's, otherwise "".
	Frontend string
	// Foreign names software that is known not to be an engine.
	Foreign string
}

// Detect finds the owner of a page. Families are looked at before those that are only declared: an engine whose statistics are off prints HELP
// and TYPE and no sample.
func Detect(p *page.Page) Owner {
	if o := detect(p, p.Names); o.Table != nil || o.Foreign != "" {
		return o
	}
	return detect(p, p.Declared())
}

// Pinned returns the owner for a pinned kind: the detected one if it is of that kind (the variant matters), else the kind's first table.
func Pinned(p *page.Page, kind string) Owner {
	if o := Detect(p); o.Table != nil && o.Table.Name == kind {
		return o
	}
	for _, t := range Tables() {
		if t.Name == kind {
			return Owner{Table: t}
		}
	}
	return Owner{}
}

func detect(p *page.Page, names []string) Owner {
	f := fingerprint(names)
	switch {
	case f["ray_vllm_"]:
		return Owner{Table: rayUnder, Frontend: "ray"}
	case f["ray_vllm:"]:
		return Owner{Table: rayColon, Frontend: "ray"}
	case f["dynamo_frontend_"]:
		return Owner{Table: dynamoFE}
	case f["dynamo_component_"]:
		return Owner{Table: dynamoWorker}
	case f["nv_trt_llm_"]:
		return Owner{Table: tritonTRTLLM}
	case f["vllm:"]:
		return vllmOwner(p, f["nv_inference_"])
	case f["sglang:"]:
		return Owner{Table: sglang}
	case f["trtllm_"]:
		return Owner{Table: trtllm}
	case f["nv_inference_"]:
		return Owner{Table: triton}
	case f["tgi_"]:
		return Owner{Table: tgi}
	case f["llamacpp:"]:
		return Owner{Table: llamacpp}
	case f["lmdeploy:"]:
		return Owner{Table: lmdeploy}
	}
	for _, s := range foreign {
		if f[s.prefix] {
			return Owner{Foreign: s.name}
		}
	}
	return Owner{}
}

// foreign pages are near engines and often scraped by mistake.
var foreign = []struct{ prefix, name string }{
	{"vllm_router_", "vllm-router"},
	{"smg_", "SGLang model gateway"},
	{"sgl_router_", "sglang-router"},
	{"litellm_", "LiteLLM"},
	{"DCGM_FI_", "dcgm-exporter"},
	{"llm_d_", "llm-d"},
	{"inference_pool_", "llm-d endpoint picker"},
	{"envoy_", "Envoy"},
	{"node_", "node exporter"},
}

var prefixes = []string{
	"ray_vllm_", "ray_vllm:", "dynamo_frontend_", "dynamo_component_", "nv_trt_llm_", "vllm:", "sglang:", "trtllm_", "nv_inference_", "tgi_",
	"llamacpp:", "lmdeploy:",
}

func fingerprint(names []string) map[string]bool {
	f := map[string]bool{}
	for _, n := range names {
		for _, p := range prefixes {
			if strings.HasPrefix(n, p) {
				f[p] = true
			}
		}
		for i := range foreign {
			if strings.HasPrefix(n, foreign[i].prefix) {
				f[foreign[i].prefix] = true
			}
		}
	}
	return f
}

// vllmOwner tells vLLM's own page from those that borrow its prefix.
func vllmOwner(p *page.Page, tritonToo bool) Owner {
	if p.Has("vllm:current_qps") || p.Has("vllm:healthy_pods_total") || p.Has("vllm:num_prefill_requests") {
		return Owner{Table: router}
	}
	for _, s := range p.Samples("vllm:num_requests_running") {
		if _, ok := s.Label("server"); ok {
			return Owner{Table: router}
		}
	}
	if tritonToo || hasLabels(p, "model", "version") {
		return Owner{Table: vllm, Frontend: "triton"}
	}
	// OpenMetrics puts TYPE on the base name; prometheus_client on the name with _total.
	if _, ok := p.Type("vllm:prompt_tokens"); ok {
		return Owner{Table: vllm, Frontend: "rust"}
	}
	return Owner{Table: vllm}
}

// hasLabels looks at the first vllm: family.
func hasLabels(p *page.Page, names ...string) bool {
	for _, n := range p.Names {
		if !strings.HasPrefix(n, "vllm:") {
			continue
		}
		s := p.Samples(n)[0]
		for _, l := range names {
			if _, ok := s.Label(l); !ok {
				return false
			}
		}
		return true
	}
	return false
}
