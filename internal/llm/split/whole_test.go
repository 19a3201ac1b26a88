package split

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/sampling"
)

// tree builds a trace by hand: times are milliseconds after the trace's start.
type tree struct {
	td  ptrace.Traces
	res map[string]ptrace.SpanSlice
	id  pcommon.TraceID
}

const t0 = 1_800_000_000_000_000_000

func newTree(id byte) *tree {
	return &tree{td: ptrace.NewTraces(), res: map[string]ptrace.SpanSlice{}, id: pcommon.TraceID{id, 15: id}}
}

func (tr *tree) span(service, name string, kind ptrace.SpanKind, id, parent byte, from, to float64, attrs map[string]any) ptrace.Span {
	spans, ok := tr.res[service]
	if !ok {
		rs := tr.td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", service)
		spans = rs.ScopeSpans().AppendEmpty().Spans()
		tr.res[service] = spans
	}
	s := spans.AppendEmpty()
	s.SetTraceID(tr.id)
	s.SetSpanID(pcommon.SpanID{id})
	if parent != 0 {
		s.SetParentSpanID(pcommon.SpanID{parent})
	}
	s.SetName(name)
	s.SetKind(kind)
	s.SetStartTimestamp(pcommon.Timestamp(t0 + int64(from*1e6)))
	s.SetEndTimestamp(pcommon.Timestamp(t0 + int64(to*1e6)))
	if err := s.Attributes().FromRaw(attrs); err != nil {
		panic(err)
	}
	return s
}

// engine is a vLLM span: arrival at from, first token 50 ms later, done at to.
func (tr *tree) engine(id, parent byte, from, to float64, requestID string) ptrace.Span {
	return tr.span("vllm", "llm_request", ptrace.SpanKindServer, id, parent, from, to+1, map[string]any{
		"gen_ai.latency.time_in_queue": .010, "gen_ai.latency.time_in_model_prefill": .030, "gen_ai.latency.time_to_first_token": .050,
		"gen_ai.latency.time_in_model_decode": (to - from - 50) / 1e3, "gen_ai.latency.e2e": (to - from) / 1e3,
		"gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 21, "gen_ai.request.id": requestID, "gen_ai.request.max_tokens": 64,
	})
}

func (tr *tree) gateway(id byte, from, to float64, status int) ptrace.Span {
	return tr.span("gw", "POST /v1/chat/completions", ptrace.SpanKindServer, id, 0, from, to, map[string]any{
		"http.request.method": "POST", "url.path": "/v1/chat/completions", "http.response.status_code": status,
	})
}

var keepAll = func(pcommon.TraceID, *sampling.Trace) sampling.Decision {
	return sampling.Decision{Keep: true, Rule: "baseline", Threshold: sampling.Always}
}

// whole runs a tree through both steps.
func whole(w *Whole, tr *tree, decide Decide) WholeFacts {
	Recognise(tr.td, w.o.Options)
	return w.Traces(time.Unix(1_800_000_000, 0), tr.td, nil, decide)
}

func newWhole() *Whole {
	return NewWhole(WholeOptions{Options: Options{StageSpans: true}, FoldChunks: true, Tag: true})
}

func findSpan(td ptrace.Traces, id byte) (out ptrace.Span, ok bool) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if s.SpanID() == (pcommon.SpanID{id}) {
					return s, true
				}
			}
		}
	}
	return out, false
}

func attr(t *testing.T, td ptrace.Traces, id byte, key string) any {
	t.Helper()
	s, ok := findSpan(td, id)
	require.True(t, ok, "span %d", id)
	return s.Attributes().AsRaw()[key]
}

func TestAStreamBehindAnASGIGateway(t *testing.T) {
	tr := newTree(1)
	tr.gateway(1, 0, 300, 200)
	tr.span("gw", "POST", ptrace.SpanKindClient, 2, 1, 5, 20, map[string]any{"http.request.method": "POST"})
	tr.engine(3, 2, 10, 260, "chatcmpl-1")
	for i, at := range []float64{65, 80, 180, 200, 270} {
		tr.span("gw", "POST /v1/chat/completions http send", ptrace.SpanKindInternal, byte(10+i), 1, at, at+.1, map[string]any{"asgi.event.type": "http.response.body"})
	}
	f := whole(newWhole(), tr, keepAll)
	assert.Equal(t, 5, f.Chunks)
	assert.EqualValues(t, 5, attr(t, tr.td, 1, "llmspan.chunks"))
	_, there := findSpan(tr.td, 10)
	assert.False(t, there, "a chunk is folded into its parent")
	assert.InDelta(t, .010, attr(t, tr.td, 3, "llmspan.ingress.duration"), 1e-9)
	assert.InDelta(t, .040, attr(t, tr.td, 3, "llmspan.return.duration"), 1e-6, "last token at 260, gateway's end at 300")
	assert.InDelta(t, .300, attr(t, tr.td, 3, "llmspan.user.e2e"), 1e-9)
	assert.InDelta(t, .065, attr(t, tr.td, 3, "llmspan.user.ttft"), 1e-9, "the first chunk")
	assert.Nil(t, attr(t, tr.td, 3, "llmspan.user.ttft.estimated"))
	assert.InDelta(t, .100, attr(t, tr.td, 3, "llmspan.user.gap.max"), 1e-9)
	assert.Equal(t, "ok", attr(t, tr.td, 3, "llmspan.status"))
	assertPartition(t, tr.td, 1)
}

