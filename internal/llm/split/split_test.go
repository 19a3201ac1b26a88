package split

import (
	"fmt"
	"sort"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type attrs = map[string]any

// row is one span as a test draws it: its id, its parent's, where it lies in milliseconds, and what it is.
type row struct {
	id, parent string
	start, end int64
	kind       ptrace.SpanKind
	name       string
	a          attrs
	code       ptrace.StatusCode
}

const (
	zero     = 1_700_000_000_000_000_000
	server   = ptrace.SpanKindServer
	client   = ptrace.SpanKindClient
	internal = ptrace.SpanKindInternal
)

func id8(s string) (id pcommon.SpanID) {
	copy(id[:], s)
	return id
}

func traces(t *testing.T, rows ...row) ptrace.Traces {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "svc")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for _, w := range rows {
		s := spans.AppendEmpty()
		s.SetTraceID(pcommon.TraceID{7})
		s.SetSpanID(id8(w.id))
		s.SetParentSpanID(id8(w.parent))
		s.SetName(w.name)
		s.SetKind(w.kind)
		s.SetFlags(0x101)
		s.TraceState().FromRaw("ot=th:8")
		s.SetStartTimestamp(pcommon.Timestamp(zero + w.start*1e6))
		s.SetEndTimestamp(pcommon.Timestamp(zero + w.end*1e6))
		s.Status().SetCode(w.code)
		require.NoError(t, s.Attributes().FromRaw(w.a))
	}
	return td
}

// engine is a vLLM span whose stages are 3, 2, 5, 80 ms and a rest.
func engine(id, parent string, start, end int64, rid string) row {
	return row{id, parent, start, end, server, "llm_request", attrs{
		"gen_ai.request.id": rid, "gen_ai.latency.time_to_first_token": .010, "gen_ai.latency.e2e": .095, "gen_ai.latency.time_in_queue": .002,
		"gen_ai.latency.time_in_model_prefill": .005, "gen_ai.latency.time_in_model_decode": .080,
		"gen_ai.usage.prompt_tokens": 20, "gen_ai.usage.completion_tokens": 41,
	}, 0}
}

func fastAPI(id, parent string, start, end int64) row {
	return row{id, parent, start, end, server, "POST /v1/chat/completions", attrs{"http.request.method": "POST", "url.path": "/v1/chat/completions", "http.response.status_code": 200}, 0}
}

func page(id, parent string, start, end int64) row {
	return row{id, parent, start, end, server, "GET /page", attrs{"http.request.method": "GET", "url.path": "/page", "http.response.status_code": 200}, 0}
}

func sdk(id, parent string, start, end int64) row {
	return row{id, parent, start, end, client, "chat tiny", attrs{
		"gen_ai.operation.name": "chat", "gen_ai.request.model": "tiny", "gen_ai.response.finish_reasons": []any{"stop"}, "gen_ai.usage.input_tokens": 20,
	}, 0}
}

// stagesOf draws the stage spans: parent, name, start and end in milliseconds.
func stagesOf(td ptrace.Traces) []string {
	out := []string{}
	for _, s := range all(td) {
		if _, ok := s.Attributes().Get(names.Stage); ok {
			parent := s.ParentSpanID()
			n := 0
			for n < 8 && parent[n] != 0 {
				n++
			}
			ms := func(ts pcommon.Timestamp) float64 { return float64(int64(ts)-zero) / 1e6 }
			out = append(out, fmt.Sprintf("%s %s %g-%g", parent[:n], s.Name(), ms(s.StartTimestamp()), ms(s.EndTimestamp())))
		}
	}
	return out
}

func all(td ptrace.Traces) (out []ptrace.Span) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				out = append(out, s)
			}
		}
	}
	return out
}

// find is the attributes of a span.
func find(t *testing.T, td ptrace.Traces, id string) attrs {
	t.Helper()
	for _, s := range all(td) {
		if s.SpanID() == id8(id) {
			return s.Attributes().AsRaw()
		}
	}
	t.Fatalf("no span %q", id)
	return nil
}

var everything = Options{StageSpans: true}

