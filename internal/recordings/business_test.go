package recordings_test

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor"
)

// price is what a model costs for a million tokens, as decimal texts for exact arithmetic beside the code under test.
type price struct{ input, cached, output, request string }

var prices = map[string]price{
	"small":  {"0.1", "0.025", "0.4", "0"},
	"large":  {"2.5", "1.25", "10", "0"},
	"hosted": {"0.000003", "0.000003", "0.7", "0.0001"},
	"free":   {}, // no price
}

func rat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic(s)
	}
	return r
}

// businessConfig asks for everything.
func businessConfig(t *testing.T) *llmspanprocessor.Config {
	t.Helper()
	cfg := llmspanprocessor.NewFactory().CreateDefaultConfig().(*llmspanprocessor.Config)
	cfg.SLO = []llmspanprocessor.SLOConfig{{Model: "small", TTFT: 300 * time.Millisecond}, {Model: "*", TTFT: time.Second, E2E: 4 * time.Second}}
	cfg.Dimensions = []llmspanprocessor.DimensionConfig{
		{Name: "team", From: []string{"header.x-team"}, Default: "nobody", MaxValues: 3},
		{Name: "tier", From: []string{"span.tier", "resource.tier"}},
	}
	cfg.OversizeTokens = 5000
	cfg.Quality.Refusal = true
	for model, p := range prices {
		if p.input == "" {
			continue
		}
		f := func(s string) *float64 { v, _ := rat(s).Float64(); return &v }
		cfg.Prices.Models = append(cfg.Prices.Models, llmspanprocessor.PriceConfig{
			Model: model, Input: f(p.input), CachedInput: f(p.cached), Output: f(p.output), Request: *f(p.request),
		})
	}
	return cfg
}

// bill is what the figures are compared by.
type bill struct{ model, team, status string }

// books are what a day costs.
type books struct {
	requests, input, cached, output, met, missed, good map[bill]int64
	cost, saved                                        map[bill]*big.Rat
	unpriced                                           int64
}

func newBooks() *books {
	m := func() map[bill]int64 { return map[bill]int64{} }
	return &books{m(), m(), m(), m(), m(), m(), m(), map[bill]*big.Rat{}, map[bill]*big.Rat{}, 0}
}

func addRat(m map[bill]*big.Rat, k bill, v *big.Rat) {
	if m[k] == nil {
		m[k] = new(big.Rat)
	}
	m[k].Add(m[k], v)
}

