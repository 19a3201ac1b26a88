//go:build e2e

package tiers

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Ten times as much as the tiers are sized for: senders are refused, memory stays bounded, and all that was acknowledged arrives.
func TestOverload(t *testing.T) {
	const limit = 160 // MiB of heap, at both tiers
	top := newTopology(t)
	small := "yaml:processors::memory_limiter: {check_interval: 100ms, limit_mib: 160, spike_limit_mib: 64}"
	top.gatewayConfigs = append(top.gatewayConfigs, small, "yaml:processors::llmspan::sampling::max_bytes: 24MiB")
	top.agentConfigs = append(top.agentConfigs, small, "yaml:exporters::load_balancing::sending_queue::queue_size: 16777216")
	top.gatewayEnv, top.agentEnv = []string{"GOMEMLIMIT=200MiB"}, []string{"GOMEMLIMIT=200MiB"}
	g := top.gateway(t, 0)
	top.resolve(t, 0)
	a := top.agent(t, "node-0")
	tr := newTraffic(t, shape{prompt: 4096, answer: 2048})

	var most [2]atomic.Int64
	watched := make(chan struct{})
	quit := make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			for i, c := range []*collector{a.collector, g} {
				if rss := int64(c.usage(t).rss); rss > most[i].Load() {
					most[i].Store(rss)
				}
			}
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	}()

	stop := load(t, tr, []string{a.otlp}, 300, 2)
	acked(t, tr, 200)
	stop()
	calm, calmRefused := len(tr.acknowledged()), len(tr.refused)

	// As fast as it goes, from 24 connections; each repeats what was refused.
	begin := time.Now()
	stop = load(t, tr, []string{a.otlp}, 0, 24)
	until(t, "senders are refused", func() bool {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		n := 0
		for _, c := range tr.refused {
			n += c
		}
		return n > 50 && time.Since(begin) > 8*time.Second
	})
	during := len(stop()) - calm
	rate := float64(during*spansPerTrace) / time.Since(begin).Seconds()
	refused := map[int]int{}
	tr.mu.Lock()
	for code, n := range tr.refused {
		refused[code] = n
	}
	tr.refused = map[int]int{}
	tr.mu.Unlock()

	top.settled(t, a)
	stop = load(t, tr, []string{a.otlp}, 300, 2)
	acked(t, tr, 200)
	sent := stop()
	top.settled(t, a)
	close(quit)
	<-watched
	g.stop(t)

	got := top.backends.compare(sent)
	t.Logf("calm: %d traces, %d refusals; overload: %d traces acknowledged (%.0f spans/s), answers to refused senders %v; RSS at most: agent %d MiB, gateway %d MiB; after it: refusals %v; %v",
		calm, calmRefused, during, rate, refused, most[0].Load()>>20, most[1].Load()>>20, tr.refused, got)
	assert.Zero(t, calmRefused)
	assert.Empty(t, tr.refused, "it recovered")
	for code := range refused {
		assert.Contains(t, []int{429, 503}, code, "the sender is told to come again")
	}
	for i, name := range []string{"agent", "gateway"} {
		// Beside the heap there are the program's text (about 60 MiB of it in use), stacks, and what is freed but not given back yet.
		assert.Less(t, most[i].Load()>>20, int64(3*limit), "resident MiB of the %s", name)
	}
	assert.Zero(t, got.missing+got.unexpected+got.dishonest, "%v", got)
	assert.InDelta(t, len(sent), top.backends.counter("llm_requests_total"), 0, "every acknowledged request is counted once")
	top.clean(t)
}
