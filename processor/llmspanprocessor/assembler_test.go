package llmspanprocessor

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/sampling"
)

type traceKind int

const (
	normal traceKind = iota
	failed
	slow
	cancelled
	numKinds
)

// id spreads traces over the shards and the randomness; i can be read back.
func traceID(r *rand.Rand, i int) (id pcommon.TraceID) {
	binary.BigEndian.PutUint32(id[:], uint32(i))
	binary.BigEndian.PutUint64(id[8:], r.Uint64())
	return id
}

// gatewaySpan and engineSpan are the two spans of one request.
func gatewaySpan(id pcommon.TraceID, kind traceKind) ptrace.Traces {
	td, s := oneSpan("gateway", "POST /v1/chat/completions", id, 1, 0)
	s.SetEndTimestamp(s.StartTimestamp() + 500_000_000)
	code := int64(200)
	if kind == failed {
		code = 503
	}
	if kind == cancelled {
		code = 499
	}
	s.Attributes().PutStr("http.request.method", "POST")
	s.Attributes().PutStr("url.path", "/v1/chat/completions")
	s.Attributes().PutInt("http.response.status_code", code)
	return td
}

func engineSpan(id pcommon.TraceID, kind traceKind) ptrace.Traces {
	td, s := oneSpan("vllm", "llm_request", id, 2, 1)
	a := s.Attributes()
	queue := .01
	if kind == slow {
		queue = 9
	}
	s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp((queue+.441)*1e9))
	a.PutDouble("gen_ai.latency.time_in_queue", queue)
	a.PutDouble("gen_ai.latency.time_to_first_token", queue+.05)
	a.PutDouble("gen_ai.latency.e2e", queue+.44)
	a.PutInt("gen_ai.usage.prompt_tokens", 100)
	a.PutInt("gen_ai.usage.completion_tokens", 21)
	a.PutStr("gen_ai.request.id", "chatcmpl-"+id.String())
	return td
}

func oneSpan(service, name string, id pcommon.TraceID, span, parent byte) (ptrace.Traces, ptrace.Span) {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetName(name)
	s.SetKind(ptrace.SpanKindServer)
	s.SetTraceID(id)
	s.SetSpanID(pcommon.SpanID{span, 7: id[15]})
	if parent != 0 {
		s.SetParentSpanID(pcommon.SpanID{parent, 7: id[15]})
	}
	s.SetStartTimestamp(1_800_000_000_000_000_000)
	return td, s
}

func start(t *testing.T, set processor.Settings, next consumer.Traces, change func(*SamplingConfig)) processor.Traces {
	t.Helper()
	f := NewFactory()
	cfg := f.CreateDefaultConfig().(*Config)
	cfg.Sampling.Enabled = true
	if change != nil {
		change(&cfg.Sampling)
	}
	p, err := f.CreateTraces(context.Background(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, p.Start(context.Background(), componenttest.NewNopHost()))
	return p
}

func nop() processor.Settings { return processortest.NewNopSettings(NewFactory().Type()) }

// decisions are what the spans of each trace say.
func decisions(t *testing.T, sink *consumertest.TracesSink) map[pcommon.TraceID]map[string]int {
	t.Helper()
	out := map[pcommon.TraceID]map[string]int{}
	for _, td := range sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					d, ok := s.Attributes().Get(names.SamplingDecision)
					require.True(t, ok, "every span says what was decided: %s", s.Name())
					r, _ := s.Attributes().Get(names.SamplingReason)
					if out[s.TraceID()] == nil {
						out[s.TraceID()] = map[string]int{}
					}
					out[s.TraceID()][d.Str()+" "+r.Str()]++
				}
			}
		}
	}
	return out
}