// day makes n requests and what is true of them: several models, teams, prices, cached prefixes, sequences, failures and cancellations.
func day(seed uint64, n int) (traces []ptrace.Traces, truth *books) {
	r := rand.New(rand.NewPCG(seed, 7))
	truth = newBooks()
	models := []string{"small", "large", "hosted", "free"}
	for i := range n {
		td := ptrace.NewTraces()
		trace := pcommon.TraceID{1: byte(seed), 2: 1, 12: byte(i >> 16), 13: byte(i >> 8), 14: byte(i), 15: byte(r.Uint32())}
		start := pcommon.Timestamp(1_796_045_488_000+int64(i)*37) * 1e6
		span := func(rs ptrace.ResourceSpans, id, parent byte, name string, from, to time.Duration) ptrace.Span {
			s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			s.SetTraceID(trace)
			s.SetSpanID(pcommon.SpanID{id, byte(i >> 8), byte(i), 1})
			if parent != 0 {
				s.SetParentSpanID(pcommon.SpanID{parent, byte(i >> 8), byte(i), 1})
			}
			s.SetName(name)
			s.SetKind(ptrace.SpanKindServer)
			s.SetStartTimestamp(start + pcommon.Timestamp(from))
			s.SetEndTimestamp(start + pcommon.Timestamp(to))
			return s
		}
		k := bill{models[r.IntN(len(models))], "nobody", "ok"}
		ttft := time.Duration(r.IntN(2000)) * time.Millisecond
		length := ttft + time.Duration(50+r.IntN(4000))*time.Millisecond
		gw := td.ResourceSpans().AppendEmpty()
		gw.Resource().Attributes().PutStr("service.name", "gateway")
		g := span(gw, 1, 0, "POST /v1/chat/completions", 0, length+20*time.Millisecond)
		g.Attributes().PutStr("http.request.method", "POST")
		g.Attributes().PutStr("url.path", "/v1/chat/completions")
		g.Attributes().PutStr("gen_ai.request.model", k.model)
		if team := r.IntN(4); team > 0 {
			k.team = fmt.Sprint("team-", team)
			g.Attributes().PutEmptySlice("http.request.header.x_team").AppendEmpty().SetStr(k.team)
		}
		switch r.IntN(10) {
		case 0:
			k.status = "error"
			g.Attributes().PutInt("http.response.status_code", 503)
		case 1:
			k.status = "cancelled"
			g.Attributes().PutInt("http.response.status_code", 499)
		default:
			g.Attributes().PutInt("http.response.status_code", 200)
		}
		sequences := []int{1, 1, 1, 3}[r.IntN(4)]
		in, cached := int64(1+r.IntN(4000)), int64(0)
		if r.IntN(2) == 0 {
			cached = r.Int64N(in + 1)
		}
		engine := td.ResourceSpans().AppendEmpty()
		engine.Resource().Attributes().PutStr("service.name", "engine")
		engine.Resource().Attributes().PutStr("tier", "gold")
		var out int64
		for q := range sequences {
			s := span(engine, byte(10+q), 1, "llm_request", 10*time.Millisecond, 10*time.Millisecond+length)
			o := int64(1 + r.IntN(900))
			out += o
			a := s.Attributes()
			a.PutStr("gen_ai.request.id", fmt.Sprintf("chatcmpl-%d-%d", seed, i))
			a.PutStr("gen_ai.request.model", k.model)
			a.PutInt("gen_ai.usage.prompt_tokens", in)
			a.PutInt("gen_ai.usage.completion_tokens", o)
			a.PutInt("gen_ai.usage.cache_read.input_tokens", cached)
			a.PutDouble("gen_ai.latency.time_to_first_token", ttft.Seconds())
			a.PutDouble("gen_ai.latency.e2e", length.Seconds())
		}
		traces = append(traces, td)

		truth.requests[k]++
		truth.input[k] += in
		truth.cached[k] += cached
		truth.output[k] += out
		missed := k.status != "ok" || (k.model == "small" && ttft > 300*time.Millisecond) ||
			(k.model != "small" && (ttft > time.Second || length > 4*time.Second))
		if missed {
			truth.missed[k]++
		} else {
			truth.met[k]++
			truth.good[k] += out
		}
		p := prices[k.model]
		if p.input == "" {
			truth.unpriced++
			continue
		}
		million := big.NewRat(1_000_000, 1)
		times := func(n int64, price string) *big.Rat {
			x := new(big.Rat).Mul(big.NewRat(n, 1), rat(price))
			return x.Quo(x, million)
		}
		c := new(big.Rat).Add(times(in-cached, p.input), times(cached, p.cached))
		c.Add(c, times(out, p.output)).Add(c, rat(p.request))
		addRat(truth.cost, k, c)
		addRat(truth.saved, k, new(big.Rat).Sub(times(cached, p.input), times(cached, p.cached)))
	}
	return traces, truth
}

// pipeline runs batches through the pair; with sampling on the processor's shutdown decides, and the connector gets what it passes on.
func pipeline(t *testing.T, cfg *llmspanprocessor.Config, batches []ptrace.Traces) result {
	t.Helper()
	ctx := context.Background()
	traces := new(consumertest.TracesSink)
	pf, cf := llmspanprocessor.NewFactory(), llmspanconnector.NewFactory()
	p, err := pf.CreateTraces(ctx, processortest.NewNopSettings(pf.Type()), cfg, traces)
	require.NoError(t, err)
	require.NoError(t, p.Start(ctx, nil))
	var res result
	for _, td := range batches {
		res.spansIn += td.SpanCount()
		require.NoError(t, p.ConsumeTraces(ctx, td))
	}
	if cfg.Sampling.DecisionDelay < time.Second { // decide before the end, which would cut the traces
		require.Eventually(t, func() bool { return traces.SpanCount() > 0 }, 10*time.Second, 10*time.Millisecond)
	}
	require.NoError(t, p.Shutdown(ctx))
	metrics, logs := new(consumertest.MetricsSink), new(consumertest.LogsSink)
	cc := cf.CreateDefaultConfig().(*llmspanconnector.Config)
	cc.Records = llmspanconnector.RecordsAll
	cs := connectortest.NewNopSettings(cf.Type())
	toMetrics, err := cf.CreateTracesToMetrics(ctx, cs, cc, metrics)
	require.NoError(t, err)
	toLogs, err := cf.CreateTracesToLogs(ctx, cs, cc, logs)
	require.NoError(t, err)
	require.NoError(t, toMetrics.Start(ctx, nil))
	require.NoError(t, toLogs.Start(ctx, nil))
	res.traces = traces.AllTraces()
	for _, td := range res.traces {
		require.NoError(t, toMetrics.ConsumeTraces(ctx, td))
		require.NoError(t, toLogs.ConsumeTraces(ctx, td))
	}
	require.NoError(t, toMetrics.Shutdown(ctx))
	require.NoError(t, toLogs.Shutdown(ctx))
	res.metrics = pmetric.NewMetrics()
	if all := metrics.AllMetrics(); len(all) > 0 {
		res.metrics = all[len(all)-1]
	}
	for _, ld := range logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					res.records = append(res.records, lr)
				}
			}
		}
	}
	return res
}

