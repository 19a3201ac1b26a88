package sim

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// busy is the default world with enough load to queue, and every kind of call.
func busy(seed uint64) Config {
	cfg := DefaultConfig()
	cfg.Seed, cfg.Rate = seed, 60
	cfg.Engines[0].MaxNumSeqs, cfg.Engines[1].MaxNumSeqs = 48, 32
	cfg.Mix.Abort, cfg.Mix.Choices, cfg.Mix.Prompts, cfg.Mix.Beam = 0.1, 0.1, 0.1, 0.05
	return cfg
}

func TestEqualSeedsGiveEqualRunsHoweverTimeIsCut(t *testing.T) {
	once, err := New(busy(7), start)
	require.NoError(t, err)
	once.Advance(20 * time.Second)
	want := once.Drain()

	steps, err := New(busy(7), start)
	require.NoError(t, err)
	for at := time.Duration(0); at < 20*time.Second; at += 37 * time.Millisecond {
		steps.Advance(at)
	}
	steps.Advance(20 * time.Second)
	got := steps.Drain()
	a, err := json.Marshal(want.Truths)
	require.NoError(t, err)
	b, err := json.Marshal(got.Truths)
	require.NoError(t, err)
	assert.JSONEq(t, string(a), string(b))
	require.Len(t, got.Exports, len(want.Exports))
	for i := range want.Exports {
		assert.Equal(t, want.Exports[i], got.Exports[i])
	}
	for _, name := range []string{"vllm-chat", "vllm-reason"} {
		p, err := once.Page(name)
		require.NoError(t, err)
		q, err := steps.Page(name)
		require.NoError(t, err)
		assert.Equal(t, string(p), string(q))
	}

	other, err := New(busy(8), start)
	require.NoError(t, err)
	other.Advance(20 * time.Second)
	c, err := json.Marshal(other.Drain().Truths)
	require.NoError(t, err)
	assert.NotEqual(t, string(a), string(c), "another seed, another run")
}

func TestEveryCallEndsOnceAndNothingStaysInTheEngines(t *testing.T) {
	cfg := busy(3)
	cfg.Faults = []Fault{
		{Kind: FaultEngineCrash, At: 5 * time.Second, For: 2 * time.Second, Engine: "vllm-chat"},
		{Kind: FaultKVPressure, At: 9 * time.Second, For: 4 * time.Second, Factor: 0.97},
		{Kind: FaultGateway5xx, At: 15 * time.Second, For: time.Second, Factor: 0.5},
	}
	w, o := run(t, cfg, 20*time.Second)
	total := w.Totals()
	assert.Equal(t, total.Started, total.Ended)
	assert.Len(t, o.Truths, int(total.Ended))
	sum := int64(0)
	for _, s := range []Status{StatusOK, StatusError, StatusCancelled, StatusRefused} {
		assert.Positive(t, total.Status[s], s)
		sum += total.Status[s]
	}
	assert.Equal(t, total.Ended, sum)
	for _, e := range w.engines {
		assert.Empty(t, e.calls)
		assert.Empty(t, append(append(e.inbox, e.waiting...), e.running...))
		assert.Equal(t, e.Blocks, e.cache.free, "every KV block was given back")
	}
}

