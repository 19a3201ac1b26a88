//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
	"github.com/otelcol-llm/otelcol-llm/internal/sim/live"
)

// seconds of traffic in the main test.
func trafficSeconds(t testing.TB) time.Duration {
	t.Helper()
	v := os.Getenv("OTELCOL_LLM_E2E_SECONDS")
	if v == "" {
		return 60 * time.Second
	}
	n, err := strconv.Atoi(v)
	require.NoError(t, err, "OTELCOL_LLM_E2E_SECONDS must be a number")
	return time.Duration(n) * time.Second
}

// load is an installation that two engines serve at 230 calls a second, near their limits, so that there are queues.
func load() sim.Config {
	c := sim.DefaultConfig()
	c.Seed, c.Rate = 4, 230
	for i := range c.Engines {
		e := &c.Engines[i]
		e.Prompt = sim.Lengths{Median: 120, Sigma: 0.7, Min: 4, Max: 4000}
		e.Output = sim.Lengths{Median: 25, Sigma: 0.7, Min: 1, Max: 400}
		e.StepPerSequence = 20 * time.Microsecond
	}
	chat, reason := &c.Engines[0], &c.Engines[1]
	chat.Name, chat.MaxNumSeqs, chat.StepBase, chat.PrefillRate = "sim-chat", 56, 5*time.Millisecond, 120000
	reason.Name, reason.MaxNumSeqs, reason.StepBase, reason.PrefillRate = "sim-reason", 32, 6*time.Millisecond, 40000
	c.Mix.Choices, c.Mix.Prompts, c.Mix.Beam, c.Mix.Abort, c.Mix.Refused = 0.05, 0.05, 0.01, 0.03, 0.02
	c.Gateway.Name, c.Client.Name = "sim-gateway", "sim-app"
	c.Gateway.Chunks = 0.05
	c.Faults = []sim.Fault{
		{Kind: sim.FaultGateway5xx, At: 8 * time.Second, For: time.Second, Factor: 0.3},
		{Kind: sim.FaultSlowPrefill, At: 12 * time.Second, For: 2 * time.Second, Engine: "sim-chat", Factor: 3},
		{Kind: sim.FaultKVPressure, At: 20 * time.Second, For: 4 * time.Second, Engine: "sim-reason", Factor: 0.99},
		{Kind: sim.FaultEngineCrash, At: 28 * time.Second, For: 2 * time.Second, Engine: "sim-reason"},
	}
	return c
}

// outcome is what the simulator knows of a run.
type outcome struct {
	truths  []sim.Truth
	totals  sim.Totals
	elapsed time.Duration
	sent    int            // spans accepted by the collector
	byTrace map[string]int // engine spans accepted, by trace id
}

// drive runs the installation in real time against a collector and returns when every span was accepted.
// With double, the first engine span is sent once more under other ids.
func drive(t testing.TB, cfg sim.Config, url string, traffic time.Duration, double bool) outcome {
	t.Helper()
	var mu sync.Mutex
	o := outcome{byTrace: map[string]int{}}
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	defer transport.CloseIdleConnections()
	p := live.NewPusher(&http.Client{Transport: transport, Timeout: 30 * time.Second}, url, 10000, func(x live.Sent) {
		mu.Lock()
		defer mu.Unlock()
		if x.Err != nil {
			t.Errorf("%d spans of %s were not accepted: %v", x.Spans, x.Service, x.Err)
			return
		}
		o.sent += x.Spans
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { p.Run(ctx) })
	push := p.Push
	if double {
		push = func(all []sim.Export) {
			if copied, ok := again(all); ok && double {
				double = false
				all = append(all, copied)
			}
			p.Push(all)
		}
	}
	l, err := live.New(cfg, live.Options{
		ExportEvery: 250 * time.Millisecond, Push: push,
		Ended: func(x *sim.Truth) { o.truths = append(o.truths, *x) }, // one caller at a time
	})
	require.NoError(t, err)
	begin := time.Now()
	worldCtx, stopWorld := context.WithCancel(ctx)
	world := make(chan struct{})
	go func() {
		defer close(world)
		l.Run(worldCtx)
	}()
	timer := time.NewTimer(traffic)
	defer timer.Stop()
	<-timer.C
	o.elapsed = time.Since(begin)
	drainCtx, stopDrain := context.WithTimeout(ctx, 2*time.Minute)
	defer stopDrain()
	require.NoError(t, l.Drain(drainCtx))
	stopWorld()
	<-world
	require.NoError(t, p.Flush(drainCtx))
	for i := range o.truths {
		if n := len(o.truths[i].Sequences); n > 0 {
			o.byTrace[o.truths[i].Trace] = n
		}
	}
	o.totals = sum(o.truths)
	return o
}

// sum adds up truths as the simulator does.
func sum(all []sim.Truth) sim.Totals {
	t := sim.Totals{Status: map[sim.Status]int64{}, Seen: sim.SeenTotals{Status: map[sim.Status]int64{}}}
	for i := range all {
		x := &all[i]
		t.Ended++
		t.Status[x.Status]++
		t.InputTokens += int64(x.InputTokens)
		t.OutputTokens += int64(x.OutputTokens)
		t.EngineSpans += int64(len(x.Sequences))
		if x.Seen.Spans > 0 {
			t.Seen.Calls++
			t.Seen.Status[x.Seen.Status]++
			t.Seen.InputTokens += int64(x.Seen.InputTokens)
			t.Seen.OutputTokens += int64(x.Seen.OutputTokens)
		}
	}
	return t
}

// again copies the first request of an engine under another trace and span id.
func again(all []sim.Export) (sim.Export, bool) {
	for _, e := range all {
		for _, s := range spansOf(e.Traces) {
			if s.Name() != "llm_request" {
				continue
			}
			td := ptrace.NewTraces()
			rs := td.ResourceSpans().AppendEmpty()
			e.Traces.ResourceSpans().At(0).Resource().CopyTo(rs.Resource())
			sp := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			s.CopyTo(sp)
			id, trace := sp.SpanID(), sp.TraceID()
			id[0], trace[0] = id[0]^0xff, trace[0]^0xff
			sp.SetSpanID(id)
			sp.SetTraceID(trace)
			return sim.Export{Service: e.Service, Traces: td}, true
		}
	}
	return sim.Export{}, false
}
