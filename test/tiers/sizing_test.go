//go:build e2e

package tiers

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What both tiers need at a rate, and that nothing is lost: the tables of docs/deployment.md. The claim of the project is the run with
// 5,000 spans a second of 7 KB.
func TestSizing(t *testing.T) {
	if os.Getenv("OTELCOL_LLM_SIZING") == "" {
		t.Skip("OTELCOL_LLM_SIZING is not set; make bench-tiers sets it")
	}
	var table strings.Builder
	table.WriteString("\n| spans/s | KB a span | agent: µs of CPU a span | cores | RSS MiB | gateway: µs of CPU a span | cores | RSS MiB | spans held | MiB held |\n" +
		"|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, c := range []struct {
		rate   float64
		prompt int
	}{
		{1250, 4096}, {2500, 4096}, {5000, 4096}, {10_000, 4096}, // 1×, 2×, 4×, 8×, 7 KB a span
		{1250, 0}, {1250, 16 << 10}, {300, 64 << 10}, // 0.6 KB, 25 KB, 100 KB a span
	} {
		t.Run(fmt.Sprintf("%.0f spans a second, %d KB", c.rate, c.prompt>>10), func(t *testing.T) {
			table.WriteString(size(t, c.rate, shape{prompt: c.prompt, answer: c.prompt / 2}))
		})
	}
	t.Log(table.String())
}

func size(t *testing.T, rate float64, s shape) string {
	top := newTopology(t)
	// To see what a change costs: a file or yaml:… that is laid over the configuration of a tier.
	for variable, configs := range map[string]*[]string{"OTELCOL_LLM_SIZING_AGENT": &top.agentConfigs, "OTELCOL_LLM_SIZING_GATEWAY": &top.gatewayConfigs} {
		if over := os.Getenv(variable); over != "" {
			*configs = append(*configs, over)
		}
	}
	g := top.gateway(t, 0)
	top.resolve(t, 0)
	a := top.agent(t, "node-0")
	tr := newTraffic(t, s)
	stop := load(t, tr, []string{a.otlp}, rate, 8)
	warm := time.NewTimer(5 * time.Second)
	<-warm.C

	// The window in which CPU and memory are measured; the load goes on a little longer.
	begin, from := time.Now(), len(tr.acknowledged())
	agent0, gateway0 := a.usage(t), g.usage(t)
	var agentRSS, gatewayRSS int
	var heldSpans, heldBytes float64
	for time.Since(begin) < 30*time.Second {
		time.Sleep(500 * time.Millisecond)
		agentRSS, gatewayRSS = max(agentRSS, a.usage(t).rss), max(gatewayRSS, g.usage(t).rss)
		heldSpans = max(heldSpans, g.metric(t, "otelcol_processor_llmspan_held_spans"))
		heldBytes = max(heldBytes, g.metric(t, "otelcol_processor_llmspan_held_bytes"))
	}
	agent1, gateway1, seconds := a.usage(t), g.usage(t), time.Since(begin).Seconds()
	spans := float64(len(tr.acknowledged())-from) * spansPerTrace
	sent := stop()
	top.settled(t, a)
	g.stop(t)

	got := top.backends.compare(sent)
	assert.Zero(t, got.missing+got.partial+got.unexpected+got.dishonest, "%v", got)
	assert.InDelta(t, len(sent), top.backends.counter("llm_requests_total"), 0, "nothing is lost")
	assert.GreaterOrEqual(t, spans/seconds, 0.98*rate, "the rate that was meant")
	top.clean(t)
	t.Logf("%.0f spans/s for %.0f s, %d traces acknowledged, refused %v; %v", spans/seconds, seconds, len(sent), tr.refused, got)
	return fmt.Sprintf("| %.0f | %.1f | %.0f | %.2f | %d | %.0f | %.2f | %d | %.0f | %.1f |\n", spans/seconds, float64(tr.bytes)/(tracesPerExport*spansPerTrace)/1000,
		1e6*(agent1.cpu-agent0.cpu)/spans, (agent1.cpu-agent0.cpu)/seconds, agentRSS>>20,
		1e6*(gateway1.cpu-gateway0.cpu)/spans, (gateway1.cpu-gateway0.cpu)/seconds, gatewayRSS>>20, heldSpans, heldBytes/(1<<20))
}