func TestSpansSayWhatTheTruthSaysIsSeen(t *testing.T) {
	w, o := run(t, busy(5), 20*time.Second)
	engine := map[pcommon.SpanID]flat{}
	byTrace := map[pcommon.TraceID]int{}
	for _, s := range o.spans() {
		if s.Name() == "llm_request" {
			engine[s.SpanID()] = s
			byTrace[s.TraceID()]++
		}
	}
	n := 0
	kinds := map[Kind]int{}
	for _, x := range o.Truths {
		kinds[x.Kind]++
		assert.Equal(t, len(x.Sequences), byTrace[x.TraceID], "spans of a %s call that ended %s", x.Kind, x.Status)
		if x.Status == StatusRefused || x.Status == StatusCancelled {
			assert.Empty(t, x.Sequences, "a %s call has no engine span", x.Status)
		}
		if x.Status == StatusOK {
			assert.Equal(t, x.Seen.InputTokens, x.InputTokens)
			assert.Equal(t, x.Seen.OutputTokens, x.OutputTokens)
			assert.NotEmpty(t, x.FinishReasons)
		}
		for _, q := range x.Sequences {
			n++
			s, ok := engine[q.Span]
			require.True(t, ok)
			num := func(k string) float64 {
				v, ok := s.Attributes().Get(k)
				require.True(t, ok, k)
				if v.Type() == pcommon.ValueTypeInt {
					return float64(v.Int())
				}
				return v.Double()
			}
			const lat, clock = "gen_ai.latency.", 1e-6 // the wall clock is a double of seconds
			assert.InDelta(t, q.TTFT.Float(), num(lat+"time_to_first_token"), clock)
			assert.InDelta(t, q.E2E.Float(), num(lat+"e2e"), clock)
			assert.InDelta(t, q.Queue.Float(), num(lat+"time_in_queue"), 0)
			assert.InDelta(t, q.Prefill.Float(), num(lat+"time_in_model_prefill"), 0)
			assert.InDelta(t, q.Decode.Float(), num(lat+"time_in_model_decode"), 0)
			assert.InDelta(t, q.Prefill.Float()+q.Decode.Float(), num(lat+"time_in_model_inference"), 1e-9)
			assert.InDelta(t, q.InputTokens, num("gen_ai.usage.prompt_tokens"), 0)
			assert.InDelta(t, q.OutputTokens, num("gen_ai.usage.completion_tokens"), 0)
			assert.Equal(t, q.ID, func() string { v, _ := s.Attributes().Get("gen_ai.request.id"); return v.Str() }())
		}
	}
	assert.Len(t, engine, n, "an engine span without truth")
	for _, k := range []Kind{KindSingle, KindChoices, KindPrompts, KindBeam} {
		assert.Positive(t, kinds[k], k)
	}
	assert.EqualValues(t, n, w.Totals().EngineSpans)
}

func TestStagesAreInOrderAndFit(t *testing.T) {
	_, o := run(t, busy(11), 20*time.Second)
	overshoot, queued := 0, 0
	for _, x := range o.Truths {
		if x.Status != StatusOK {
			continue
		}
		assert.False(t, x.Outer.Start.Before(x.Start))
		for _, q := range x.Sequences {
			assert.Positive(t, q.Queue)
			assert.Positive(t, q.Prefill)
			assert.Positive(t, q.Admission)
			assert.Equal(t, q.TTFT, q.Admission+q.Queue+q.Prefill)
			assert.LessOrEqual(t, q.TTFT, q.E2E)
			assert.LessOrEqual(t, time.Duration(q.E2E), q.End.Sub(q.Start))
			assert.False(t, q.Start.Before(x.Outer.Start), "the engine starts inside the outermost span")
			assert.False(t, q.End.After(x.Outer.End), "and ends inside it")
			if q.OutputTokens == 1 {
				assert.Zero(t, q.Decode)
				assert.Equal(t, q.TTFT, q.E2E)
			}
			if q.Decode > q.E2E-q.TTFT {
				overshoot++
			}
			if q.Queue > Seconds(50*time.Millisecond) {
				queued++
			}
		}
		if x.Stream {
			assert.Positive(t, x.UserTTFT)
			assert.Greater(t, x.UserE2E, x.UserTTFT)
		}
	}
	assert.Positive(t, overshoot, "the engine's decode exceeds e2e - TTFT in many runs, as recorded")
	assert.Positive(t, queued)
}

// parse reads a page as Prometheus does.
func parse(t testing.TB, page []byte) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	m, err := p.TextToMetricFamilies(strings.NewReader(string(page)))
	require.NoError(t, err)
	return m
}

// value is the sum over the points of a family, of counts for histograms, where label has value v (label empty: all).
func value(m map[string]*dto.MetricFamily, name, label, v string) float64 {
	sum := 0.0
	for _, x := range m[name].GetMetric() {
		if label != "" && !slices.ContainsFunc(x.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == label && l.GetValue() == v }) {
			continue
		}
		sum += x.GetCounter().GetValue() + x.GetGauge().GetValue() + float64(x.GetHistogram().GetSampleCount())
	}
	return sum
}

