package recordings_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
	"github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor"
)

// assembled is what the processor makes of a recording with sampling on and every trace kept.
func assembled(t *testing.T, name string) []ptrace.Traces {
	t.Helper()
	ctx := context.Background()
	sink := new(consumertest.TracesSink)
	f := llmspanprocessor.NewFactory()
	cfg := f.CreateDefaultConfig().(*llmspanprocessor.Config)
	cfg.Sampling.Enabled = true
	cfg.Sampling.BaselineRatio = 1
	p, err := f.CreateTraces(ctx, processortest.NewNopSettings(f.Type()), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(ctx, nil))
	for _, td := range load(t, name) {
		require.NoError(t, p.ConsumeTraces(ctx, td))
	}
	require.NoError(t, p.Shutdown(ctx))
	return sink.AllTraces()
}

// userSide is what a request span says of the user, and how to find the client that knows better.
type userSide struct {
	id        string
	start     float64 // Unix seconds of the outermost layer
	ttft, e2e float64 // NaN when absent
	estimated bool
	input     int64
}

func userSides(traces []ptrace.Traces) []userSide {
	var out []userSide
	get := func(a pcommon.Map, k string) float64 {
		if v, ok := a.Get(k); ok {
			return v.Double()
		}
		return math.NaN()
	}
	for _, td := range traces {
		each(td, func(s ptrace.Span) {
			a := s.Attributes()
			if _, ok := a.Get("llmspan.user.e2e"); !ok {
				return
			}
			u := userSide{ttft: get(a, "llmspan.user.ttft"), e2e: get(a, "llmspan.user.e2e")}
			for _, k := range []string{"gen_ai.response.id", "gen_ai.request.id"} {
				if v, ok := a.Get(k); ok && u.id == "" {
					u.id = v.Str()
				}
			}
			if i := get(a, "llmspan.ingress.duration"); !math.IsNaN(i) {
				u.start = float64(s.StartTimestamp())/1e9 - i
			} else {
				u.start = float64(s.StartTimestamp()) / 1e9
			}
			if v, ok := a.Get("llmspan.user.ttft.estimated"); ok {
				u.estimated = v.Bool()
			}
			if v, ok := a.Get("gen_ai.usage.input_tokens"); ok {
				u.input = v.Int()
			}
			out = append(out, u)
		})
	}
	return out
}

// What the processor says of the user agrees with what the client measured: on the idle recordings a measured first token is within
// 20 ms; under load no figure is above the client's, which sits outside; an estimate is never above it.
func TestTheUsersFiguresAgreeWithTheClients(t *testing.T) {
	compared, measured := 0, 0
	for _, name := range recordings.Names() {
		var clients []struct {
			Start  float64  `json:"start"`
			Unix   float64  `json:"start_unix"`
			E2E    *float64 `json:"e2e"`
			TTFT   *float64 `json:"ttft"`
			E2ES   *float64 `json:"e2e_s"`
			TTFTS  *float64 `json:"ttft_s"`
			Stream bool     `json:"stream"`
			ID     string   `json:"id"`
			RespID string   `json:"response_id"`
			Usage  *struct {
				Prompt int64 `json:"prompt_tokens"`
			} `json:"usage"`
		}
		folder, stem, _ := strings.Cut(name, "/")
		switch folder {
		case "gateway":
			b, err := recordings.Truth(name + ".truth.json")
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(b, &clients))
		case "sdk":
			b, err := recordings.Truth("sdk/truth-" + stem + ".json")
			if err != nil {
				continue
			}
			doc := struct{ Requests any }{&clients}
			require.NoError(t, json.Unmarshal(b, &doc))
		default:
			continue
		}
		seen, repeated := map[string]bool{}, map[string]bool{} // a stub answers with a constant id
		for _, c := range clients {
			repeated[c.RespID] = repeated[c.RespID] || seen[c.RespID]
			seen[c.RespID] = true
		}
		// A gateway's client kept no id, but most of its prompts have a length of their own.
		prompts := map[int64]int{}
		for _, c := range clients {
			if c.Usage != nil {
				prompts[c.Usage.Prompt]++
			}
		}
		t.Run(name, func(t *testing.T) {
			for _, u := range userSides(assembled(t, name)) {
				for _, c := range clients {
					id, start := c.ID, c.Start
					e2e, ttft := c.E2E, c.TTFT
					if c.Unix != 0 {
						id, start, e2e, ttft = c.RespID, c.Unix, c.E2ES, c.TTFTS
					}
					switch {
					case e2e == nil || u.start < start-.005 || u.start > start+2:
						continue
					case id == "":
						if c.Usage == nil || c.Usage.Prompt != u.input || prompts[u.input] > 1 && !strings.Contains(name, "idle") || u.start-start > .5 {
							continue
						}
						id = "no id"
					case !strings.HasPrefix(u.id, id) || repeated[id]:
						continue
					}
					compared++
					assert.LessOrEqual(t, u.e2e, *e2e+0.005, "%s: end-to-end above the client's", id)
					if ttft == nil || math.IsNaN(u.ttft) {
						continue
					}
					assert.LessOrEqual(t, u.ttft, *ttft+0.005, "%s: first token above the client's (estimated: %v)", id, u.estimated)
					if !u.estimated {
						measured++
						t.Logf("%s measured %.1f ms, client %.1f ms", id, u.ttft*1e3, *ttft*1e3)
						if strings.Contains(name, "idle") {
							assert.InDelta(t, *ttft, u.ttft, 0.020, "%s: measured on an idle machine", id)
						}
					}
				}
			}
		})
	}
	t.Logf("%d requests compared, %d with a measured first token", compared, measured)
	require.Greater(t, compared, 100)
	require.Greater(t, measured, 20)
}