// Whatever order the spans come in, doubled and late, every failed, cancelled and slow trace is kept, and 5 % of the rest.
func TestDecisionsHoldUnderShuffledDoubledAndLateDelivery(t *testing.T) {
	const n = 20_000
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.TracesSink)
		p := start(t, nop(), sink, nil)
		r := rand.New(rand.NewPCG(11, 12))
		kinds := map[pcommon.TraceID]traceKind{}
		type delivery struct {
			at time.Duration
			td ptrace.Traces
		}
		var deliveries []delivery
		for i := range n {
			id := traceID(r, i)
			kind := normal
			if i%10 == 0 {
				kind = traceKind(i / 10 % int(numKinds))
			}
			kinds[id] = kind
			at := time.Duration(r.Int64N(int64(10 * time.Second)))
			for _, td := range []ptrace.Traces{engineSpan(id, kind), gatewaySpan(id, kind)} {
				later := time.Duration(0)
				if r.Float64() < .2 {
					later = time.Duration(r.Int64N(int64(5 * time.Second))) // some of it comes after the decision
				}
				deliveries = append(deliveries, delivery{at + later, td})
				if r.Float64() < .2 {
					twice := ptrace.NewTraces()
					td.CopyTo(twice)
					deliveries = append(deliveries, delivery{at + later + time.Duration(r.Int64N(int64(3*time.Second))), twice})
				}
			}
		}
		r.Shuffle(len(deliveries), func(i, j int) { deliveries[i], deliveries[j] = deliveries[j], deliveries[i] })
		begin := time.Now()
		for tick := time.Duration(0); tick <= 19*time.Second; tick += 500 * time.Millisecond {
			for i := range deliveries {
				if d := &deliveries[i]; d.at >= tick && d.at < tick+500*time.Millisecond {
					require.NoError(t, p.ConsumeTraces(context.Background(), d.td))
				}
			}
			time.Sleep(time.Until(begin.Add(tick + 500*time.Millisecond)))
			synctest.Wait()
		}
		require.NoError(t, p.Shutdown(context.Background()))

		got := decisions(t, sink)
		require.Len(t, got, n)
		var kept, normals float64
		for id, kind := range kinds {
			isKept := false
			for d := range got[id] {
				isKept = isKept || d[:4] == names.DecisionKeep
			}
			if kind == normal {
				normals++
				if isKept {
					kept++
				}
				continue
			}
			require.True(t, isKept, "kind %d: %v", kind, got[id])
		}
		assert.InDelta(t, .05*normals, kept, 4*math.Sqrt(normals*.05*.95))
		// The weights of what is kept sum to the traces that there were.
		weights := map[pcommon.TraceID]float64{}
		for _, td := range sink.AllTraces() {
			for _, rs := range td.ResourceSpans().All() {
				for _, ss := range rs.ScopeSpans().All() {
					for _, s := range ss.Spans().All() {
						if d, _ := s.Attributes().Get(names.SamplingDecision); d.Str() == names.DecisionKeep {
							st := sampling.ReadState(s.TraceID(), s.TraceState().AsRaw())
							require.True(t, st.Known, "a kept span carries its threshold")
							weights[s.TraceID()] = st.Incoming.AdjustedCount()
						}
					}
				}
			}
		}
		var sum float64
		for _, w := range weights {
			sum += w
		}
		assert.InDelta(t, n, sum, 3*20*math.Sqrt(normals*.05*.95))
	})
}

func TestALateErrorUpgradesADroppedTraceFromThereOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.TracesSink)
		tel := componenttest.NewTelemetry()
		set := nop()
		set.TelemetrySettings = tel.NewTelemetrySettings()
		p := start(t, set, sink, nil)
		id := pcommon.TraceID{1} // next to no randomness: the baseline drops it
		require.NoError(t, p.ConsumeTraces(context.Background(), gatewaySpan(id, normal)))
		time.Sleep(11 * time.Second) // the gateway is new, so its engine is waited for
		synctest.Wait()
		assert.Equal(t, map[string]int{"drop baseline": 1}, decisions(t, sink)[id])
		sink.Reset()
		require.NoError(t, p.ConsumeTraces(context.Background(), engineSpan(id, normal)))
		assert.Equal(t, map[string]int{"drop baseline": 1}, decisions(t, sink)[id], "a late span follows the decision at once")
		sink.Reset()
		late := engineSpan(id, slow)
		late.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetSpanID(pcommon.SpanID{9})
		require.NoError(t, p.ConsumeTraces(context.Background(), late))
		got := decisions(t, sink)[id]
		assert.Positive(t, got["keep slow"], "%v", got)
		s := sink.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		partial, _ := s.Attributes().Get(names.SamplingPartial)
		assert.True(t, partial.Bool())
		assert.EqualValues(t, 1, sum(t, tel, "otelcol_processor_llmspan_traces_upgraded"))
		assert.EqualValues(t, 2, sum(t, tel, "otelcol_processor_llmspan_spans_late"))
		require.NoError(t, p.Shutdown(context.Background()))
		require.NoError(t, tel.Shutdown(context.Background()))
	})
}

// A gateway's first batch comes seconds before its engine's, and nothing is known of it yet.
func TestANewGatewayIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.TracesSink)
		tel := componenttest.NewTelemetry()
		set := nop()
		set.TelemetrySettings = tel.NewTelemetrySettings()
		p := start(t, set, sink, nil)
		id := pcommon.TraceID{15: 1}
		require.NoError(t, p.ConsumeTraces(context.Background(), gatewaySpan(id, normal)))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Empty(t, sink.AllTraces(), "it waits for its engine's span")
		require.NoError(t, p.ConsumeTraces(context.Background(), engineSpan(id, normal)))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		assert.NotEmpty(t, sink.AllTraces(), "it is whole")
		_, err := tel.GetMetric("otelcol_processor_llmspan_spans_late")
		assert.Error(t, err, "no span came late")
		require.NoError(t, p.Shutdown(context.Background()))
		require.NoError(t, tel.Shutdown(context.Background()))
	})
}