func TestPageCountsWhatHappened(t *testing.T) {
	w, o := run(t, busy(13), 20*time.Second)
	aborted := 0.0
	for _, e := range w.engines {
		var finished, tokensIn, tokensOut, cachedOnSpans, stop, ttftCount float64
		var ttft, e2e, queue float64
		for _, x := range o.Truths {
			if x.Engine != e.Name {
				continue
			}
			for _, q := range x.Sequences {
				finished++
				tokensIn += float64(q.InputTokens)
				tokensOut += float64(q.OutputTokens)
				cachedOnSpans += float64(q.CachedTokens)
				ttft += q.TTFT.Float()
				e2e += q.E2E.Float()
				queue += q.Queue.Float()
				ttftCount++
			}
			for _, r := range x.FinishReasons {
				if r == "stop" {
					stop++
				}
			}
		}
		page, err := w.Page(e.Name)
		require.NoError(t, err)
		m := parse(t, page)
		assert.InDelta(t, finished, value(m, "vllm:e2e_request_latency_seconds", "", ""), 0)
		assert.InDelta(t, finished, value(m, "vllm:request_success_total", "", ""), 0)
		assert.InDelta(t, stop, value(m, "vllm:request_success_total", "finished_reason", "stop"), 0)
		assert.Zero(t, value(m, "vllm:request_success_total", "finished_reason", "abort"), "V1 never counts aborts")
		sum := func(name string) float64 { return m["vllm:"+name].GetMetric()[0].GetHistogram().GetSampleSum() }
		assert.InDelta(t, e2e, sum("e2e_request_latency_seconds"), 1e-6*e2e)
		assert.InDelta(t, queue, sum("request_queue_time_seconds"), 1e-6*queue)
		assert.InDelta(t, tokensOut, sum("request_generation_tokens"), 0)
		assert.InDelta(t, tokensIn, sum("request_prompt_tokens"), 0)
		assert.InDelta(t, tokensIn-cachedOnSpans, sum("request_prefill_kv_computed_tokens"), 0)
		// Aborted calls are in these and not in those above.
		started := value(m, "vllm:time_to_first_token_seconds", "", "")
		assert.GreaterOrEqual(t, started, ttftCount)
		assert.GreaterOrEqual(t, sum("time_to_first_token_seconds"), ttft*(1-1e-9))
		aborted += value(m, "vllm:generation_tokens_total", "", "") - tokensOut
		assert.GreaterOrEqual(t, value(m, "vllm:prompt_tokens_total", "", ""), tokensIn)
		assert.InDelta(t, value(m, "vllm:generation_tokens_total", "", "")-started, value(m, "vllm:inter_token_latency_seconds", "", ""), 0)
		assert.InDelta(t, sum("request_decode_time_seconds"), sum("inter_token_latency_seconds"), sum("request_decode_time_seconds")*0.2)
		assert.InDelta(t, value(m, "vllm:prompt_tokens_total", "", ""), value(m, "vllm:prompt_tokens_by_source_total", "", ""), 0)
		assert.InDelta(t, value(m, "vllm:generation_tokens_total", "", "")+value(m, "vllm:prompt_tokens_by_source_total", "source", "local_compute"),
			sum("iteration_tokens_total"), 0, "as on the recorded page")
		assert.Positive(t, value(m, "vllm:prefix_cache_hits_total", "", ""))
		assert.Zero(t, value(m, "vllm:num_requests_running", "", ""))
		assert.Zero(t, value(m, "vllm:kv_cache_usage_perc", "", ""))
	}
	lost := 0
	for _, x := range o.Truths {
		lost += x.OutputTokens - x.Seen.OutputTokens
	}
	assert.Positive(t, lost)
	assert.InDelta(t, lost, aborted, 0, "tokens of aborted calls are in the engine's counter and in no span")
}

func TestPythonFloat(t *testing.T) {
	for _, tt := range []struct {
		in   float64
		want string
	}{
		{0, "0.0"},
		{1, "1.0"},
		{0.025, "0.025"},
		{18160, "18160.0"},
		{999999, "999999.0"},
		{1000000, "1e+06"},
		{5.35107584e+09, "5.35107584e+09"},
		{1796043184.862757, "1.796043184862757e+09"},
		{1.9e-05, "1.9e-05"},
		{0.0001, "0.0001"},
		{math.Inf(1), "+Inf"},
		{-1, "-1.0"},
		{12345678.5, "1.23456785e+07"},
	} {
		assert.Equal(t, tt.want, pythonFloat(tt.in))
	}
}