func TestStagesAcrossLayers(t *testing.T) {
	inner := func(at float64) []string {
		out := []string{}
		for _, s := range []struct {
			name       string
			start, end float64
		}{{"admission", 0, 3}, {"queue", 3, 5}, {"prefill", 5, 10}, {"decode", 10, 90}} {
			out = append(out, fmt.Sprintf("e llm.%s %g-%g", s.name, at+s.start, at+s.end))
		}
		return out
	}
	for _, c := range []struct {
		name   string
		spans  []row
		want   []string
		engine attrs // of span e; nil value: absent
		skewed int
	}{
		{
			"an engine alone has its own return",
			[]row{engine("e", "", 0, 100, "chatcmpl-1")},
			append(inner(0), "e llm.return 90-100"),
			attrs{names.Ingress: nil, names.Return: nil, names.Admission: .003, names.Queue: .002, names.TTFT: .010, names.Layer: "engine", names.Dialect: "vllm"},
			0,
		},
		{
			"a gateway in the batch",
			[]row{fastAPI("g", "", 0, 150), engine("e", "g", 20, 120, "chatcmpl-1")},
			append(inner(20), "g llm.ingress 0-20", "g llm.return 110-150"),
			attrs{names.Ingress: .020, names.Return: .040, names.ClockSkew: nil, names.OperationName: "chat"},
			0,
		},
		{
			"spans between are nobody's",
			[]row{
				fastAPI("g", "", 0, 150), {"h", "g", 5, 140, internal, "handler", attrs{}, 0}, engine("e", "h", 20, 120, "chatcmpl-1"),
			},
			append(inner(20), "g llm.ingress 0-20", "g llm.return 110-150"),
			attrs{names.Ingress: .020},
			0,
		},
		{
			"a layer that ends at the headers says nothing of the return",
			[]row{fastAPI("g", "", 0, 35), engine("e", "g", 20, 120, "chatcmpl-1")},
			append(append(inner(20), "e llm.return 110-120"), "g llm.ingress 0-20"),
			attrs{names.Ingress: .020, names.Return: nil},
			0,
		},
		{
			"a layer whose clock is ahead is moved",
			[]row{fastAPI("g", "", 50, 200), engine("e", "g", 20, 120, "chatcmpl-1")},
			append(inner(20), "g llm.ingress 20-20", "g llm.return 110-170"),
			attrs{names.Ingress: 0.0, names.Return: .060, names.ClockSkew: .030},
			1,
		},
		{
			"the outermost layer counts: a client above its gateway",
			[]row{sdk("c", "", -30, 170), fastAPI("g", "c", 0, 150), engine("e", "g", 20, 120, "chatcmpl-1")},
			append(inner(20), "c llm.ingress -30-20", "c llm.return 110-170"),
			attrs{names.Ingress: .050, names.Return: .060, names.RequestModel: "tiny", names.FinishReasons: []any{"stop"}},
			0,
		},
		{
			"an HTTP client between ends at the headers and is no layer",
			[]row{
				sdk("c", "", 0, 150), {"x", "c", 5, 30, client, "POST", attrs{"http.request.method": "POST", "url.path": "/v1/chat/completions"}, 0}, engine("e", "x", 20, 120, "chatcmpl-1"),
			},
			append(inner(20), "c llm.ingress 0-20", "c llm.return 110-150"),
			attrs{names.Ingress: .020},
			0,
		},
		{
			"a page above a client made the call and is no layer",
			[]row{page("p", "", -100, 400), sdk("c", "p", 0, 150), engine("e", "c", 20, 120, "chatcmpl-1")},
			append(inner(20), "c llm.ingress 0-20", "c llm.return 110-150"),
			attrs{names.Ingress: .020},
			0,
		},
		{
			"a page right above an engine encloses it",
			[]row{page("p", "", 0, 150), engine("e", "p", 20, 120, "chatcmpl-1")},
			append(inner(20), "p llm.ingress 0-20", "p llm.return 110-150"),
			attrs{names.Ingress: .020},
			0,
		},
		{
			"an application above several calls is no layer of any",
			[]row{
				page("p", "", 0, 400), engine("e", "p", 20, 120, "chatcmpl-1"), engine("f", "p", 220, 320, "chatcmpl-2"),
			},
			[]string{
				"e llm.admission 20-23", "e llm.queue 23-25", "e llm.prefill 25-30", "e llm.decode 30-110", "e llm.return 110-120",
				"f llm.admission 220-223", "f llm.queue 223-225", "f llm.prefill 225-230", "f llm.decode 230-310", "f llm.return 310-320",
			},
			attrs{names.Ingress: nil, names.Return: nil},
			0,
		},
		{
			"an agent above several calls, each with a layer of its own",
			[]row{
				{"a", "", 0, 500, client, "invoke_agent", attrs{"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "tiny"}, 0},
				sdk("c", "a", 0, 150), engine("e", "c", 20, 120, "chatcmpl-1"),
				sdk("d", "a", 200, 350), engine("f", "d", 220, 320, "chatcmpl-2"),
			},
			[]string{
				"e llm.admission 20-23", "e llm.queue 23-25", "e llm.prefill 25-30", "e llm.decode 30-110",
				"f llm.admission 220-223", "f llm.queue 223-225", "f llm.prefill 225-230", "f llm.decode 230-310",
				"c llm.ingress 0-20", "c llm.return 110-150", "d llm.ingress 200-220", "d llm.return 310-350",
			},
			attrs{names.Ingress: .020, names.Return: .040},
			0,
		},
		{
			"the sequences of one call share the layer, which has one ingress and one return",
			[]row{
				fastAPI("g", "", 0, 150), engine("e", "g", 20, 120, "chatcmpl-1"), engine("f", "g", 20, 130, "chatcmpl-1"),
			},
			[]string{
				"e llm.admission 20-23", "e llm.queue 23-25", "e llm.prefill 25-30", "e llm.decode 30-110", "e llm.return 110-120",
				"f llm.admission 20-23", "f llm.queue 23-25", "f llm.prefill 25-30", "f llm.decode 30-110", "f llm.return 110-130",
				"g llm.ingress 0-20", "g llm.return 110-150",
			},
			attrs{names.Ingress: .020, names.Return: .040},
			0,
		},
		{
			"a failed layer tells the engine's outcome",
			[]row{
				{"g", "", 0, 150, server, "POST", attrs{"http.request.method": "POST", "url.path": "/v1/chat/completions", "http.response.status_code": 500}, 0},
				engine("e", "g", 20, 120, "chatcmpl-1"),
			},
			append(inner(20), "g llm.ingress 0-20", "g llm.return 110-150"),
			attrs{names.Status: "error"},
			0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			td := traces(t, c.spans...)
			before := td.SpanCount()
			f := Traces(td, everything)
			assert.ElementsMatch(t, c.want, stagesOf(td))
			assert.Equal(t, len(c.want), f.StageSpans)
			assert.Equal(t, before+f.StageSpans, td.SpanCount())
			assert.Equal(t, c.skewed, f.Skewed)
			got := find(t, td, "e")
			for k, v := range c.engine {
				if v == nil {
					assert.NotContains(t, got, k)
				} else if d, ok := v.(float64); ok {
					assert.InDelta(t, d, got[k], 1e-9, k)
				} else {
					assert.Equal(t, v, got[k], k)
				}
			}
			// A second llmspan finds what the first one left, and adds nothing.
			once := ptrace.NewTraces()
			td.CopyTo(once)
			f = Traces(td, everything)
			assert.Zero(t, f.StageSpans)
			assert.Empty(t, f.Rejected)
			for i, s := range all(td) {
				assert.Equal(t, all(once)[i].Attributes().AsRaw(), s.Attributes().AsRaw(), s.Name())
			}
		})
	}
}

// The order in which a batch lists its spans is of no consequence.
func TestTheOrderWithinABatchDoesNotMatter(t *testing.T) {
	rows := []row{sdk("c", "", -30, 170), fastAPI("g", "c", 0, 150), engine("e", "g", 20, 120, "chatcmpl-1"), page("p", "", 0, 10)}
	td := traces(t, rows...)
	Traces(td, everything)
	want := stagesOf(td)
	sort.Strings(want)
	for shift := 1; shift < len(rows); shift++ {
		turned := traces(t, append(append([]row{}, rows[shift:]...), rows[:shift]...)...)
		Traces(turned, everything)
		got := stagesOf(turned)
		sort.Strings(got)
		assert.Equal(t, want, got)
		assert.Equal(t, find(t, td, "e"), find(t, turned, "e"))
	}
}

func TestAStageSpanIsAChildLikeAnyOther(t *testing.T) {
	td := traces(t, engine("e", "", 0, 100, "chatcmpl-1"))
	Traces(td, everything)
	parent := all(td)[0]
	ids := map[pcommon.SpanID]bool{parent.SpanID(): true}
	for _, s := range all(td)[1:] {
		assert.Equal(t, parent.TraceID(), s.TraceID())
		assert.Equal(t, parent.SpanID(), s.ParentSpanID())
		assert.Equal(t, parent.TraceState().AsRaw(), s.TraceState().AsRaw(), "the sampling threshold is the trace's")
		assert.Equal(t, parent.Flags(), s.Flags())
		assert.Equal(t, ptrace.SpanKindInternal, s.Kind())
		assert.False(t, ids[s.SpanID()])
		ids[s.SpanID()] = true
	}
	assert.Len(t, ids, 6)
	assert.Equal(t, ScopeName, td.ResourceSpans().At(0).ScopeSpans().At(1).Scope().Name())
	svc, _ := td.ResourceSpans().At(0).Resource().Attributes().Get("service.name")
	assert.Equal(t, "svc", svc.Str(), "in the resource of its parent")
}

// A source that makes stage spans of its own keeps them; ours would be there twice.
func TestASourcesOwnStages(t *testing.T) {
	bare := engine("e", "g", 20, 120, "chatcmpl-1")
	bare.a = attrs{"gen_ai.request.id": "chatcmpl-1", "gen_ai.latency.e2e": .091, "gen_ai.latency.time_to_first_token": .010}
	td := traces(t, fastAPI("g", "", 0, 150), bare,
		row{"q", "e", 22, 24, internal, "vllm_queue", attrs{}, 0}, row{"k", "e", 24, 24, internal, "vllm_async_kv_transfer", attrs{}, 0},
		row{"p", "e", 24, 29, internal, "vllm_prefill", attrs{}, 0}, row{"d", "e", 29, 110, internal, "vllm_decode", attrs{}, 0})
	f := Traces(td, everything)
	assert.Zero(t, f.StageSpans)
	assert.Empty(t, stagesOf(td))
	got := find(t, td, "e")
	for k, want := range map[string]float64{names.Queue: .002, names.KVTransfer: 0, names.Prefill: .005, names.Decode: .081, names.Ingress: .020, names.Return: .039, names.Admission: .003} {
		assert.InDelta(t, want, got[k], 1e-9, k)
	}

	t.Run("the request span's own figures win", func(t *testing.T) {
		td := traces(t, engine("e", "", 0, 100, "chatcmpl-1"), row{"q", "e", 2, 9, internal, "vllm_queue", attrs{}, 0})
		Traces(td, everything)
		assert.InDelta(t, .002, find(t, td, "e")[names.Queue], 1e-9)
	})
	t.Run("one that ends before it starts says nothing", func(t *testing.T) {
		td := traces(t, bare, row{"q", "e", 9, 2, internal, "vllm_queue", attrs{}, 0})
		Traces(td, everything)
		assert.NotContains(t, find(t, td, "e"), names.Queue)
	})
	t.Run("those of another request are not its own", func(t *testing.T) {
		td := traces(t, engine("e", "", 0, 100, "chatcmpl-1"), row{"q", "x", 2, 9, internal, "vllm_queue", attrs{}, 0})
		assert.Equal(t, 5, Traces(td, everything).StageSpans)
	})
	t.Run("SGLang", func(t *testing.T) {
		td := traces(t, fastAPI("g", "", 0, 150), row{"e", "g", 20, 120, internal, " Req f4305840", attrs{
			"rid": "f4305840", "gen_ai.request.id": "f4305840", "gen_ai.usage.prompt_tokens": 5, "gen_ai.usage.completion_tokens": 5,
			"gen_ai.latency.time_to_first_token": .010, "gen_ai.latency.e2e": .095, "gen_ai.latency.time_in_model_prefill": .006, "gen_ai.latency.time_in_model_decode": .080,
		}, 0})
		assert.Zero(t, Traces(td, everything).StageSpans)
		assert.InDelta(t, .020, find(t, td, "e")[names.Ingress], 1e-9)
	})
}

func TestOptions(t *testing.T) {
	td := traces(t, engine("e", "", 0, 100, "chatcmpl-1"))
	assert.Zero(t, Traces(td, Options{}).StageSpans)
	got := find(t, td, "e")
	assert.InDelta(t, .002, got[names.Queue], 1e-9, "the figures are there without the spans")
	assert.Contains(t, got, "gen_ai.latency.e2e", "and so are the source's spellings")

	td = traces(t, engine("e", "", 0, 100, "chatcmpl-1"))
	Traces(td, Options{DropSource: true})
	got = find(t, td, "e")
	assert.NotContains(t, got, "gen_ai.latency.e2e")
	assert.NotContains(t, got, "gen_ai.usage.prompt_tokens")
	assert.EqualValues(t, 20, got[names.InputTokens])
}

func TestFacts(t *testing.T) {
	bad := engine("b", "", 0, 100, "chatcmpl-3")
	bad.a["gen_ai.latency.time_in_queue"] = -5.0
	bad.a["gen_ai.usage.prompt_tokens"] = "many"
	td := traces(t, sdk("c", "", -30, 170), fastAPI("g", "c", 50, 150), engine("e", "g", 20, 120, "chatcmpl-1"), bad,
		page("p", "", 0, 150), engine("f", "p", 20, 120, "chatcmpl-2"), // a layer for its place alone
		page("q", "", 0, 150), // no layer
		row{"x", "", 0, 1, internal, "x", attrs{}, 0})
	f := Traces(td, everything)
	assert.Equal(t, [...]int{request.LayerClient: 1, request.LayerGateway: 2, request.LayerEngine: 3}, f.Requests)
	assert.Equal(t, map[string]int{"queue": 1, "input_tokens": 1}, f.Rejected)
	assert.NotContains(t, find(t, td, "q"), names.Layer, "a page that encloses no call stays as it was")
	assert.Equal(t, attrs{}, find(t, td, "x"))
	assert.Equal(t, []any{"input_tokens", "queue"}, func() []any {
		v := find(t, td, "b")[names.Invalid].([]any)
		sort.Slice(v, func(i, k int) bool { return v[i].(string) < v[k].(string) })
		return v
	}())
	assert.Equal(t, 0, Traces(ptrace.NewTraces(), everything).StageSpans)
}

// Whatever is recorded: every span comes out, the stages of each engine span partition it within the outermost layer, and a second
// llmspan changes nothing.
func TestRecordings(t *testing.T) {
	for _, name := range recordings.Names() {
		batches, err := recordings.Traces(name)
		require.NoError(t, err)
		for _, td := range batches {
			before := map[pcommon.SpanID]int{}
			for _, s := range all(td) {
				before[s.SpanID()]++
			}
			f := Traces(td, everything)
			byParent := map[pcommon.SpanID][]ptrace.Span{}
			spans := map[pcommon.SpanID]ptrace.Span{}
			stages := 0
			for _, s := range all(td) {
				before[s.SpanID()]--
				spans[s.SpanID()] = s
				if _, ok := s.Attributes().Get(names.Stage); ok {
					stages++
					byParent[s.ParentSpanID()] = append(byParent[s.ParentSpanID()], s)
				}
			}
			require.Equal(t, f.StageSpans, stages)
			for _, n := range before {
				require.LessOrEqual(t, n, 0, "%s: a span is lost", name)
			}
			for id, children := range byParent {
				parent, ok := spans[id]
				require.True(t, ok)
				for i := 1; i < len(children); i++ {
					require.LessOrEqual(t, children[i-1].EndTimestamp(), children[i].StartTimestamp(), "%s: stages of %s overlap", name, id)
				}
				layer, _ := parent.Attributes().Get(names.Layer)
				if layer.Str() == "engine" {
					require.Equal(t, parent.StartTimestamp(), children[0].StartTimestamp(), "%s: %s", name, id)
				}
			}
			once := ptrace.NewTraces()
			td.CopyTo(once)
			require.Zero(t, Traces(td, everything).StageSpans)
			require.Equal(t, once.SpanCount(), td.SpanCount())
			for i, s := range all(td) {
				require.Equal(t, all(once)[i].Attributes().AsRaw(), s.Attributes().AsRaw(), name)
			}
		}
	}
}
