package recordings_test

import (
	"encoding/json"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
)

// truth is what the client of a recording knew.
type truth struct {
	requests      int // that were answered, with a usage
	unanswered    int // without a usage: refused, cancelled, or a stream that was not asked for one
	input, output int64
}

type truthRequest struct {
	Scenario string          `json:"scenario"`
	What     string          `json:"what"`
	Status   json.RawMessage `json:"status"`
	Usage    *struct {
		Prompt     *int64 `json:"prompt_tokens"`
		Completion *int64 `json:"completion_tokens"`
		Input      *int64 `json:"input_tokens"`
		Output     *int64 `json:"output_tokens"`
		AIInput    *int64 `json:"inputTokens"`
		AIOutput   *int64 `json:"outputTokens"`
		AITokens   *int64 `json:"tokens"`
	} `json:"usage"`
}

func (tr *truth) add(r truthRequest) {
	if r.Usage == nil {
		tr.unanswered++
		return
	}
	first := func(ps ...*int64) int64 {
		for _, p := range ps {
			if p != nil {
				return *p
			}
		}
		return 0
	}
	tr.requests++
	tr.input += first(r.Usage.Prompt, r.Usage.Input, r.Usage.AIInput, r.Usage.AITokens)
	tr.output += first(r.Usage.Completion, r.Usage.Output, r.Usage.AIOutput)
}

var versioned = regexp.MustCompile(`^(vllm-.+?(?:\.post\d+)?(?:-detailed|-restart)?)-([a-z0-9]+)$`)

// sglangScenarios are the requests of SGLang's and Dynamo's recordings by file.
var engineScenarios = map[string][]string{
	"single": {"plain", "stream", "chat", "chatstream", "onetoken"},
	"n":      {"n"}, "abort": {"abort"},
	"error": {"err-toolong", "err-badparam", "err-nomodel", "err-badjson"},
}

// truthOf finds what the client of a recording knew; ok is false where none was kept.
func truthOf(t *testing.T, name string) (tr truth, ok bool) {
	t.Helper()
	folder, stem := path.Split(name)
	var list []truthRequest
	switch folder {
	case "sdk/":
		b, err := recordings.Truth("sdk/truth-" + stem + ".json")
		if err != nil {
			return tr, false
		}
		var doc struct{ Requests []truthRequest }
		require.NoError(t, json.Unmarshal(b, &doc))
		list = doc.Requests
	case "engines/":
		engine, scenario, _ := strings.Cut(stem, "-")
		file := map[string]string{"sglang": "sglang-0.5.23-truth.json", "dynamo": "dynamo-1.6.1-truth.json", "dynamopd": "dynamo-1.6.1-pd-truth.json"}[engine]
		b, err := recordings.Truth("engines/" + file)
		if err != nil {
			return tr, false
		}
		var doc struct{ Requests []truthRequest }
		require.NoError(t, json.Unmarshal(b, &doc))
		for _, r := range doc.Requests {
			for _, w := range engineScenarios[scenario] {
				if r.What == w {
					list = append(list, r)
				}
			}
		}
	default:
		if b, err := recordings.Truth(name + ".truth.json"); err == nil {
			require.NoError(t, json.Unmarshal(b, &list))
			break
		}
		m := versioned.FindStringSubmatch(stem)
		if m == nil {
			return tr, false
		}
		b, err := recordings.Truth(folder + m[1] + "-truth.json")
		if err != nil {
			return tr, false
		}
		var all []truthRequest
		require.NoError(t, json.Unmarshal(b, &all))
		for _, r := range all {
			if r.Scenario == m[2] {
				list = append(list, r)
			}
		}
	}
	for _, r := range list {
		tr.add(r)
	}
	return tr, len(list) > 0
}

// difference is a recording whose totals differ from what the client was told, and why that is right.
type difference struct {
	requests, input, output float64
	why                     string
}

