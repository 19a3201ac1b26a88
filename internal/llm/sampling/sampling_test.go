package sampling

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

func traceID(r *rand.Rand) (id pcommon.TraceID) {
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	return id
}

func TestFivePercentIsWrittenAtFullPrecision(t *testing.T) {
	th, keep := Ratio(0.05)
	require.True(t, keep)
	assert.Equal(t, "f3333333333333", th.TValue())
	assert.Equal(t, 20.0, th.AdjustedCount())
	_, keep = Ratio(0)
	assert.False(t, keep)
	th, keep = Ratio(1)
	assert.True(t, keep)
	assert.Equal(t, 1.0, th.AdjustedCount())
}

func TestRulesAreAskedInOrder(t *testing.T) {
	s := New(Config{
		Baseline: 0.05,
		Slow:     Slow{TTFT: 5, TPOT: .2, E2E: 60, Queue: 5},
		Models:   map[string]Model{"batch": {Share: -1, Slow: &Slow{E2E: 600}}, "rare": {Share: 1}},
		Rules:    []Rule{{Name: "vip", Share: 1}},
	})
	ok := Call{Status: request.StatusOK, TTFT: request.Some(.1), E2E: request.Some(2.0), Queue: request.Some(.01)}
	with := func(f func(*Call)) []Call { c := ok; f(&c); return []Call{c} }
	for _, c := range []struct {
		name  string
		trace Trace
		rule  string
	}{
		{"normal", Trace{Calls: []Call{ok}}, RuleBaseline},
		{"any span failed", Trace{Calls: []Call{ok}, Error: true}, RuleError},
		{"error beats slow", Trace{Calls: with(func(c *Call) { c.Status, c.Queue = request.StatusError, request.Some(9.0) })}, RuleError},
		{"cancelled", Trace{Calls: with(func(c *Call) { c.Status = request.StatusCancelled })}, RuleCancelled},
		{"slow by queue", Trace{Calls: with(func(c *Call) { c.Queue = request.Some(5.1) })}, RuleSlow},
		{"slow by the user's first token", Trace{Calls: with(func(c *Call) { c.UserTTFT = request.Some(5.1) })}, RuleSlow},
		{"slow by tokens", Trace{Calls: with(func(c *Call) { c.TPOT = request.Some(.21) })}, RuleSlow},
		{"at the limit is not over it", Trace{Calls: with(func(c *Call) { c.Queue = request.Some(5.0) })}, RuleBaseline},
		{"a model's own limits replace the general", Trace{Calls: with(func(c *Call) { c.Model, c.E2E = "batch", request.Some(300.0) })}, RuleBaseline},
		{"no LLM request, long trace", Trace{Duration: 61}, RuleSlow},
		{"attribute", Trace{Calls: []Call{ok}, Match: func(i int) bool { return i == 0 }}, "vip"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.trace.State = ReadState(pcommon.TraceID{15: 1}, "")
			d := s.Decide(time.Unix(1, 0), &c.trace)
			assert.Equal(t, c.rule, d.Rule)
			assert.Equal(t, c.rule != RuleBaseline, d.Keep, "the trace's randomness is next to 0: only a certain rule keeps it")
		})
	}
	d := s.Decide(time.Unix(1, 0), &Trace{State: ReadState(pcommon.TraceID{15: 1}, ""), Calls: with(func(c *Call) { c.Model = "rare" })})
	assert.True(t, d.Keep, "a model's own ratio")
}

