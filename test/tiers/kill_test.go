//go:build e2e

package tiers

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// overlay is a configuration of deploy/overlays.
func overlay(t testing.TB, name string) string {
	t.Helper()
	p, err := filepath.Abs(filepath.Join("..", "..", "deploy", "overlays", name))
	require.NoError(t, err)
	return p
}

// One of two gateways is killed under load and comes back. With gateway-billing.yaml every acknowledged request has a record, and by span
// id each is there once. What is lost is what the gateway held in memory when it was killed, and nothing else.
func TestKilledGateway(t *testing.T) {
	top := newTopology(t)
	top.gatewayConfigs = append([]string{overlay(t, "gateway-billing.yaml")}, top.gatewayConfigs...)
	top.gateway(t, 0)
	top.gateway(t, 1)
	top.resolve(t, 0, 1)
	a := top.agent(t, "node-0")
	tr := newTraffic(t, shape{prompt: 512, answer: 256})
	stop := load(t, tr, []string{a.otlp}, 1200, 2)
	acked(t, tr, 1200)

	top.gateways[1].Kill()
	killed := time.Now()
	acked(t, tr, 200) // the name still has the dead gateway for a moment
	top.resolve(t, 0)
	acked(t, tr, 1200)
	routed := top.gateways[0].metric(t, "otelcol_processor_llmspan_spans_in")
	acked(t, tr, 200)
	until(t, "the agent routes to the gateway that is left", func() bool {
		return top.gateways[0].metric(t, "otelcol_processor_llmspan_spans_in") > routed
	})
	top.gateway(t, 1)
	top.resolve(t, 0, 1)
	acked(t, tr, 800)
	sent := stop()
	top.settled(t, a)
	for _, g := range top.gateways {
		g.stop(t)
	}

	got := top.backends.compare(sent)
	measured := top.backends.counter("llm_requests_total")
	t.Logf("acknowledged %d traces, %d refusals; %v; requests measured %.0f", len(sent), len(tr.refused), got, measured)
	assert.Zero(t, got.recordsMissing, "an acknowledged request has a record")
	assert.Zero(t, got.dishonest)
	assert.Zero(t, got.unexpected)
	for _, s := range got.lost {
		if age := killed.Sub(s.at); age < -2*time.Second || age > 15*time.Second {
			t.Errorf("a %v trace that was acknowledged %s before the end is lost", wanted(s), age)
		}
	}
	// Half of what was sent in the seconds before goes to the killed one.
	assert.Less(t, got.missing, got.kept/4)
	assert.LessOrEqual(t, measured, float64(len(sent)), "no request is measured twice after its gateway changed")
	top.clean(t)
}
