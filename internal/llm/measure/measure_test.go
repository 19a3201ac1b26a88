package measure

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink draws observations as text: name{labels beside model and operation} value×weight.
type sink struct {
	lines []string
	base  map[string]bool
}

func (s *sink) Observe(id names.MetricID, _ *request.Request, labels []Label, value, weight float64) {
	var parts, base []string
	for _, l := range labels {
		switch {
		case l.Key == names.RequestModel || l.Key == names.OperationName:
			base = append(base, l.Value)
		case l.Bool:
			parts = append(parts, l.Key+"=bool:"+l.Value)
		default:
			parts = append(parts, l.Key+"="+l.Value)
		}
	}
	if s.base == nil {
		s.base = map[string]bool{}
	}
	s.base[strings.Join(base, " ")] = true
	s.lines = append(s.lines, fmt.Sprintf("%s{%s} %.6g×%g", names.Metrics[id].Name, strings.Join(parts, ","), value, weight))
}

func (s *sink) Charge(id names.MetricID, r *request.Request, labels []Label, amount cost.Amount, weight float64) {
	s.Observe(id, r, labels, amount.Float64(), weight)
}

func (s *sink) sorted() []string { sort.Strings(s.lines); return s.lines }

func engine(set func(*request.Request)) *request.Request {
	r := &request.Request{
		Layer: request.LayerEngine, Source: &request.Source{Service: "svc"}, Model: "tiny", Operation: "chat", Status: request.StatusOK,
		Start: 1_000_000_000, End: 2_000_000_000, OutputTokens: request.Some[int64](11),
		TTFT: request.Some(.2), E2E: request.Some(.9), Queue: request.Some(.01), Prefill: request.Some(.1), Decode: request.Some(.7), Admission: request.Some(.09),
	}
	if set != nil {
		set(r)
	}
	return r
}

