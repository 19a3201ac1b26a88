//go:build e2e

package tiers

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

// Two nodes, two gateways: the applications' and the LLM gateway's spans come in at one agent, the engines' at the other, and what arrives
// is what the simulator knows, to the token.
func TestTwoTiersGiveTheSimulatorsTruth(t *testing.T) {
	top := newTopology(t)
	top.gatewayEnv = []string{"OTELCOL_LLM_BASELINE_RATIO=1"}
	top.gatewayConfigs = append(top.gatewayConfigs, "yaml:processors::llmspan::sampling::client_errors: true", "yaml:connectors::llmspan::records: all")
	top.gateway(t, 0)
	top.gateway(t, 1)
	top.resolve(t, 0, 1)
	agents := []*agent{top.agent(t, "node-0"), top.agent(t, "node-1")}

	cfg := sim.DefaultConfig()
	cfg.Seed, cfg.Rate = 11, 40
	cfg.Mix.Choices, cfg.Mix.Prompts, cfg.Mix.Beam = 0.05, 0.05, 0.02
	// What becomes of requests that leave no engine span is told from the history of their service, which every gateway has to gather first.
	cfg.Mix.Abort, cfg.Mix.Refused = 0, 0
	cfg.Gateway.Chunks = 0.1
	cfg.Faults = []sim.Fault{{Kind: sim.FaultGateway5xx, At: 8 * time.Second, For: 2 * time.Second, Factor: 0.3}}
	const virtual = 30 * time.Second
	world, err := sim.New(cfg, time.Now().Add(-2*virtual))
	require.NoError(t, err)
	var truths []sim.Truth
	want := map[pcommon.SpanID]string{} // names of spans but for folded chunks
	push := func(out sim.Output) {
		truths = append(truths, out.Truths...)
		for _, e := range out.Exports {
			for _, rs := range e.Traces.ResourceSpans().All() {
				for _, ss := range rs.ScopeSpans().All() {
					for _, s := range ss.Spans().All() {
						if _, chunk := s.Attributes().Get("asgi.event.type"); !chunk {
							want[s.SpanID()] = e.Service + ": " + s.Name()
						}
					}
				}
			}
			raw, err := ptraceotlp.NewExportRequestFromTraces(e.Traces).MarshalProto()
			require.NoError(t, err)
			to := agents[0]
			if strings.HasPrefix(e.Service, "sim-engine") || slices.ContainsFunc(cfg.Engines, func(x sim.Engine) bool { return x.Name == e.Service }) {
				to = agents[1]
			}
			require.Equal(t, http.StatusOK, post(to.otlp, raw))
		}
	}
	defer sender.CloseIdleConnections()
	for at := time.Duration(0); at < virtual; at += time.Second {
		world.Advance(at)
		push(world.Drain())
	}
	world.StopArrivals()
	for at := virtual; world.InFlight() > 0 && at < 10*virtual; at += time.Second {
		world.Advance(at)
		push(world.Drain())
	}
	world.Advance(world.Now() + 20*time.Second) // the last batches of the processes' exporters
	push(world.Drain())
	require.Zero(t, world.InFlight())
	truth := world.Totals()
	require.Greater(t, truth.Seen.Calls, int64(800))

	b := top.backends
	until(t, "all requests are measured", func() bool { return b.counter("llm_requests_total") >= float64(truth.Seen.Calls) })
	until(t, "nothing is held any more", func() bool {
		return top.gateways[0].metric(t, "otelcol_processor_llmspan_held_spans")+top.gateways[1].metric(t, "otelcol_processor_llmspan_held_spans") == 0
	})
	for _, g := range top.gateways {
		g.stop(t)
	}

	assert.InDelta(t, truth.Seen.Calls, b.counter("llm_requests_total"), 0, "requests")
	assert.InDelta(t, truth.Seen.InputTokens, b.counter("llm_input_tokens_total"), 0, "input tokens")
	assert.InDelta(t, truth.Seen.OutputTokens, b.counter("llm_output_tokens_total"), 0, "output tokens")
	for _, s := range []sim.Status{sim.StatusOK, sim.StatusError} {
		assert.InDelta(t, truth.Seen.Status[s], b.counter("llm_requests_total", `llm_status="`+string(s)+`"`), 0, "requests with status %s", s)
	}
	assert.InDelta(t, truth.EngineSpans, b.counter("gen_ai_server_time_to_first_token_seconds_count"), 0, "engine spans")
	ttft := 0.0
	for i := range truths {
		for _, s := range truths[i].Sequences {
			ttft += s.TTFT.Float()
		}
	}
	assert.InDelta(t, ttft, b.counter("gen_ai_server_time_to_first_token_seconds_sum"), 1e-5*float64(truth.EngineSpans), "sum of the times to first token")
	for i := range 2 {
		assert.Positive(t, b.counter("llm_requests_total", `otelcol_gateway="gateway-`+string(rune('0'+i))+`"`), "gateway %d had its share", i)
	}
	for i, a := range agents {
		assert.Positive(t, b.counter("system_cpu_time_seconds_total", `host_name="node-`+string(rune('0'+i))+`"`), "host metrics of %s", a.Name)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(t, b.faults)
	assert.Empty(t, b.series.outOfOrder, "every series has one writer")
	missing, twice := map[string]int{}, 0
	for id, name := range want {
		switch {
		case b.spans[id] == 0:
			missing[name]++
		case b.spans[id] > 1:
			twice++
		}
	}
	assert.Empty(t, missing, "of %d spans", len(want))
	assert.Zero(t, twice)
	assert.Len(t, b.records, int(truth.Seen.Calls), "one record a request")
	var in, out int64
	for _, id := range slices.Collect(maps.Keys(b.recordsOf)) {
		in, out = in+b.recordsOf[id].input, out+b.recordsOf[id].output
	}
	assert.Equal(t, []int64{truth.Seen.InputTokens, truth.Seen.OutputTokens}, []int64{in, out}, "tokens of the records")
	t.Logf("%d calls, %d spans, %d engine spans through 2 agents and 2 gateways: requests, tokens, spans and records as the simulator has them", truth.Seen.Calls, len(want), truth.EngineSpans)
}

// Prompts reach neither a backend nor the disk of an agent, not even while its gateway is away and the queue fills.
func TestNoTextLeavesTheAgent(t *testing.T) {
	top := newTopology(t)
	a := top.agent(t, "node-0") // no gateway yet
	tr := newTraffic(t, shape{prompt: 4096, answer: 2048})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	tr.run(ctx, []string{a.otlp}, 1500, 2)
	require.NotEmpty(t, tr.acknowledged())
	onDisk := 0
	require.NoError(t, filepath.WalkDir(filepath.Join(top.dir, "node-0"), func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(p)
		onDisk += len(raw)
		assert.NotContains(t, string(raw), canary, p)
		return err
	}))
	assert.Greater(t, onDisk, 1<<16, "the queue is on disk")
	top.gateway(t, 0)
	top.resolve(t, 0)
	until(t, "the queue drains", func() bool {
		return top.backends.counter("llm_requests_total") >= float64(len(tr.acknowledged()))
	})
	top.backends.mu.Lock()
	defer top.backends.mu.Unlock()
	assert.Empty(t, top.backends.faults, "no text")
}