// assertPartition holds the stage spans of a trace with one engine span to its outermost span, to the nanosecond.
func assertPartition(t *testing.T, td ptrace.Traces, outermost byte) {
	t.Helper()
	outer, ok := findSpan(td, outermost)
	require.True(t, ok)
	var sum, n int64
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if _, ok := s.Attributes().Get("llmspan.stage"); ok {
					sum += int64(s.EndTimestamp() - s.StartTimestamp())
					n++
				}
			}
		}
	}
	assert.EqualValues(t, 6, n)
	assert.Equal(t, int64(outer.EndTimestamp()-outer.StartTimestamp()), sum)
}

func TestAnAnswerThatWasNotStreamedHasAnEstimatedFirstToken(t *testing.T) {
	tr := newTree(1)
	tr.gateway(1, 0, 300, 200)
	tr.engine(3, 1, 10, 260, "chatcmpl-1")
	tr.span("gw", "POST http send", ptrace.SpanKindInternal, 10, 1, 280, 281, map[string]any{"asgi.event.type": "http.response.body"})
	tr.span("gw", "POST http send", ptrace.SpanKindInternal, 11, 1, 281, 282, map[string]any{"asgi.event.type": "http.response.body"})
	whole(newWhole(), tr, keepAll)
	assert.InDelta(t, .060, attr(t, tr.td, 3, "llmspan.user.ttft"), 1e-9, "ingress + engine TTFT")
	assert.Equal(t, true, attr(t, tr.td, 3, "llmspan.user.ttft.estimated"))
	assert.Nil(t, attr(t, tr.td, 3, "llmspan.user.gap.max"))
}

func TestEnvoysEventIsTrustedMost(t *testing.T) {
	tr := newTree(1)
	gw := tr.gateway(1, 0, 300, 200)
	e := gw.Events().AppendEmpty()
	e.SetName("First Token Stream Event")
	e.SetTimestamp(pcommon.Timestamp(t0 + 63*1_000_000))
	tr.engine(3, 1, 10, 260, "chatcmpl-1")
	for i, at := range []float64{70, 80, 180} {
		tr.span("gw", "http send", ptrace.SpanKindInternal, byte(10+i), 1, at, at+.1, map[string]any{"asgi.event.type": "http.response.body"})
	}
	whole(newWhole(), tr, keepAll)
	assert.InDelta(t, .063, attr(t, tr.td, 3, "llmspan.user.ttft"), 1e-9)
}

func TestOutcomeOfARequestWithoutAnEngineSpan(t *testing.T) {
	for _, c := range []struct {
		name         string
		http         int
		enginesSeen  bool
		clientErrors bool
		want         string
	}{
		{"ended well, others reach an engine: the client left", 200, true, false, "cancelled"},
		{"ended well, no engine was ever seen: engines are not traced", 200, false, false, "ok"},
		{"the server failed", 503, true, false, "error"},
		{"refused", 400, true, false, "unknown"},
		{"refused, and refusals are errors", 400, true, true, "error"},
		{"client closed request", 499, true, true, "cancelled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWhole(WholeOptions{ClientErrors: c.clientErrors, Tag: true})
			if c.enginesSeen {
				other := newTree(9)
				other.gateway(1, 0, 300, 200)
				other.engine(3, 1, 10, 260, "chatcmpl-9")
				whole(w, other, keepAll)
			}
			tr := newTree(1)
			tr.gateway(1, 0, 100, c.http)
			var facts *sampling.Trace
			whole(w, tr, func(id pcommon.TraceID, t *sampling.Trace) sampling.Decision { facts = t; return keepAll(id, t) })
			assert.Equal(t, c.want, attr(t, tr.td, 1, "llmspan.status"))
			assert.Equal(t, "chat", attr(t, tr.td, 1, "gen_ai.operation.name"), "it stands for the request now")
			require.Len(t, facts.Calls, 1)
		})
	}
}

func TestAnApplicationAroundSeveralCallsIsNoLayerOfAny(t *testing.T) {
	tr := newTree(1)
	tr.span("app", "POST /ask", ptrace.SpanKindServer, 1, 0, 0, 1000, map[string]any{"http.request.method": "POST", "url.path": "/ask"})
	tr.engine(3, 1, 10, 260, "chatcmpl-1")
	tr.engine(4, 1, 400, 700, "chatcmpl-2")
	whole(newWhole(), tr, keepAll)
	assert.Nil(t, attr(t, tr.td, 3, "llmspan.ingress.duration"))
	assert.Nil(t, attr(t, tr.td, 1, "llmspan.layer"))
}