func TestAnIncomingThresholdIsNeverRaised(t *testing.T) {
	s := New(Config{Baseline: 0.05})
	r := rand.New(rand.NewPCG(1, 2))
	kept := 0
	for range 100_000 {
		id := traceID(r)
		state := ReadState(id, "ot=th:e6666666666666;x:y,vendor=1") // an SDK's 10 %
		if !state.Known {
			continue // the SDK would have dropped it
		}
		d := s.Decide(time.Unix(1, 0), &Trace{State: state, Error: true})
		require.True(t, d.Keep)
		require.InDelta(t, 10, d.Threshold.AdjustedCount(), 1e-9, "an error that stands for ten still does")
		if n := s.Decide(time.Unix(1, 0), &Trace{State: state}); n.Keep {
			kept++
			require.Equal(t, 20.0, n.Threshold.AdjustedCount())
		}
	}
	assert.InDelta(t, 5000, kept, 4*math.Sqrt(5000), "5 % of all, not of what the SDK left")
	assert.Equal(t, "ot=th:f3333333333333;x:y,vendor=1", func() string {
		th, _ := Ratio(0.05)
		return WriteThreshold("ot=th:e6666666666666;x:y,vendor=1", th)
	}())
}

// Pearson's test of fit on the kept share, and the sum of weights against the number of traces.
func TestFivePercentIsFivePercent(t *testing.T) {
	const n = 200_000
	s := New(Config{Baseline: 0.05})
	r := rand.New(rand.NewPCG(3, 4))
	var kept, weight float64
	for range n {
		d := s.Decide(time.Unix(1, 0), &Trace{State: ReadState(traceID(r), "")})
		if d.Keep {
			kept++
			weight += d.Threshold.AdjustedCount()
		}
	}
	expected := 0.05 * n
	chi2 := (kept-expected)*(kept-expected)/expected + (kept-expected)*(kept-expected)/(n-expected)
	assert.Less(t, chi2, 10.83, "one degree of freedom, p = 0.001; kept %v", kept)
	sigma := 20 * math.Sqrt(n*0.05*0.95)
	assert.InDelta(t, n, weight, 3*sigma)
}

func TestTwoProcessesDecideTheSame(t *testing.T) {
	a, b := New(Config{Baseline: 0.3}), New(Config{Baseline: 0.3})
	r := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		st := ReadState(traceID(r), "")
		require.Equal(t, a.Decide(time.Unix(1, 0), &Trace{State: st}).Keep, b.Decide(time.Unix(9, 0), &Trace{State: st}).Keep)
	}
}

func TestACapLowersTheShareAndSaysSo(t *testing.T) {
	s := New(Config{Baseline: 0.05, Caps: map[string]float64{RuleError: 100}})
	r := rand.New(rand.NewPCG(7, 8))
	var kept, weight, total float64
	for sec := range 60 {
		n := 2000
		for range n {
			total++
			if d := s.Decide(time.Unix(int64(sec+1), 0), &Trace{State: ReadState(traceID(r), ""), Error: true}); d.Keep {
				kept++
				weight += d.Threshold.AdjustedCount()
			}
		}
	}
	assert.Less(t, kept, 60*100*1.3+500, "about the cap; a burst's first second is seen as it goes on")
	assert.InEpsilon(t, total, weight, 0.1, "the weights still sum to all errors")
}

func TestAThresholdThatTheRandomnessBeliesIsNotBelieved(t *testing.T) {
	s := ReadState(pcommon.TraceID{1}, "ot=th:8;rv:00112233445566")
	assert.False(t, s.Known)
	assert.Equal(t, 1.0, s.Incoming.AdjustedCount())
}

func FuzzReadState(f *testing.F) {
	f.Add("ot=th:8;rv:00112233445566,vendor=x")
	f.Add("ot=th:f3333333333333")
	f.Add(",,ot=;==")
	f.Fuzz(func(t *testing.T, ts string) {
		s := ReadState(pcommon.TraceID{9, 8, 7, 6, 5, 4, 3, 2, 1, 9, 8, 7, 6, 5, 4, 3}, ts)
		if s.Known && !s.Incoming.ShouldSample(s.Randomness) {
			t.Fatal("an incoming threshold that was not applied")
		}
		th, _ := Ratio(0.05)
		out := ReadState(pcommon.TraceID{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, WriteThreshold(ts, th))
		if out.Known && out.Incoming.AdjustedCount() != 20 {
			t.Fatalf("wrote %q", WriteThreshold(ts, th))
		}
	})
}