func TestUnsampledCallsHaveNoSpans(t *testing.T) {
	cfg := only(func(c *Config) { c.Gateway.Enabled = true })
	w, err := New(cfg, start)
	require.NoError(t, err)
	c := plain(w.engines[0].Model, 56, 20)
	c.Unsampled, c.Client = true, true
	_, err = w.Submit(c)
	require.NoError(t, err)
	w.Advance(time.Minute)
	o := w.Drain()
	assert.Empty(t, o.spans())
	require.Len(t, o.Truths, 1)
	assert.Equal(t, StatusOK, o.Truths[0].Status)
	assert.Equal(t, 20, o.Truths[0].OutputTokens)
	assert.Zero(t, o.Truths[0].Seen.OutputTokens)
}

func TestExportsHaveAtMost512SpansOfOneProcess(t *testing.T) {
	_, o := run(t, busy(2), 30*time.Second)
	n := 0
	for _, e := range o.Exports {
		assert.LessOrEqual(t, e.Traces.SpanCount(), 512)
		require.Equal(t, 1, e.Traces.ResourceSpans().Len())
		v, _ := e.Traces.ResourceSpans().At(0).Resource().Attributes().Get("service.name")
		assert.Equal(t, e.Service, v.Str())
		n += e.Traces.SpanCount()
	}
	assert.Greater(t, n, 5000)
}

func TestAgendaKeepsTheOrderOfEntryAtOneInstant(t *testing.T) {
	var a agenda
	var got []int
	for i := range 50 {
		a.add(time.Duration(i%3), func() { got = append(got, i) })
	}
	for {
		e, ok := a.next(2)
		if !ok {
			break
		}
		e.do()
	}
	var want []int
	for at := range 3 {
		for i := at; i < 50; i += 3 {
			want = append(want, i)
		}
	}
	assert.Equal(t, want, got)
}

func TestTheGatewaysHTTPClientSpanEndsAtTheHeadersOfAStream(t *testing.T) {
	w, err := New(only(func(c *Config) { c.Gateway.Enabled = true }), start)
	require.NoError(t, err)
	c := plain(w.engines[0].Model, 56, 40)
	for _, c.Stream = range []bool{true, false} {
		_, err = w.Submit(c)
		require.NoError(t, err)
		w.Advance(w.Now() + time.Minute)
		o := w.Drain()
		engine, http := named(o.spans(), "llm_request")[0], named(o.spans(), "POST")[0]
		firstToken := engine.StartTimestamp().AsTime().Add(time.Duration(o.Truths[0].Sequences[0].TTFT))
		assert.Equal(t, engine.ParentSpanID(), http.SpanID())
		if c.Stream {
			assert.True(t, http.EndTimestamp().AsTime().Before(firstToken))
		} else {
			assert.True(t, http.EndTimestamp().AsTime().After(engine.EndTimestamp().AsTime()))
		}
	}
}

func TestNothingIsMissingOnceNothingIsInFlight(t *testing.T) {
	cfg := only(func(c *Config) { c.Gateway.Enabled = true })
	for _, faults := range [][]Fault{nil, {{Kind: FaultEngineCrash, At: 600 * time.Millisecond, For: time.Second}}} {
		cfg.Faults = faults
		w, err := New(cfg, start)
		require.NoError(t, err)
		c := plain(w.engines[0].Model, 100, 300)
		c.Kind, c.Outputs, c.Client = KindChoices, []int{20, 60, 300}, true
		_, err = w.Submit(c)
		require.NoError(t, err)
		for w.InFlight() > 0 {
			w.Advance(w.Now() + 10*time.Microsecond)
			require.Less(t, w.Now(), time.Minute)
		}
		o := w.Drain()
		require.Len(t, o.Truths, 1)
		assert.EqualValues(t, 1, w.Totals().Ended)
		assert.Len(t, named(o.spans(), "llm_request"), len(o.Truths[0].Sequences))
		assert.Len(t, named(o.spans(), gatewaySpanName), 1)
		assert.Len(t, named(o.spans(), "chat "+c.Model), 1)
		w.Advance(w.Now() + 500*time.Millisecond)
		assert.Empty(t, w.Drain().Exports, "nothing comes later")
	}
}
