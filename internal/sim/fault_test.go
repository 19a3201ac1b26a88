package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// calm is one engine far below its limits, with a gateway and only plain calls.
func calm(faults ...Fault) Config {
	return only(func(c *Config) {
		c.Rate, c.Gateway.Enabled, c.Faults = 10, true, faults
		c.Mix = Mix{Stream: 0.5, Stop: 0.5}
		c.Client.Share = 0
		c.Engines[0].Startup = 20 * time.Second
	})
}

// during are the truths of calls that began in a span of time.
func during(o Output, from, to time.Duration) (some []Truth) {
	for _, x := range o.Truths {
		if at := x.Start.Sub(start); at >= from && at < to {
			some = append(some, x)
		}
	}
	return some
}

func mean(all []Truth, of func(SequenceTruth) Seconds) float64 {
	sum, n := 0.0, 0
	for _, x := range all {
		for _, q := range x.Sequences {
			sum, n = sum+of(q).Float(), n+1
		}
	}
	return sum / float64(max(n, 1))
}

func TestSlowPrefillSlowsPrefillAndNothingElseFails(t *testing.T) {
	_, o := run(t, calm(Fault{Kind: FaultSlowPrefill, At: 20 * time.Second, For: 20 * time.Second, Factor: 20}), 60*time.Second)
	prefill := func(q SequenceTruth) Seconds { return q.Prefill }
	before, inside, after := during(o, 0, 19*time.Second), during(o, 21*time.Second, 38*time.Second), during(o, 45*time.Second, 60*time.Second)
	assert.Greater(t, mean(inside, prefill), 4*mean(before, prefill))
	assert.Less(t, mean(after, prefill), 2*mean(before, prefill))
	for _, x := range o.Truths {
		assert.Equal(t, StatusOK, x.Status)
	}
}

func TestKVPressurePreempts(t *testing.T) {
	w, o := run(t, calm(Fault{Kind: FaultKVPressure, At: 5 * time.Second, For: 20 * time.Second, Factor: 0.99}), 40*time.Second)
	assert.Positive(t, w.Totals().Preemptions)
	n := 0
	for _, x := range o.Truths {
		for _, q := range x.Sequences {
			n += q.Preemptions
		}
	}
	assert.EqualValues(t, w.Totals().Preemptions, n)
	page, err := w.Page("vllm-chat")
	require.NoError(t, err)
	assert.Equal(t, n, int(value(parse(t, page), "vllm:num_preemptions_total", "", "")))
}

func TestTimeAfterAPreemptionIsDecodeNotQueue(t *testing.T) {
	cfg := only(func(c *Config) {
		c.Faults = []Fault{{Kind: FaultKVPressure, At: time.Second, For: 20 * time.Second, Factor: 1}}
	})
	w, err := New(cfg, start)
	require.NoError(t, err)
	_, err = w.Submit(plain(w.engines[0].Model, 100, 1000))
	require.NoError(t, err)
	w.Advance(time.Minute)
	q := w.Drain().Truths[0].Sequences[0]
	assert.Equal(t, 1, q.Preemptions)
	assert.Less(t, q.Queue.Float(), 0.001, "the queue ends at the first scheduling")
	assert.Greater(t, q.Decode.Float(), 20.0)
	assert.Zero(t, q.CachedTokens)
}

func TestEngineCrashFailsWhatIsInFlightAndRestartsFromZero(t *testing.T) {
	cfg := calm(Fault{Kind: FaultEngineCrash, At: 20 * time.Second, For: 5 * time.Second})
	w, err := New(cfg, start)
	require.NoError(t, err)
	w.Advance(20*time.Second - 1)
	before := w.Drain()
	page, err := w.Page("vllm-chat")
	require.NoError(t, err)
	m := parse(t, page)
	require.Greater(t, value(m, "vllm:request_success_total", "", ""), 100.0)
	created := m["vllm:generation_tokens_created"].GetMetric()[0].GetGauge().GetValue()
	w.Advance(20 * time.Second)
	_, err = w.Page("vllm-chat")
	require.ErrorIs(t, err, ErrDown)
	w.Advance(40 * time.Second)
	page, err = w.Page("vllm-chat")
	require.NoError(t, err)
	m = parse(t, page)
	after := m["vllm:generation_tokens_created"].GetMetric()[0].GetGauge().GetValue()
	assert.InDelta(t, 25+float64(start.Unix()), after, 0.001)
	assert.Greater(t, after, created)
	o := w.Drain()

	instance := func(spans []flat) map[string]bool {
		ids := map[string]bool{}
		for _, s := range named(spans, "llm_request") {
			v, _ := s.resource.Get("service.instance.id")
			ids[v.Str()] = true
		}
		return ids
	}
	for id := range instance(before.spans()) {
		assert.NotContains(t, instance(o.spans()[len(o.spans())/2:]), id, "a new process has a new instance id")
	}
	assert.NotEmpty(t, named(o.spans(), "Overall Loading"), "the restart has its start-up spans")

	seen := map[string]int{}
	for _, x := range o.Truths {
		if x.Error != "" {
			seen[x.Error]++
		}
		switch {
		case x.Error == "engine_crash" && x.Stream && x.HTTPStatus == 200:
			seen["broken stream"]++
			assert.Equal(t, StatusCancelled, x.Seen.Status, "spans cannot tell it from a user who left")
			assert.Empty(t, x.Sequences)
		case x.Error == "engine_crash":
			assert.Equal(t, 500, x.HTTPStatus)
			assert.Equal(t, StatusError, x.Seen.Status)
		case x.Error == "connect":
			assert.Equal(t, 502, x.HTTPStatus)
		}
	}
	assert.Positive(t, seen["engine_crash"])
	assert.Positive(t, seen["broken stream"])
	assert.Positive(t, seen["connect"])
}

