//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/child"
	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

// rules raise one alert, on the errors that the simulated gateway answers with.
const rules = `
groups:
  - name: e2e
    rules:
      - {alert: LLMErrors, expr: 'sum(llm_requests_total{via="scrape",llm_status="error"}) > 0'}
`

// supports tells whether the binary knows a mode: one that does not refuses its configuration.
func supports(t testing.TB, m mode) bool {
	t.Helper()
	config := `
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}
processors: {llmspan: ` + m.processor + `}
exporters: {nop: {}}
service: {pipelines: {traces: {receivers: [otlp], processors: [llmspan], exporters: [nop]}}}
`
	out, err := exec.Command(binary(t), "validate", "--config", write(t, "mode.yaml", config)).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "sampling") {
		t.Fatalf("validate: %v\n%s", err, out)
	}
	return err == nil
}

// prove drives the installation through the binary into real backends and returns what differs from the truth, once it no
// longer changes or after patience.
func prove(t *testing.T, m mode, cfg sim.Config, traffic, patience time.Duration, change func(*setup)) ([]string, outcome) {
	t.Helper()
	s := &setup{Mode: m, Scrape: child.FreePorts(t, 1)[0]}
	if change != nil {
		change(s)
	}
	b := startBackends(t, "127.0.0.1:"+s.Scrape, rules)
	s.Backends = &b
	out := newSink(t)
	s.Sink = out.URL
	startCollector(t, s)
	o := drive(t, cfg, s.tracesURL(), traffic, s.Double)
	ended := time.Now()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	lastly := "none"
	for {
		var r report
		b.flush(&r)
		kept := out.spans()
		stages(&r, m, kept, o.truths)
		b.exemplars(&r, kept)
		for _, p := range b.paths() {
			p.metrics(&r, m, o.truths)
		}
		b.records(&r, m, o.truths)
		if names, err := b.alerts(); err != nil || o.totals.Seen.Status[sim.StatusError] > 0 && !names["LLMErrors"] {
			r.add("Alertmanager holds %v: %v", names, err)
		}
		if len(r.lines) == 0 || time.Since(ended) > patience {
			t.Logf("%s: %d calls in %.0f s (%.0f/s), %d spans, %d engine spans, %d input and %d output tokens, seen %v; compared %.0f s after the end, the last difference before: %s",
				m.name, o.totals.Ended, o.elapsed.Seconds(), float64(o.totals.Ended)/o.elapsed.Seconds(), o.sent, o.totals.EngineSpans,
				o.totals.Seen.InputTokens, o.totals.Seen.OutputTokens, o.totals.Seen.Status, time.Since(ended).Seconds(), lastly)
			return r.lines, o
		}
		lastly = r.lines[len(r.lines)-1]
		<-tick.C
	}
}

// The main proof: what backends hold after a minute of traffic with faults equals the truth.
func TestBackendsHoldTheTruth(t *testing.T) {
	full := trafficSeconds(t)
	modes := []mode{stateless}
	length := map[string]time.Duration{stateless.name: full}
	if supports(t, assembled) {
		modes = append(modes, assembled)
		length[stateless.name], length[assembled.name] = full/4, full
	}
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			differences, o := prove(t, m, load(), length[m.name], 60*time.Second, nil)
			for _, d := range differences[:min(len(differences), 40)] {
				t.Error(d)
			}
			if len(differences) > 40 {
				t.Errorf("and %d more", len(differences)-40)
			}
			assert.GreaterOrEqual(t, float64(o.totals.Ended)/o.elapsed.Seconds(), 200.0, "calls per second")
			for _, k := range []sim.Kind{sim.KindSingle, sim.KindChoices, sim.KindPrompts, sim.KindBeam} {
				n := 0
				for i := range o.truths {
					if o.truths[i].Kind == k && o.truths[i].Status == sim.StatusOK {
						n++
					}
				}
				assert.Positive(t, n, "calls of kind %s", k)
			}
		})
	}
	if len(modes) == 1 {
		t.Run(assembled.name, func(t *testing.T) {
			t.Skip("this binary's llmspan processor has no sampling key yet: whole traces are not proved")
		})
	}
}

// A fault planted on the way must be seen. Each is a real one in the data path: by a transform processor, or by sending twice.
func TestPlantedFaultsAreSeen(t *testing.T) {
	cfg := load()
	cfg.Faults = nil
	// Sequences of one call may wait for each other for the connector's join window, 10 s.
	const traffic, patience = 4 * time.Second, 25 * time.Second
	victim := firstRequest(t, cfg)
	for _, tt := range []struct {
		name  string
		plant func(*setup)
		want  []string // each is part of some difference
		not   []string // of none
	}{
		{"nothing", nil, nil, []string{""}}, // in every difference
		{
			"a wrong stage boundary",
			func(s *setup) {
				s.TransformOut = `{trace_statements: ['set(span.start_time_unix_nano, span.start_time_unix_nano + 3000) where span.name == "llm.prefill"', 'set(span.end_time_unix_nano, span.end_time_unix_nano + 3000) where span.name == "llm.queue"']}`
			},
			[]string{"a boundary of llm.prefill is off by 3"},
			[]string{"tokens", "requests"},
		},
		{
			"traces under an id of their own at the trace backend",
			func(s *setup) {
				s.TransformOut = `{trace_statements: ['set(span.trace_id.string, "0123456789abcdef0123456789abcdef")']}`
			},
			[]string{"an exemplar points to span"},
			[]string{"tokens"},
		},
		{
			"a lost token",
			func(s *setup) {
				s.Transform = fmt.Sprintf(`{trace_statements: ['set(span.attributes["gen_ai.usage.completion_tokens"], span.attributes["gen_ai.usage.completion_tokens"] - 1) where span.attributes["gen_ai.request.id"] == %q']}`, victim)
			},
			[]string{"scraped, sim-chat: output tokens", "records of sim-chat: output tokens"},
			[]string{"came", "boundary", "requests:"},
		},
		{
			"a doubled request",
			func(s *setup) { s.Double = true },
			[]string{": requests", "time_to_first_token count", "records of sim-"},
			[]string{"boundary"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			differences, _ := prove(t, stateless, cfg, traffic, patience, tt.plant)
			all := strings.Join(differences, "\n")
			t.Logf("%d differences, the first: %.300s", len(differences), all)
			for _, w := range tt.want {
				if !strings.Contains(all, w) {
					t.Errorf("no difference says %q", w)
				}
			}
			for _, n := range tt.not {
				for _, d := range differences {
					if strings.Contains(d, n) {
						t.Errorf("it is also said: %s", d)
						break
					}
				}
			}
		})
	}
}

// firstRequest is the engine's id of an early plain call to sim-chat: equal seeds make equal ids.
func firstRequest(t testing.TB, cfg sim.Config) string {
	t.Helper()
	w, err := sim.New(cfg, time.Unix(1796043312, 0))
	require.NoError(t, err)
	w.Advance(2 * time.Second)
	for _, x := range w.Drain().Truths {
		if x.Kind == sim.KindSingle && x.Engine == "sim-chat" && x.Status == sim.StatusOK && x.OutputTokens > 5 {
			return x.RequestID
		}
	}
	t.Fatal("no plain call ended in two seconds")
	return ""
}