// A gateway that reaches no engine is not waited for longer than it takes to know that.
func TestAGatewayWithoutAnEngineIsDecidedOnSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.TracesSink)
		p := start(t, nop(), sink, nil)
		require.NoError(t, p.ConsumeTraces(context.Background(), gatewaySpan(pcommon.TraceID{15: 1}, normal)))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		sink.Reset()
		require.NoError(t, p.ConsumeTraces(context.Background(), gatewaySpan(pcommon.TraceID{15: 2}, normal)))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		assert.NotEmpty(t, sink.AllTraces())
		require.NoError(t, p.Shutdown(context.Background()))
	})
}

// consumerFunc is a consumer that a test can let fail.
type consumerFunc struct {
	mu  sync.Mutex
	err error
	n   int
}

func (c *consumerFunc) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (c *consumerFunc) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.n += td.SpanCount()
	}
	return c.err
}

func (c *consumerFunc) set(err error) { c.mu.Lock(); c.err = err; c.mu.Unlock() }

// in = out + dropped(reason) + held + undelivered at every moment, through a consumer that fails and comes back.
func TestNothingIsLostWhileTheNextConsumerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &consumerFunc{}
		tel := componenttest.NewTelemetry()
		set := nop()
		set.TelemetrySettings = tel.NewTelemetrySettings()
		p := start(t, set, next, func(c *SamplingConfig) { c.MaxBytes = 4 << 20 })
		r := rand.New(rand.NewPCG(13, 14))
		account := func() {
			in := sum(t, tel, "otelcol_processor_llmspan_spans_in") + sum(t, tel, "otelcol_processor_llmspan_stage_spans")
			out := sum(t, tel, "otelcol_processor_llmspan_spans_out") + sum(t, tel, "otelcol_processor_llmspan_spans_dropped") +
				sum(t, tel, "otelcol_processor_llmspan_held_spans") + sum(t, tel, "otelcol_processor_llmspan_undelivered_spans")
			require.Equal(t, in, out)
		}
		refused := 0
		for i := range 6000 {
			id := traceID(r, i)
			switch i {
			case 1000:
				next.set(errors.New("backend is down"))
			case 5000:
				next.set(nil)
			}
			for _, td := range []ptrace.Traces{engineSpan(id, normal), gatewaySpan(id, normal)} {
				if err := p.ConsumeTraces(context.Background(), td); err != nil {
					require.False(t, consumererror.IsPermanent(err), "the sender shall keep it")
					refused++
				}
			}
			if i%100 == 0 {
				time.Sleep(time.Second)
				synctest.Wait()
				account()
			}
		}
		require.NoError(t, p.Shutdown(context.Background()))
		account()
		assert.Positive(t, refused, "while too much waits, senders keep their data")
		assert.EqualValues(t, refused, sum(t, tel, "otelcol_processor_llmspan_spans_refused"))
		assert.Zero(t, sum(t, tel, "otelcol_processor_llmspan_spans_dropped"))
		assert.EqualValues(t, next.n, sum(t, tel, "otelcol_processor_llmspan_spans_out"))
		require.NoError(t, tel.Shutdown(context.Background()))
	})
}

func TestShutdownDecidesOnWhatIsHeldAndRefusesWhatComes(t *testing.T) {
	sink := new(consumertest.TracesSink)
	p := start(t, nop(), sink, nil)
	id := pcommon.TraceID{1}
	require.NoError(t, p.ConsumeTraces(context.Background(), engineSpan(id, slow)))
	assert.Zero(t, sink.SpanCount())
	require.NoError(t, p.Shutdown(context.Background()))
	assert.Positive(t, decisions(t, sink)[id]["keep slow"])
	require.ErrorIs(t, p.ConsumeTraces(context.Background(), engineSpan(id, slow)), errClosing)
	require.NoError(t, p.Shutdown(context.Background()), "twice")
}

func TestDropTakesAwayWhatIsNotKept(t *testing.T) {
	sink := new(consumertest.TracesSink)
	p := start(t, nop(), sink, func(c *SamplingConfig) { c.Apply = ApplyDrop })
	for i := range 200 {
		id := pcommon.TraceID{15: byte(i)} // no randomness to speak of
		kind := normal
		if i%10 == 0 {
			kind = failed
		}
		require.NoError(t, p.ConsumeTraces(context.Background(), gatewaySpan(id, kind)))
	}
	require.NoError(t, p.Shutdown(context.Background()))
	assert.Equal(t, 20, sink.SpanCount())
	for _, td := range sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			s := rs.ScopeSpans().At(0).Spans().At(0)
			assert.Equal(t, "ot=th:0", s.TraceState().AsRaw(), "kept for certain")
			_, marked := s.Attributes().Get(names.SamplingDecision)
			assert.False(t, marked, "without a connector behind it nobody needs the mark")
		}
	}
}

// sum adds the points of one of the processor's own metrics.
func sum(t *testing.T, tel *componenttest.Telemetry, name string) int64 {
	t.Helper()
	m, err := tel.GetMetric(name)
	if err != nil {
		return 0 // nothing was counted
	}
	var n int64
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			n += p.Value
		}
	case metricdata.Gauge[int64]:
		for _, p := range d.DataPoints {
			n += p.Value
		}
	default:
		t.Fatalf("%s is a %T", name, m.Data)
	}
	return n
}
