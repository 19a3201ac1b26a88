package sim

import (
	"bufio"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Unix(1796043312, 0).UTC()

// run lets calls come for the given time, then waits until all have ended.
func run(t testing.TB, cfg Config, traffic time.Duration) (*World, Output) {
	t.Helper()
	w, err := New(cfg, start)
	require.NoError(t, err)
	w.Advance(traffic)
	w.StopArrivals()
	for range 3600 {
		if w.InFlight() == 0 {
			break
		}
		w.Advance(w.Now() + time.Second)
	}
	require.Zero(t, w.InFlight(), "calls never ended")
	w.Advance(w.Now() + time.Second) // spans that end after their call
	return w, w.Drain()
}

// only is a world with one engine, no gateway and no Poisson arrivals.
func only(change func(*Config)) Config {
	cfg := DefaultConfig()
	cfg.Rate = 0
	cfg.Engines = cfg.Engines[:1]
	cfg.Engines[0].Startup = 0
	cfg.Gateway.Enabled = false
	if change != nil {
		change(&cfg)
	}
	return cfg
}

// plain is a call for one answer of out tokens.
func plain(model string, prompt, out int) Call {
	return Call{
		Model: model, Team: "search", Route: RouteChat, Kind: KindSingle, Prompts: []int{prompt}, Outputs: []int{out}, MaxTokens: out,
		Temperature: 1, TopP: 1,
	}
}

// flat is a span with what surrounds it.
type flat struct {
	ptrace.Span
	resource pcommon.Map
	scope    pcommon.InstrumentationScope
	schema   string
}

func spansOf(tds ...ptrace.Traces) (all []flat) {
	for _, td := range tds {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, sp := range ss.Spans().All() {
					all = append(all, flat{sp, rs.Resource().Attributes(), ss.Scope(), ss.SchemaUrl()})
				}
			}
		}
	}
	return all
}

func (o Output) spans() (all []flat) {
	for _, e := range o.Exports {
		all = append(all, spansOf(e.Traces)...)
	}
	return all
}

func named(all []flat, name string) (some []flat) {
	for _, s := range all {
		if s.Name() == name {
			some = append(some, s)
		}
	}
	return some
}

// recorded reads a recording of OTLP/JSON lines.
func recorded(t testing.TB, name string) (all []flat) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(lines.Bytes())
		require.NoError(t, err)
		all = append(all, spansOf(td)...)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, all)
	return all
}