// differences are reviewed by hand; docs/metrics.md explains their kinds.
var differences = map[string]difference{
	"engines/dynamo-n":             {1, 0, 0, "Dynamo's front end states tokens on streamed requests only; the unary ones have none"},
	"engines/dynamo-single":        {5, 142, 120, "Dynamo's front end states tokens on streamed requests only; the unary ones have none"},
	"engines/dynamopd-single":      {5, 142, 120, "Dynamo's front end states tokens on streamed requests only; the unary ones have none"},
	"engines/sglang-abort":         {1, 21, 174, "the client left before the usage; SGLang's span has what was computed"},
	"engines/sglang-error":         {1, 21, 4, "SGLang makes no request span for what it refuses"},
	"gateway/vllm-0.32.0-gw-error": {0, 0, 0, "refused: no engine span, and a plain HTTP span is no request by itself"},
	"sdk/agents-agent":             {5, 169, 76, "the client's truth counts runs of an agent and has no usage; the spans count its model calls"},
	"sdk/fast-misc":                {0, 0, 0, "refused: no engine span, and a plain HTTP span is no request by itself"},
	"sdk/fast-stream":              {3, 300, 291, "streams without a usage for the client have one at the engine; the one that was closed early has no engine span"},
	"sdk/gao-stream":               {4, 300, 290, "streams without a usage for the client have one at the engine"},
	"sdk/ll81-error":               {6, 102, 960, "a request that timed out at the client ran on at the engine"},
	"sdk/ll81-stream":              {3, 300, 666, "streams without a usage for the client have one at the engine; the proxy runs a stream on after its client has left"},
	"sdk/ll81-tool":                {4, 134, 51, "the client's truth has no usage for the embedding call; its span has 14 tokens"},
	"sdk/ll81def-error":            {7, 0, 0, "the request with a bad key is in two traces that share no id, the client's and the proxy's"},
	"sdk/ll98v2-error":             {6, 106, 1187, "a request that timed out at the client ran on at the engine"},
	"sdk/ll98v2-stream":            {3, 259, 203, "streams without a usage for the client have one at the engine; the proxy runs a stream on after its client has left"},
	"sdk/ll98v2-tool":              {4, 134, 51, "the client's truth has no usage for the embedding call; its span has 14 tokens"},
	"sdk/ll98v2fb-fallback":        {3, 342, 48, "the client's truth has no usage; the engine's spans do"},
	"sdk/oi2exp-misc":              {3, 95, 25, "the instrumentation knows no responses API: that call has no span"},
	"sdk/oi2exp-stream":            {3, 312, 293, "streams without a usage for the client have one at the engine; of the two abandoned streams one has no LLM span, or says nothing of its end"},
	"sdk/oi2leg-misc":              {3, 95, 25, "the instrumentation knows no responses API: that call has no span"},
	"sdk/oi2leg-stream":            {3, 312, 292, "streams without a usage for the client have one at the engine; of the two abandoned streams one has no LLM span, or says nothing of its end"},
	"sdk/oinf-error":               {8, 0, 0, "a stream that the scenario before abandoned ended here"},
	"sdk/oinf-langchain":           {6, 564, 161, "the client's truth counts runs of an agent and has no usage; the spans count its model calls"},
	"sdk/oinf-stream":              {4, 400, 350, "streams without a usage for the client have one at the engine"},
	"sdk/openlit-stream":           {3, 306, 292, "streams without a usage for the client have one at the engine; of the two abandoned streams one has no LLM span, or says nothing of its end"},
	"sdk/openlit-trace":            {0, 0, 0, "no model was called"},
	"sdk/pyd-agent":                {2, 270, 88, "the client's truth counts runs of an agent and has no usage; the spans count its model calls"},
	"sdk/pyd-tool":                 {3, 120, 51, "the client's truth counts runs of an agent and has no usage; the spans count its model calls"},
	"sdk/tl-stream":                {4, 294, 286, "streams without a usage for the client have one at the engine"},
	"sdk/tl-workflow":              {1, 100, 44, "the second workflow fails before it calls a model"},
	"sdk/vercel-error":             {8, 80, 34, "the client's truth counts calls of the SDK; retries and tool steps are model calls of their own"},
	"sdk/vercel-stream":            {1, 92, 45, "the abandoned stream's spans were never exported"},
	"sdk/vercel-tool":              {7, 262, 165, "the client's truth counts calls of the SDK; retries and tool steps are model calls of their own"},
	"sdk/vercel7-error":            {7, 80, 34, "the client's truth counts calls of the SDK; retries and tool steps are model calls of their own"},
	"sdk/vercel7-stream":           {1, 94, 48, "the abandoned stream's spans were never exported"},
	"sdk/vercel7-tool":             {7, 263, 165, "the client's truth counts calls of the SDK; retries and tool steps are model calls of their own"},
	"sdk/vllmrouter-stream":        {3, 318, 193, "streams without a usage for the client have one at the engine; the stream that was closed early says nothing of its end"},
	"vllm/vllm-0.32.0-abort":       {1, 54, 10, "vLLM makes no span for a stream that its client closed"},
	"vllm/vllm-0.32.0-api":         {6, 294, 108, "vLLM makes no span for what it refuses"},
}

// Requests, prompt tokens and generated tokens of every recording equal what its client was told, or differ by a figure that is listed
// above with its reason.
func TestTotalsEqualWhatTheClientsWereTold(t *testing.T) {
	checked, exact := 0, 0
	for _, name := range recordings.Names() {
		tr, ok := truthOf(t, name)
		if !ok {
			continue
		}
		checked++
		t.Run(name, func(t *testing.T) {
			res := run(t, load(t, name))
			want, differs := differences[name]
			if !differs {
				exact++
				want = difference{float64(tr.requests + tr.unanswered), float64(tr.input), float64(tr.output), ""}
			}
			assert.Equal(t, want.requests, res.total("llm.requests"), "requests; the client made %d that were answered and %d that were not. %s", tr.requests, tr.unanswered, want.why)
			assert.Equal(t, want.input, res.total("llm.input_tokens"), "input tokens; the client was told %d. %s", tr.input, want.why)
			assert.Equal(t, want.output, res.total("llm.output_tokens"), "output tokens; the client was told %d. %s", tr.output, want.why)
			assert.Len(t, res.records, int(want.requests), "one record a request")
		})
	}
	require.Greater(t, checked, 100)
	require.Greater(t, exact, 60)
}