func TestEngine(t *testing.T) {
	healthy := []string{
		"gen_ai.server.request.duration{} 0.9×1", "gen_ai.server.time_per_output_token{} 0.07×1", "gen_ai.server.time_to_first_token{} 0.2×1",
		"llm.admission.duration{} 0.09×1", "llm.decode.duration{} 0.7×1", "llm.prefill.duration{} 0.1×1", "llm.queue.duration{} 0.01×1",
		"llm.request.duration.max{} 0.9×1", "llm.time_to_first_token.max{} 0.2×1",
	}
	for _, c := range []struct {
		name string
		set  func(*request.Request)
		want []string
		base string
	}{
		{"healthy", nil, healthy, "tiny chat"},
		{"names nobody told", func(r *request.Request) { r.Model, r.Operation = "", "" }, healthy, "unknown unknown"},
		{"failed", func(r *request.Request) {
			*r = request.Request{Source: r.Source, Status: request.StatusError, ErrorType: "500", Start: r.Start, End: r.End}
		}, []string{"gen_ai.server.request.duration{error.type=500} 1×1", "llm.request.duration.max{} 1×1"}, "unknown unknown"},
		{"a span whose length says nothing", func(r *request.Request) { *r = request.Request{Source: r.Source, End: r.End} }, nil, ""},
		{"a span that ends before it starts", func(r *request.Request) { *r = request.Request{Source: r.Source, Start: 9, End: 8} }, nil, ""},
		{
			"rejected figures are counted by name, the rest is observed", func(r *request.Request) {
				r.Queue, r.Admission, r.Invalid = request.Seconds{}, request.Seconds{}, []string{"queue", "e2e"}
			},
			[]string{
				"gen_ai.server.request.duration{} 0.9×1", "gen_ai.server.time_per_output_token{} 0.07×1", "gen_ai.server.time_to_first_token{} 0.2×1",
				"llm.decode.duration{} 0.7×1", "llm.prefill.duration{} 0.1×1", "llm.request.duration.max{} 0.9×1",
				"llm.spans.invalid{llm.reason=e2e} 1×1", "llm.spans.invalid{llm.reason=queue} 1×1", "llm.time_to_first_token.max{} 0.2×1",
			},
			"tiny chat",
		},
		{"one of four", func(r *request.Request) {
			*r = request.Request{Source: r.Source, TraceState: "ot=th:c", TraceID: pcommon.TraceID{8: 0, 9: 0xff}, Queue: request.Some(.5), KVTransfer: request.Some(.25)}
		}, []string{"llm.kv_transfer.duration{} 0.25×4", "llm.queue.duration{} 0.5×4"}, "unknown unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s sink
			New(&s).Engine(engine(c.set))
			assert.Equal(t, c.want, s.sorted())
			if c.base != "" {
				assert.Equal(t, map[string]bool{c.base: true}, s.base)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	tok := request.Some[int64]
	logical := func(first bool, sequences int, set func(*request.Request)) *join.Logical {
		l := &join.Logical{First: first, Sequences: sequences}
		l.Source, l.Model, l.Operation, l.Status, l.FinishReason = &request.Source{}, "tiny", "chat", request.StatusOK, "stop"
		set(&l.Request)
		return l
	}
	for _, c := range []struct {
		name string
		q    *join.Logical
		want []string
	}{
		{
			"a request with parts that its source tells", logical(true, 1, func(r *request.Request) {
				r.InputTokens, r.CachedTokens, r.OutputTokens, r.ReasoningTokens = tok(10), tok(4), tok(7), tok(0)
				r.Ingress, r.Return = request.Some(.5), request.Some(.25)
			}),
			[]string{
				"llm.ingress.duration{} 0.5×1",
				"llm.input_tokens{llm.status=ok,llm.cached=bool:false} 6×1", "llm.input_tokens{llm.status=ok,llm.cached=bool:true} 4×1",
				"llm.output_tokens{llm.status=ok,llm.reasoning=bool:false} 7×1",
				"llm.request.input_tokens{} 10×1", "llm.request.output_tokens{} 7×1",
				"llm.requests{llm.status=ok,llm.finish_reason=stop} 1×1", "llm.return.duration{} 0.25×1",
			},
		},
		{
			"a request whose source tells no parts", logical(true, 1, func(r *request.Request) { r.InputTokens, r.OutputTokens = tok(10), tok(0) }),
			[]string{
				"llm.input_tokens{llm.status=ok} 10×1", "llm.output_tokens{llm.status=ok} 0×1", "llm.request.input_tokens{} 10×1", "llm.request.output_tokens{} 0×1",
				"llm.requests{llm.status=ok,llm.finish_reason=stop} 1×1",
			},
		},
		{
			"a request without a usage", logical(true, 0, func(r *request.Request) { r.Status, r.FinishReason = request.StatusCancelled, "" }),
			[]string{
				"llm.requests.tokens_unknown{llm.status=cancelled} 1×1", "llm.requests{llm.status=cancelled} 1×1",
				"llm.wasted.duration{llm.status=cancelled,llm.reason=cancelled} 0×1",
			},
		},
		{
			"a later part adds tokens and is no request", logical(false, 1, func(r *request.Request) {
				r.OutputTokens, r.Ingress, r.Return = tok(5), request.Some(.5), request.Some(.25)
			}),
			[]string{"llm.output_tokens{llm.status=ok} 5×1"},
		},
		{
			"a part that is larger than its whole stays within it", logical(false, 1, func(r *request.Request) { r.InputTokens, r.CachedTokens = tok(3), tok(9) }),
			[]string{"llm.input_tokens{llm.status=ok,llm.cached=bool:false} 0×1", "llm.input_tokens{llm.status=ok,llm.cached=bool:true} 3×1"},
		},
		{
			"a part without its whole is not counted", logical(false, 1, func(r *request.Request) { r.CachedTokens = tok(9) }), nil,
		},
		{
			"an engine's rejected figures were counted with its span", logical(true, 2, func(r *request.Request) { r.Invalid = []string{"queue"} }),
			[]string{"llm.requests.tokens_unknown{llm.status=ok} 1×1", "llm.requests{llm.status=ok,llm.finish_reason=stop} 1×1"},
		},
		{
			"a client's are counted here", logical(true, 0, func(r *request.Request) { r.Invalid = []string{"input_tokens"} }),
			[]string{
				"llm.requests.tokens_unknown{llm.status=ok} 1×1", "llm.requests{llm.status=ok,llm.finish_reason=stop} 1×1",
				"llm.spans.invalid{llm.reason=input_tokens} 1×1",
			},
		},
		{
			"one of four", logical(true, 0, func(r *request.Request) {
				r.TraceState, r.TraceID, r.InputTokens, r.CachedTokens = "ot=th:c", pcommon.TraceID{9: 0xff}, tok(10), tok(4)
			}),
			[]string{
				"llm.input_tokens{llm.status=ok,llm.cached=bool:false} 6×4", "llm.input_tokens{llm.status=ok,llm.cached=bool:true} 4×4",
				"llm.request.input_tokens{} 10×4", "llm.requests{llm.status=ok,llm.finish_reason=stop} 1×4",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s sink
			New(&s).Request(c.q)
			assert.Equal(t, c.want, s.sorted())
		})
	}
}

// Labels of one observation do not leak into the next: the buffer is used again.
func TestLabelsAreFresh(t *testing.T) {
	var s sink
	m := New(&s)
	m.Engine(engine(func(r *request.Request) {
		r.Status, r.ErrorType, r.Invalid = request.StatusError, "500", []string{"queue"}
	}))
	s.lines = nil
	m.Engine(engine(nil))
	for _, l := range s.lines {
		assert.Contains(t, l, "{}")
	}
}

func TestWeight(t *testing.T) {
	low, high := pcommon.TraceID{9: 0x10}, pcommon.TraceID{9: 0xff} // the last 56 bits are the randomness
	for _, c := range []struct {
		name  string
		state string
		trace pcommon.TraceID
		want  float64
	}{
		{"no tracestate", "", high, 1},
		{"another vendor's", "vendor=ot", high, 1},
		{"no threshold", "ot=rv:ffffffffffffff", high, 1},
		{"all are kept", "ot=th:0", low, 1},
		{"one of two", "ot=th:8", high, 2},
		{"one of four, beside another vendor's", "a=b,ot=th:c;x:y,c=d", high, 4},
		{"one of twenty", "ot=th:f3333333333333", high, 20},
		{"a threshold that the trace does not reach was not the one that kept it", "ot=th:c", low, 1},
		{"an explicit randomness counts, not the trace's", "ot=th:c;rv:d0000000000000", low, 4},
		{"an explicit randomness that does not reach it", "ot=th:c;rv:10000000000000", high, 1},
		{"nonsense", "ot=th:xyz", high, 1},
		{"an empty threshold", "ot=th:", high, 1},
		{"too long", "ot=th:123456789012345", high, 1},
		{"no list at all", "=,;ot=", high, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.InEpsilon(t, c.want, Weight(&request.Request{TraceState: c.state, TraceID: c.trace}), 1e-9)
		})
	}
}