func TestGatewayBurstAnswers503WithoutCallingTheEngine(t *testing.T) {
	_, o := run(t, calm(Fault{Kind: FaultGateway5xx, At: 5 * time.Second, For: 10 * time.Second, Factor: 1}), 20*time.Second)
	inside := during(o, 5*time.Second, 15*time.Second)
	require.NotEmpty(t, inside)
	for _, x := range inside {
		assert.Equal(t, 503, x.HTTPStatus)
		assert.Equal(t, 1, x.Seen.Spans, "the gateway's span is alone")
	}
	for _, x := range during(o, 15*time.Second, 20*time.Second) {
		assert.Equal(t, StatusOK, x.Status)
	}
}

func TestSlowFrontEndIsOutsideTheEngineSpan(t *testing.T) {
	_, o := run(t, calm(Fault{Kind: FaultSlowFrontEnd, At: 10 * time.Second, For: 10 * time.Second, Factor: 2}), 30*time.Second)
	ttft := func(q SequenceTruth) Seconds { return q.TTFT }
	inside := during(o, 10*time.Second, 17*time.Second)
	assert.Less(t, mean(inside, ttft), 2*mean(during(o, 0, 9*time.Second), ttft))
	for _, x := range inside {
		assert.GreaterOrEqual(t, x.UserE2E.Float(), 4.0)
	}
}

func TestFaultsComeBack(t *testing.T) {
	w, err := New(calm(Fault{Kind: FaultGateway5xx, At: 2 * time.Second, For: time.Second, Every: 5 * time.Second, Factor: 1}), start)
	require.NoError(t, err)
	for _, tt := range []struct {
		at float64 // seconds
		on int
	}{{1.5, 0}, {2.5, 1}, {3.5, 0}, {7.5, 1}, {8.5, 0}, {12.5, 1}} {
		w.Advance(seconds(tt.at))
		assert.Len(t, w.ActiveFaults(), tt.on, "at %v s", tt.at)
	}
}

func TestCallsAboveTheLimitAreAnswered503(t *testing.T) {
	cfg := only(func(c *Config) { c.Gateway.Enabled, c.MaxInFlight = true, 5 })
	w, err := New(cfg, start)
	require.NoError(t, err)
	for range 12 {
		_, err = w.Submit(plain(w.engines[0].Model, 100, 50))
		require.NoError(t, err)
	}
	w.Advance(time.Minute)
	assert.EqualValues(t, 7, w.Totals().Overflow)
	assert.EqualValues(t, 7, w.Totals().Status[StatusError])
	assert.EqualValues(t, 5, w.Totals().Status[StatusOK])
}

func TestQueueLimitRefuses(t *testing.T) {
	cfg := only(func(c *Config) { c.Engines[0].MaxNumSeqs, c.Engines[0].MaxQueued = 1, 3 })
	w, err := New(cfg, start)
	require.NoError(t, err)
	for range 40 {
		_, err = w.Submit(plain(w.engines[0].Model, 100, 50))
		require.NoError(t, err)
		w.Advance(w.Now() + 20*time.Millisecond)
	}
	w.Advance(time.Minute)
	page, err := w.Page("vllm-chat")
	require.NoError(t, err)
	n := value(parse(t, page), "vllm:admission_rejections_total", "reason", "max_num_queued_reqs")
	assert.Positive(t, n)
	assert.Equal(t, int64(n), w.Totals().Status[StatusError])
}

func TestNothingIsDeliveredAfterTheEnd(t *testing.T) {
	cfg := only(func(c *Config) {
		c.Gateway.Enabled = true
		c.Faults = []Fault{
			{Kind: FaultSlowFrontEnd, For: 30 * time.Second, Factor: 1},
			{Kind: FaultEngineCrash, At: 3 * time.Second, For: time.Second},
		}
	})
	w, err := New(cfg, start)
	require.NoError(t, err)
	c := plain(w.engines[0].Model, 10, 1500)
	c.Stream, c.Watch = true, true
	w.Advance(time.Millisecond) // the first fault has begun
	_, err = w.Submit(c)
	require.NoError(t, err)
	w.Advance(time.Minute)
	ds := w.Drain().Deliveries
	require.Greater(t, len(ds), 10, "tokens came before the crash")
	for i, d := range ds {
		assert.Equal(t, i == len(ds)-1, d.End)
	}
	assert.True(t, ds[len(ds)-1].Broken)
}
