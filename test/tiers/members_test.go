//go:build e2e

package tiers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A second gateway is added and taken away under load. Some traces are split between two gateways at each change; every decision is still
// the one that a single gateway would have made.
func TestGatewayAddedAndRemoved(t *testing.T) {
	top := newTopology(t)
	// A part without a root waits that long; in production 60 s.
	top.gatewayConfigs = append(top.gatewayConfigs, "yaml:processors::llmspan::sampling::idle_timeout: 5s")
	top.gateway(t, 0)
	top.resolve(t, 0)
	// The outer layers come in at another node than the engines, so that a trace can be split at all.
	agents := []*agent{top.agent(t, "node-0"), top.agent(t, "node-1")}
	tr := newTraffic(t, shape{prompt: 512, answer: 256, apart: 400 * time.Millisecond})
	stop := load(t, tr, []string{agents[0].otlp, agents[1].otlp}, 900, 12)
	acked(t, tr, 600)
	top.gateway(t, 1)
	top.resolve(t, 0, 1)
	acked(t, tr, 1200)
	until(t, "the second gateway gets its share", func() bool { return top.gateways[1].metric(t, "otelcol_processor_llmspan_spans_in") > 0 })
	acked(t, tr, 600)
	top.resolve(t, 0)
	removed := top.gateways[1]
	before := removed.metric(t, "otelcol_processor_llmspan_spans_in")
	until(t, "no more comes to the gateway that leaves", func() bool {
		time.Sleep(time.Second)
		now := removed.metric(t, "otelcol_processor_llmspan_spans_in")
		same := now == before
		before = now
		return same
	})
	ended := removed.stop(t)
	acked(t, tr, 600)
	sent := stop()
	top.settled(t, agents...)
	// What the removed gateway could not send any more is in its queue on disk, and is sent when it runs again.
	early := top.backends.compare(sent)
	top.gateway(t, 1)
	top.settled(t, agents...)
	decided := top.gateways[0].metric(t, "otelcol_processor_llmspan_traces_decided")
	for _, g := range top.gateways {
		g.stop(t)
	}

	got := top.backends.compare(sent)
	split := top.backends.split(sent)
	t.Logf("acknowledged %d traces, %.0f of them decided by the gateway that stayed; %d kept ones in two parts; the removed gateway ended in %s and left %d kept traces on its disk; %v",
		len(sent), decided, split, ended.Round(time.Millisecond), early.missing-got.missing, got)
	// An error or a slow request is known to the gateway that has its span; of a split trace the other part follows the baseline.
	assert.LessOrEqual(t, got.partial, split)
	assert.Zero(t, got.missing+got.unexpected+got.dishonest, "%v", got)
	top.clean(t)
}

// SIGTERM in the middle of traffic: an agent keeps its queue on disk, a gateway decides on what it holds before it ends.
func TestSIGTERMDrains(t *testing.T) {
	top := newTopology(t)
	top.gateway(t, 0)
	top.resolve(t, 0)
	a := top.agent(t, "node-0")
	tr := newTraffic(t, shape{prompt: 512, answer: 256})
	stop := load(t, tr, []string{a.otlp}, 900, 2)
	acked(t, tr, 600)
	agentEnded := a.stop(t)
	sent := stop()
	held := top.gateways[0].metric(t, "otelcol_processor_llmspan_held_spans")
	gatewayEnded := top.gateways[0].stop(t)
	inTime := top.backends.compare(sent)
	t.Logf("acknowledged %d traces; the agent ended in %s, the gateway, which held %.0f spans, in %s; at its end: %v",
		len(sent), agentEnded.Round(time.Millisecond), held, gatewayEnded.Round(time.Millisecond), inTime)
	assert.Positive(t, held, "it was in the middle of something")
	assert.Less(t, agentEnded, 10*time.Second)
	assert.Less(t, gatewayEnded, 10*time.Second)

	// What was on the agent's disk, or in the gateway's queues, arrives after the next start.
	top.gateway(t, 0)
	a = top.agent(t, "node-0")
	top.settled(t, a)
	top.gateways[0].stop(t)
	got := top.backends.compare(sent)
	t.Logf("after the next start: %v", got)
	assert.Zero(t, got.missing+got.unexpected+got.dishonest, "%v", got)
	assert.InDelta(t, len(sent), top.backends.counter("llm_requests_total"), 0)
	top.clean(t)
}
