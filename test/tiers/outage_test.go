//go:build e2e

package tiers

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outage is how long backends are away; 5m is what docs/reliability.md reports.
func outage(t testing.TB) time.Duration {
	t.Helper()
	v := os.Getenv("OTELCOL_LLM_OUTAGE")
	if v == "" {
		return 8 * time.Second
	}
	d, err := time.ParseDuration(v)
	require.NoError(t, err, "OTELCOL_LLM_OUTAGE must be a duration")
	return d
}

// All backends are away and come back: traces, records and counts are complete, and no sender notices.
func TestBackendsAway(t *testing.T) {
	top := newTopology(t)
	top.gatewayConfigs = append(top.gatewayConfigs, "yaml:connectors::llmspan::records: all")
	g := top.gateway(t, 0)
	top.resolve(t, 0)
	a := top.agent(t, "node-0")
	tr := newTraffic(t, shape{prompt: 512, answer: 256})
	stop := load(t, tr, []string{a.otlp}, 600, 2)
	acked(t, tr, 400)
	top.backends.setDown(true)
	away := time.NewTimer(outage(t))
	defer away.Stop()
	<-away.C
	queued := g.metric(t, "otelcol_exporter_queue_size", "records")
	top.backends.setDown(false)
	acked(t, tr, 400)
	sent := stop()
	top.settled(t, a)
	until(t, "the metrics catch up", func() bool { return top.backends.counter("llm_requests_total") >= float64(len(sent)) })
	g.stop(t)

	got := top.backends.compare(sent)
	t.Logf("backends away for %s: acknowledged %d traces, %d requests to the backends refused, %.1f MiB of records queued at the end; %v; requests measured %.0f",
		outage(t), len(sent), top.backends.refused, queued/(1<<20), got, top.backends.counter("llm_requests_total"))
	assert.Positive(t, top.backends.refused)
	assert.Positive(t, queued)
	assert.Empty(t, tr.refused, "no sender was refused")
	assert.Zero(t, got.missing+got.partial+got.unexpected+got.dishonest+got.recordsMissing, "%v", got)
	assert.Zero(t, got.spansTwice+got.recordsTwice, "%v", got)
	assert.InDelta(t, len(sent), top.backends.counter("llm_requests_total"), 0)
	top.clean(t)
}

// The disk under an agent's queue fills while its gateway is away. Senders are refused from then on, and all that was acknowledged arrives.
func TestDiskFullUnderTheQueue(t *testing.T) {
	top := newTopology(t)
	a := top.agent(t, "node-0", func(l *launch) {
		l.disk, l.diskBytes = top.dir+"/small", 8<<20
		l.env = append(l.env, "OTELCOL_LLM_DATA="+l.disk)
	})
	tr := newTraffic(t, shape{prompt: 512, answer: 256})
	stop := load(t, tr, []string{a.otlp}, 3000, 2)
	until(t, "senders are refused", func() bool {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		return len(tr.refused) > 0
	})
	full := len(tr.acknowledged())
	top.gateway(t, 0)
	top.resolve(t, 0)
	acked(t, tr, 400) // it takes in again
	sent := stop()
	top.settled(t, a)
	top.gateways[0].stop(t)

	got := top.backends.compare(sent)
	t.Logf("8 MiB of disk: full after %d traces; answers to the senders that were refused %v; acknowledged %d; %v", full, tr.refused, len(sent), got)
	for code := range tr.refused {
		assert.Contains(t, []int{429, 500, 503}, code, "the sender is told")
	}
	assert.Zero(t, got.missing+got.partial+got.unexpected+got.dishonest, "%v", got)
	assert.InDelta(t, len(sent), top.backends.counter("llm_requests_total"), 0)
	top.clean(t)
}
