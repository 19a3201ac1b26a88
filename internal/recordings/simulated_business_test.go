package recordings_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/sim"
	"github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor"
)

// Four minutes of a simulated installation (two models, teams, streams, several answers, several prompts, beam searches, users who leave,
// refusals, a gateway that fails, an engine that dies) cost, by model and team, what the simulator says that its spans can tell: to the
// token, and exactly in the records.
func TestTheBusinessOfASimulatedInstallation(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Gateway.ModelAttribute = true
	cfg.Mix.Choices, cfg.Mix.Prompts, cfg.Mix.Beam, cfg.Mix.Abort, cfg.Mix.Refused = .15, .1, .05, .1, .05
	cfg.Faults = []sim.Fault{
		{Kind: sim.FaultGateway5xx, At: 60 * time.Second, For: 20 * time.Second, Factor: .5},
		{Kind: sim.FaultEngineCrash, At: 120 * time.Second, For: 20 * time.Second, Engine: cfg.Engines[0].Name},
	}
	w, err := sim.New(cfg, time.Unix(1_796_045_488, 0))
	require.NoError(t, err)
	var batches []ptrace.Traces
	var truths []sim.Truth
	drain := func() {
		out := w.Drain()
		truths = append(truths, out.Truths...)
		for _, e := range out.Exports {
			batches = append(batches, e.Traces)
		}
	}
	for at := 5 * time.Second; at <= 4*time.Minute; at += 5 * time.Second { // exporters send every five seconds
		w.Advance(at)
		drain()
	}
	w.StopArrivals()
	for i := 1; w.InFlight() > 0 && i < 120; i++ {
		w.Advance(4*time.Minute + time.Duration(i)*5*time.Second)
		drain()
	}
	w.Advance(20 * time.Minute)
	drain()
	require.Zero(t, w.InFlight())

	price := map[string]price{}
	c := llmspanprocessor.NewFactory().CreateDefaultConfig().(*llmspanprocessor.Config)
	c.Sampling.Enabled = true
	c.Dimensions = []llmspanprocessor.DimensionConfig{{Name: "team", From: []string{"header.x-team"}}}
	c.SLO = []llmspanprocessor.SLOConfig{{Model: "*", TTFT: time.Second}}
	for i, p := range []struct{ in, out string }{{"0.1", "0.3"}, {"0.9", "2.7"}} {
		in, out := p.in, p.out
		f := func(s string) *float64 { v, _ := rat(s).Float64(); return &v }
		c.Prices.Models = append(c.Prices.Models, llmspanprocessor.PriceConfig{Model: cfg.Engines[i].Model, Input: f(in), Output: f(out)})
		entry := price[cfg.Engines[i].Model]
		entry.input, entry.output = in, out
		price[cfg.Engines[i].Model] = entry
	}
	input, output, want := map[bill]int64{}, map[bill]int64{}, map[bill]*big.Rat{}
	kinds := map[sim.Kind]int{}
	statuses := map[sim.Status]int{}
	for _, x := range truths {
		if x.Seen.Spans == 0 || x.Seen.InputTokens+x.Seen.OutputTokens == 0 {
			continue
		}
		k := bill{model: x.Model, team: x.Team}
		kinds[x.Kind]++
		statuses[x.Seen.Status]++
		input[k] += int64(x.Seen.InputTokens)
		output[k] += int64(x.Seen.OutputTokens)
		million := big.NewRat(1_000_000, 1)
		cost := new(big.Rat).Mul(big.NewRat(int64(x.Seen.InputTokens), 1), rat(price[x.Model].input))
		cost.Add(cost, new(big.Rat).Mul(big.NewRat(int64(x.Seen.OutputTokens), 1), rat(price[x.Model].output)))
		addRat(want, k, cost.Quo(cost, million))
	}
	require.Len(t, kinds, 4, "plain calls, several answers, several prompts, beams")
	require.Greater(t, len(truths), 1500)

	res := pipeline(t, c, batches)
	assert.Equal(t, ints(input), noStatus(positive(sums(res, "llm.input_tokens", byKey))))
	assert.Equal(t, ints(output), noStatus(positive(sums(res, "llm.output_tokens", byKey))))
	got := map[bill]*big.Rat{}
	for _, lr := range res.records {
		if exact := label(lr.Attributes(), names.CostExact); exact != "" {
			k := bill{model: label(lr.Attributes(), names.RequestModel), team: label(lr.Attributes(), "team")}
			addRat(got, k, rat(exact))
		}
	}
	require.Len(t, got, len(want))
	for k, v := range want {
		assert.Zero(t, v.Cmp(got[k]), "%v: %s in the records, %s is true", k, got[k].FloatString(12), v.FloatString(12))
	}
	t.Logf("%d calls of kinds %v, statuses %v: %d bills", len(truths), kinds, statuses, len(want))
}