// sums adds up the points of a counter by what f makes of their labels; f leaves a point out with false.
func sums(res result, name string, f func(pcommon.Map) (bill, bool)) map[bill]float64 {
	out := map[bill]float64{}
	for _, rm := range res.metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != name {
					continue
				}
				for _, dp := range m.Sum().DataPoints().All() {
					if k, ok := f(dp.Attributes()); ok {
						out[k] += dp.DoubleValue()
					}
				}
			}
		}
	}
	return out
}

func label(a pcommon.Map, k string) string {
	if v, ok := a.Get(k); ok {
		return v.AsString()
	}
	return ""
}

func byKey(a pcommon.Map) (bill, bool) {
	return bill{label(a, names.RequestModel), label(a, "team"), label(a, names.MetricStatus)}, true
}

// with keeps the points that have a label; the status is not on all metrics.
func with(k, v string) func(pcommon.Map) (bill, bool) {
	return func(a pcommon.Map) (bill, bool) { out, _ := byKey(a); return out, label(a, k) == v }
}

func ints(m map[bill]int64) map[bill]float64 {
	out := map[bill]float64{}
	for k, v := range m {
		if v != 0 {
			out[k] = float64(v)
		}
	}
	return out
}

func floats(m map[bill]*big.Rat) map[bill]float64 {
	out := map[bill]float64{}
	for k, v := range m {
		if v.Sign() != 0 {
			out[k], _ = v.Float64()
		}
	}
	return out
}

// noStatus sums over the statuses.
func noStatus(m map[bill]float64) map[bill]float64 {
	out := map[bill]float64{}
	for k, v := range m {
		k.status = ""
		out[k] += v
	}
	return out
}