func TestPrefillAndDecodeOnDifferentEngines(t *testing.T) {
	tr := newTree(1)
	tr.span("gw", "POST /v1/chat/completions", ptrace.SpanKindServer, 1, 0, 0, 500, map[string]any{"http.request.method": "POST", "url.path": "/v1/chat/completions", "http.response.status_code": 200})
	p := tr.engine(2, 1, 10, 60, "chatcmpl-1")
	p.Attributes().PutInt("gen_ai.request.max_tokens", 1)
	p.Attributes().PutInt("gen_ai.usage.completion_tokens", 1)
	p.Attributes().PutDouble("gen_ai.latency.time_in_model_decode", 0)
	tr.engine(3, 2, 70, 400, "chatcmpl-1") // llm-d starts it below the prefill's span
	whole(newWhole(), tr, keepAll)
	assert.InDelta(t, .010, attr(t, tr.td, 3, "llmspan.kv_transfer.duration"), 1e-9, "what the decode engine counts as queue")
	assert.InDelta(t, .010, attr(t, tr.td, 3, "llmspan.queue.duration"), 1e-9, "the prefill engine's")
	assert.InDelta(t, .030+.280, attr(t, tr.td, 3, "llmspan.decode.duration"), 1e-9)
	assert.InDelta(t, .060+.050, attr(t, tr.td, 3, "llmspan.ttft"), 1e-9, "from the arrival at the prefill engine")
}

func TestDroppedTracesAreMarkedOrRemoved(t *testing.T) {
	drop := func(pcommon.TraceID, *sampling.Trace) sampling.Decision {
		th, _ := sampling.Ratio(.05)
		return sampling.Decision{Rule: "baseline", Threshold: th}
	}
	tr := newTree(1)
	tr.gateway(1, 0, 300, 200)
	tr.engine(3, 1, 10, 260, "chatcmpl-1")
	f := whole(newWhole(), tr, drop)
	assert.Zero(t, f.StageSpans, "stages are made for kept traces only")
	assert.Equal(t, 2, tr.td.SpanCount())
	for _, id := range []byte{1, 3} {
		assert.Equal(t, "drop", attr(t, tr.td, id, "llmspan.sampling.decision"))
		s, _ := findSpan(tr.td, id)
		assert.Empty(t, s.TraceState().AsRaw(), "a dropped span keeps the weight that it came with")
	}
	tr = newTree(1)
	tr.gateway(1, 0, 300, 200)
	tr.engine(3, 1, 10, 260, "chatcmpl-1")
	w := NewWhole(WholeOptions{Options: Options{StageSpans: true}})
	f = whole(w, tr, drop)
	assert.Equal(t, 2, f.Dropped)
	assert.Zero(t, tr.td.SpanCount())
}

func TestEverySpanOfAKeptTraceCarriesTheSameThreshold(t *testing.T) {
	th, _ := sampling.Ratio(.05)
	tr := newTree(0xff)
	gw := tr.gateway(1, 0, 300, 200)
	gw.TraceState().FromRaw("ot=th:8,vendor=1") // the SDK kept every second trace
	tr.engine(3, 1, 10, 260, "chatcmpl-1").TraceState().FromRaw("ot=th:8,vendor=1")
	for i := range tr.id {
		tr.id[i] = 0xff
	}
	for _, id := range []byte{1, 3} {
		s, _ := findSpan(tr.td, id)
		s.SetTraceID(tr.id)
	}
	whole(newWhole(), tr, func(pcommon.TraceID, *sampling.Trace) sampling.Decision {
		return sampling.Decision{Keep: true, Rule: "baseline", Threshold: th}
	})
	n := 0
	for _, rs := range tr.td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				n++
				assert.Equal(t, "ot=th:f3333333333333,vendor=1", s.TraceState().AsRaw(), s.Name())
				d, _ := s.Attributes().Get("llmspan.sampling.decision")
				assert.Equal(t, "keep", d.AsString(), s.Name())
			}
		}
	}
	assert.Equal(t, 8, n)
	assert.InDelta(t, 2, attr(t, tr.td, 3, "llmspan.sampling.incoming_weight"), 1e-9, "metrics count what came in")
}

func TestAnAttributeRuleMatchesSpanResourceAndCapturedHeader(t *testing.T) {
	rules := []Match{
		{Key: "never", Values: map[string]struct{}{"": {}}},
		{Key: "http.request.header.x_team", Values: map[string]struct{}{"vip": {}}},
		{Key: "service.name", Values: map[string]struct{}{"gw": {}, "other": {}}},
	}
	tr := newTree(1)
	gw := tr.gateway(1, 0, 300, 200)
	gw.Attributes().PutEmptySlice("http.request.header.x_team").AppendEmpty().SetStr("vip")
	Matches(tr.td, rules)
	gw.Attributes().Remove("http.request.header.x_team") // it is text, and goes before the trace is held
	var got []bool
	whole(newWhole(), tr, func(id pcommon.TraceID, t *sampling.Trace) sampling.Decision {
		got = []bool{t.Match(0), t.Match(1), t.Match(2)}
		return keepAll(id, t)
	})
	assert.Equal(t, []bool{false, true, true}, got)
	assert.Nil(t, attr(t, tr.td, 1, "llmspan.sampling.matched"), "it does not leave the processor")
}
