//go:build e2e

package tiers

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
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

// onSmallDisk puts a collector's data on a file system of its own.
func onSmallDisk(dir string, bytes int) func(*launch) {
	return func(l *launch) {
		l.disk, l.diskBytes = dir, bytes
		l.env = append(l.env, "OTELCOL_LLM_DATA="+dir)
	}
}

// fill writes to a disk that only the collector sees until nothing more goes on it, and returns what frees it.
func (c *collector) fill(t testing.TB, disk string) (free func()) {
	t.Helper()
	name := fmt.Sprintf("/proc/%d/root%s/filler", c.PID(), disk)
	f, err := os.Create(name)
	require.NoError(t, err)
	for _, size := range []int{64 << 10, 4 << 10, 1} { // the last bytes as well
		for block := make([]byte, size); err == nil; {
			_, err = f.Write(block)
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		err = nil
	}
	require.NoError(t, f.Close())
	return func() { require.NoError(t, os.Remove(name)) }
}

// The disk under an agent's queue fills while its gateway is away. Senders are refused from then on, and all that was acknowledged arrives.
func TestDiskFullUnderTheQueue(t *testing.T) {
	top := newTopology(t)
	a := top.agent(t, "node-0", onSmallDisk(top.dir+"/small", 8<<20))
	tr := newTraffic(t, shape{prompt: 512, answer: 256})
	stop := load(t, tr, []string{a.otlp}, 3000, 2)
	until(t, "senders are refused", func() bool {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		return len(tr.refused) > 0
	})
	full := len(tr.acknowledged())
	// What deploy/rules/collector.yaml goes by.
	for _, name := range []string{"otelcol_receiver_refused_spans", "otelcol_exporter_queue_capacity", "otelcol_extension_queue_storage_failing"} {
		assert.Positive(t, a.metric(t, name), name)
	}
	top.gateway(t, 0)
	top.resolve(t, 0)
	acked(t, tr, 400) // it takes in again
	sent := stop()
	top.settled(t, a)
	top.gateways[0].stop(t)

	got := top.backends.compare(sent)
	t.Logf("8 MiB of disk and 32 MiB of memory: full after %d traces; answers to the senders that were refused %v; acknowledged %d; %v", full, tr.refused, len(sent), got)
	for code := range tr.refused {
		assert.Contains(t, []int{429, 500, 503}, code, "the sender is told")
	}
	assert.Zero(t, got.missing+got.partial+got.unexpected+got.dishonest, "%v", got)
	assert.InDelta(t, len(sent), top.backends.counter("llm_requests_total"), 0)
	top.clean(t)
}

// Something else fills the disks of an agent and its gateway under load, and frees them again. Nobody is refused, and each trace arrives once.
func TestDiskFilledBySomethingElse(t *testing.T) {
	top := newTopology(t)
	top.gatewayConfigs = append(top.gatewayConfigs, "yaml:connectors::llmspan::records: all")
	g := top.gateway(t, 0, onSmallDisk(top.dir+"/gateway-disk", 16<<20))
	top.resolve(t, 0)
	a := top.agent(t, "node-0", onSmallDisk(top.dir+"/agent-disk", 16<<20))
	tr := newTraffic(t, shape{prompt: 512, answer: 256})
	stop := load(t, tr, []string{a.otlp}, 600, 2)
	acked(t, tr, 400)
	freeAgent, freeGateway := a.fill(t, top.dir+"/agent-disk"), g.fill(t, top.dir+"/gateway-disk")
	const failing = "otelcol_extension_queue_storage_failing"
	until(t, "both tiers say so", func() bool { return a.metric(t, failing) > 0 && g.metric(t, failing) > 1 })
	acked(t, tr, 1000)
	until(t, "records pass a full disk", func() bool {
		top.backends.mu.Lock()
		defer top.backends.mu.Unlock()
		return len(top.backends.records) > 800
	})
	freeAgent()
	freeGateway()
	until(t, "both tiers write again", func() bool { return a.metric(t, failing)+g.metric(t, failing) == 0 })
	acked(t, tr, 400)
	sent := stop()
	top.settled(t, a)
	g.stop(t)

	got := top.backends.compare(sent)
	t.Logf("both disks full for a while: acknowledged %d traces, refused %v; %v; requests measured %.0f", len(sent), tr.refused, got, top.backends.counter("llm_requests_total"))
	assert.Empty(t, tr.refused, "no sender was refused")
	assert.Zero(t, got.missing+got.partial+got.unexpected+got.dishonest+got.recordsMissing, "%v", got)
	assert.Zero(t, got.spansTwice+got.recordsTwice, "%v", got)
	assert.InDelta(t, len(sent), top.backends.counter("llm_requests_total"), 0)
	top.clean(t)
}

// A loss of power leaves a file of an agent's queue whose pages do not fit together. The agent starts, says so, and what it takes from then on arrives.
func TestDamagedQueue(t *testing.T) {
	top := newTopology(t)
	a := top.agent(t, "node-0")
	tr := newTraffic(t, shape{prompt: 512, answer: 256})
	stop := load(t, tr, []string{a.otlp}, 600, 2)
	acked(t, tr, 200)
	lost := stop()
	a.Kill()
	file := filepath.Join(top.dir, "node-0", "agent", "exporter_load_balancing__traces")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(file, info.Size()/4))

	top.gateway(t, 0)
	top.resolve(t, 0)
	a = top.agent(t, "node-0")
	assert.Contains(t, a.Output(), "a queue's file is damaged")
	assert.FileExists(t, file+".damaged")
	tr = newTraffic(t, shape{prompt: 512, answer: 256})
	stop = load(t, tr, []string{a.otlp}, 600, 2)
	acked(t, tr, 400)
	sent := stop()
	top.settled(t, a)
	top.gateways[0].stop(t)
	measured := top.backends.counter("llm_requests_total")
	t.Logf("%d traces were on a disk that was damaged, and %.0f of them arrived; %d came after it", len(lost), measured-float64(len(sent)), len(sent))
	assert.GreaterOrEqual(t, measured, float64(len(sent)))
}