// What a day of requests costs, by model, team and outcome, equals an independent calculation: to the token, to the request, and to the
// last digit of a double; the records add up to it exactly.
func TestTheBusinessOfADay(t *testing.T) {
	for name, prepare := range map[string]func([]ptrace.Traces, *llmspanprocessor.Config) []ptrace.Traces{
		"a batch for each trace": func(in []ptrace.Traces, _ *llmspanprocessor.Config) []ptrace.Traces { return in },
		"one batch": func(in []ptrace.Traces, _ *llmspanprocessor.Config) []ptrace.Traces {
			all := ptrace.NewTraces()
			for _, td := range in {
				td.ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
			}
			return []ptrace.Traces{all}
		},
		"whole traces, their spans apart and shuffled": func(in []ptrace.Traces, cfg *llmspanprocessor.Config) []ptrace.Traces {
			cfg.Sampling.Enabled = true
			var out []ptrace.Traces
			for _, td := range in {
				for _, rs := range td.ResourceSpans().All() {
					for _, ss := range rs.ScopeSpans().All() {
						one := ptrace.NewTraces()
						to := one.ResourceSpans().AppendEmpty()
						rs.Resource().CopyTo(to.Resource())
						ss.CopyTo(to.ScopeSpans().AppendEmpty())
						out = append(out, one)
					}
				}
			}
			rand.New(rand.NewPCG(5, 6)).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, truth := day(3, 400)
			cfg := businessConfig(t)
			res := pipeline(t, cfg, prepare(in, cfg))
			assert.Equal(t, ints(truth.requests), sums(res, "llm.requests", byKey))
			assert.Equal(t, ints(truth.input), sums(res, "llm.input_tokens", byKey))
			assert.Equal(t, ints(truth.cached), positive(sums(res, "llm.input_tokens", with(names.MetricCached, "true"))))
			assert.Equal(t, ints(truth.output), sums(res, "llm.output_tokens", byKey))
			assert.Equal(t, noStatus(ints(truth.met)), sums(res, "llm.slo.requests", with(names.MetricSLOOutcome, "met")))
			assert.Equal(t, noStatus(ints(truth.missed)), sums(res, "llm.slo.requests", with(names.MetricSLOOutcome, "missed")))
			assert.Equal(t, noStatus(ints(truth.good)), sums(res, "llm.slo.output_tokens", with(names.MetricSLOOutcome, "met")))
			assert.Equal(t, floats(truth.cost), sums(res, "llm.cost", byKey), "to the last digit")
			assert.Equal(t, floats(truth.saved), sums(res, "llm.cost.saved", byKey))
			unpriced := 0.0
			for _, v := range sums(res, "llm.requests.unpriced", byKey) {
				unpriced += v
			}
			assert.EqualValues(t, truth.unpriced, unpriced)
			got := newBooks()
			for _, lr := range res.records {
				a := lr.Attributes()
				k := bill{label(a, names.RequestModel), label(a, "team"), label(a, names.Status)}
				if _, part := a.Get(names.RecordPart); !part {
					got.requests[k]++
				}
				assert.Equal(t, "gold", label(a, "tier"))
				if exact := label(a, names.CostExact); exact != "" {
					addRat(got.cost, k, rat(exact))
				}
			}
			assert.Equal(t, truth.requests, got.requests)
			require.Len(t, got.cost, len(truth.cost))
			for k, v := range truth.cost {
				assert.Zero(t, v.Cmp(got.cost[k]), "%v: %s in the records, %s is true", k, got.cost[k].FloatString(15), v.FloatString(15))
			}
			shares := new(big.Rat)
			for _, td := range res.traces {
				each(td, func(s ptrace.Span) {
					if v, ok := s.Attributes().Get(names.Cost); ok {
						shares.Add(shares, new(big.Rat).SetFloat64(v.Double()))
					}
				})
			}
			total := new(big.Rat)
			for _, v := range truth.cost {
				total.Add(total, v)
			}
			want, _ := total.Float64()
			have, _ := shares.Float64()
			assert.InEpsilon(t, want, have, 1e-12, "the shares on the spans add up")
		})
	}
}

func positive(m map[bill]float64) map[bill]float64 {
	out := map[bill]float64{}
	for k, v := range m {
		if v > 0 {
			out[k] = v
		}
	}
	return out
}

// Sequences of one call that come in batches of their own cost what the call costs: the prompt once.
func TestACallInSeveralBatchesCostsWhatItCosts(t *testing.T) {
	in, truth := day(9, 200)
	var out []ptrace.Traces
	for _, td := range in {
		for _, rs := range slices.Collect(func(yield func(ptrace.ResourceSpans) bool) {
			for _, rs := range td.ResourceSpans().All() {
				if label(rs.Resource().Attributes(), "service.name") == "engine" && !yield(rs) {
					return
				}
			}
		}) {
			for _, ss := range rs.ScopeSpans().All() {
				one := ptrace.NewTraces()
				to := one.ResourceSpans().AppendEmpty()
				rs.Resource().CopyTo(to.Resource())
				ss.CopyTo(to.ScopeSpans().AppendEmpty())
				out = append(out, one)
			}
		}
	}
	res := pipeline(t, businessConfig(t), out)
	want, got := new(big.Rat), 0.0
	for _, v := range truth.cost {
		want.Add(want, v)
	}
	exact := new(big.Rat)
	for _, lr := range res.records {
		if c := label(lr.Attributes(), names.CostExact); c != "" {
			exact.Add(exact, rat(c))
		}
	}
	for _, v := range sums(res, "llm.cost", byKey) {
		got += v
	}
	f, _ := want.Float64()
	assert.InEpsilon(t, f, got, 1e-14)
	assert.Zero(t, want.Cmp(exact), "the records: %s, true: %s", exact.FloatString(12), want.FloatString(12))
}
