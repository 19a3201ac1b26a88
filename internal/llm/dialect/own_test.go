package dialect

import (
	"math"
	"sort"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
)

// everyRecordedSpan calls f with each span of the recordings and what its resource says.
func everyRecordedSpan(t *testing.T, f func(recording string, s ptrace.Span, res *request.Source)) {
	t.Helper()
	for _, name := range recordings.Names() {
		batches, err := recordings.Traces(name)
		require.NoError(t, err)
		for _, td := range batches {
			for _, rs := range td.ResourceSpans().All() {
				res := ReadResource(rs.Resource())
				for _, ss := range rs.ScopeSpans().All() {
					for _, s := range ss.Spans().All() {
						f(name, s, res)
					}
				}
			}
		}
	}
}

// wanted is what a second reader has to know of a request that the first one has written: all but what only the first needs to place
// stages, with Processed set.
func wanted(r request.Request) request.Request {
	r.Processed = true
	r.NoFirstToken, r.PrefillHasQueue, r.Tentative = false, false, false
	sort.Strings(r.Invalid)
	return r
}

func sortedInvalid(r request.Request) request.Request {
	sort.Strings(r.Invalid)
	return r
}

// What the second reader reads equals what the first one wrote, for every recorded span, with and without the source's spellings.
func TestASecondReaderReadsWhatTheFirstWrote(t *testing.T) {
	n := 0
	everyRecordedSpan(t, func(name string, s ptrace.Span, res *request.Source) {
		first, ok := Read(s, res)
		if !ok {
			return
		}
		n++
		// What the enclosing layers would add.
		first.Ingress, first.Return, first.KVTransfer, first.ClockSkew = request.Some(.125), request.Some(.25), request.Some(.5), request.Some(.0625)
		first.Dimensions = []request.Dimension{{Name: "team", Value: "search"}, {Name: "tier", Value: "unknown", Default: true}}
		if !first.LayerOnly { // what the business would add
			first.Outcome, first.Violated = request.OutcomeMissed, request.ViolatedCancelled|request.ViolatedTTFT
			first.Quality, first.Warmup, first.Oversize, first.Wasted = request.IssueTruncated|request.IssueGarbled, true, true, true
			first.ColdStart = request.Some(12.5)
			first.Price = &cost.Price{Currency: "USD", Input: 500_000, Output: 1_500_000, CachedInput: 50_000, CacheWrite: 500_000, Reasoning: 1_500_000}
			if a, _ := cost.FromFloat(.00123); !first.Reported {
				first.Cost, first.Currency = request.Some(a), "USD"
			}
		}
		for _, drop := range []bool{false, true} {
			span := ptrace.NewSpan()
			s.CopyTo(span)
			Write(&first, span)
			if drop {
				DropSource(&first, span.Attributes())
			}
			second, ok := Read(span, res)
			if !assert.True(t, ok, "%s: span %s of dialect %s is not recognised again", name, s.SpanID(), first.Dialect) {
				continue
			}
			if !assert.Equal(t, wanted(first), sortedInvalid(second), "%s: span %s of dialect %s, sources dropped: %t", name, s.SpanID(), first.Dialect, drop) {
				t.FailNow()
			}
			before := span.Attributes().AsRaw()
			Write(&second, span)
			assert.Equal(t, before, span.Attributes().AsRaw(), "%s: span %s: writing what was read changes nothing", name, s.SpanID())
		}
	})
	require.Greater(t, n, 500)
}

// Write leaves what it does not own as it was, and adds nothing but what the table lists.
func TestWriteAddsWhatTheTableLists(t *testing.T) {
	listed := map[string]bool{names.ResponseID: true, names.FinishReasons: true}
	for _, a := range names.SpanAttributes {
		listed[a.Key] = true
	}
	folded := map[string]bool{names.RequestModel: true, names.OperationName: true, names.ProviderName: true, names.ResponseID: true}
	everyRecordedSpan(t, func(name string, s ptrace.Span, res *request.Source) {
		r, ok := Read(s, res)
		if !ok {
			return
		}
		before := s.Attributes().AsRaw()
		Write(&r, s)
		after := s.Attributes().AsRaw()
		for k, v := range before {
			if !folded[k] && !listed[k] {
				assert.Equal(t, v, after[k], "%s: %s of span %s", name, k, s.SpanID())
			}
		}
		for k := range after {
			if _, had := before[k]; !had {
				assert.True(t, listed[k], "%s: %s was added and is not in names.SpanAttributes", name, k)
			}
		}
	})
}

// The source's spellings go only when what they say is there under its current name.
func TestDropSourceKeepsWhatIsRead(t *testing.T) {
	drop := func(t *testing.T, kind ptrace.SpanKind, name string, a attrs) (gone []string, after attrs) {
		s := newSpan(t, kind, name, a)
		r := mustRead(t, s)
		Write(&r, s)
		DropSource(&r, s.Attributes())
		after = s.Attributes().AsRaw()
		for k := range a {
			if _, ok := after[k]; !ok {
				gone = append(gone, k)
			}
		}
		sort.Strings(gone)
		return gone, after
	}
	t.Run("an engine's latencies and old usage names go", func(t *testing.T) {
		gone, after := drop(t, ptrace.SpanKindServer, "llm_request", v1)
		assert.Equal(t, []string{
			"gen_ai.latency.e2e", "gen_ai.latency.time_in_model_decode", "gen_ai.latency.time_in_model_inference", "gen_ai.latency.time_in_model_prefill",
			"gen_ai.latency.time_in_queue", "gen_ai.latency.time_to_first_token", "gen_ai.usage.completion_tokens", "gen_ai.usage.prompt_tokens",
		}, gone)
		assert.EqualValues(t, 20, after[names.InputTokens])
		assert.EqualValues(t, 46, after[names.OutputTokens])
		assert.Equal(t, "chatcmpl-1", after[names.RequestID])
	})
	t.Run("an engine's rejected figure stays in sight", func(t *testing.T) {
		gone, _ := drop(t, ptrace.SpanKindServer, "llm_request", with(v1, attrs{"gen_ai.latency.time_in_queue": -5.0}))
		assert.NotContains(t, gone, "gen_ai.latency.time_in_queue", "its value is nowhere else")
		assert.Contains(t, gone, "gen_ai.latency.e2e")
	})
	t.Run("a rejected count stays in sight", func(t *testing.T) {
		gone, after := drop(t, ptrace.SpanKindClient, "chat", with(chat, attrs{"gen_ai.usage.input_tokens": nil, "gen_ai.usage.prompt_tokens": -3}))
		assert.NotContains(t, gone, "gen_ai.usage.prompt_tokens")
		assert.NotContains(t, after, names.InputTokens)
	})
	t.Run("a model name that is text stays where it was", func(t *testing.T) {
		gone, _ := drop(t, ptrace.SpanKindInternal, "LLM", attrs{"openinference.span.kind": "LLM", "llm.model_name": "two words"})
		assert.NotContains(t, gone, "llm.model_name")
	})
	t.Run("Dynamo's bare words go, anybody else's stay", func(t *testing.T) {
		gone, after := drop(t, ptrace.SpanKindInternal, "http-request", dynamo)
		assert.Equal(t, []string{"input_tokens", "model", "output_tokens"}, gone)
		assert.EqualValues(t, 40, after[names.InputTokens])
		gone, _ = drop(t, ptrace.SpanKindClient, "chat", with(chat, attrs{"model": "T", "input_tokens": 5}))
		assert.Empty(t, gone)
	})
	t.Run("current names are never dropped", func(t *testing.T) {
		gone, _ := drop(t, ptrace.SpanKindClient, "chat", chat)
		assert.Empty(t, gone)
	})
}

// What a stranger writes under our names is checked like any other figure.
func TestOwnAttributesAreChecked(t *testing.T) {
	own := func(a attrs) (request.Request, bool) {
		return Read(newSpan(t, ptrace.SpanKindServer, "x", with(attrs{names.Layer: "engine", names.Dialect: "vllm", names.Status: "ok"}, a)), &request.Source{})
	}
	for name, a := range map[string]attrs{
		"a layer that there is not":     {names.Layer: "kernel"},
		"no layer":                      {names.Layer: nil},
		"a layer of the wrong type":     {names.Layer: 3},
		"a dialect that there is not":   {names.Dialect: "mine"},
		"a dialect of the wrong type":   {names.Dialect: true},
		"an empty dialect":              {names.Dialect: ""},
		"an empty layer is not a layer": {names.Layer: ""},
	} {
		_, ok := own(a)
		assert.False(t, ok, name)
	}
	for name, v := range map[string]any{"negative": -1.0, "NaN": math.NaN(), "infinity": math.Inf(1), "text": "0.5", "bool": true, "longer than any request": 1e12} {
		for _, k := range []string{names.Admission, names.Queue, names.Prefill, names.Decode, names.TTFT, names.E2E, names.UserTTFT, names.Ingress, names.Return, names.KVTransfer, names.ClockSkew} {
			r, ok := own(attrs{k: v})
			require.True(t, ok)
			known := r.Admission.Known || r.Queue.Known || r.Prefill.Known || r.Decode.Known || r.TTFT.Known || r.E2E.Known ||
				r.UserTTFT.Known || r.Ingress.Known || r.Return.Known || r.KVTransfer.Known || r.ClockSkew.Known
			assert.False(t, known, "%s that is %s", k, name)
		}
	}
	r, ok := own(attrs{names.Status: 7, names.Beam: "yes", names.Invalid: "x"})
	require.True(t, ok)
	assert.Equal(t, request.StatusUnknown, r.Status)
	assert.False(t, r.Beam)
	assert.Empty(t, r.Invalid)

	r, ok = own(attrs{names.Status: "error", names.Invalid: []any{"ttft", 7, "ttft", "a text that is no name of a figure"}})
	require.True(t, ok)
	assert.Equal(t, "_OTHER", r.ErrorType)
	assert.Equal(t, []string{"ttft"}, r.Invalid, "they become labels, so they have to be names")

	many := make([]any, 500)
	for i := range many {
		many[i] = "f" + string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	r, _ = own(attrs{names.Invalid: many})
	assert.LessOrEqual(t, len(r.Invalid), 32, "they become labels, so there are few")
}

func TestWriteRemovesWhatAStrangerWroteUnderOurNames(t *testing.T) {
	s := newSpan(t, ptrace.SpanKindClient, "chat", with(chat, attrs{names.TTFT: .5, names.Invalid: []any{"ttft"}, names.Stage: "queue", names.Cost: .1, names.Price: "USD input=1", names.Dimension + "team": "red", "llmspan.mood": .1, names.SamplingDecision: "drop"}))
	r := mustRead(t, s)
	Write(&r, s)
	got := s.Attributes().AsRaw()
	assert.NotContains(t, got, names.TTFT)
	assert.NotContains(t, got, names.Invalid)
	assert.NotContains(t, got, names.SamplingDecision)
	assert.NotContains(t, got, names.Cost)
	assert.NotContains(t, got, names.Price)
	assert.NotContains(t, got, names.Dimension+"team")
	assert.Equal(t, .1, got["llmspan.mood"], "what this package does not write is not its business")
}

func TestDuplicateKeysDoNotConfuse(t *testing.T) {
	// A map from the wire may hold a key twice; pdata keeps both.
	var u ptrace.JSONUnmarshaler
	td, err := u.UnmarshalTraces([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"01000000000000000000000000000000","spanId":"0200000000000000","name":"chat","kind":3,
		"startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":[
		{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
		{"key":"gen_ai.usage.input_tokens","value":{"intValue":"3"}},{"key":"gen_ai.usage.input_tokens","value":{"intValue":"4"}}]}]}]}]}`))
	require.NoError(t, err)
	s := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	r, ok := Read(s, &request.Source{})
	require.True(t, ok)
	assert.Equal(t, request.Some(int64(3)), r.InputTokens)
	Write(&r, s)
	second, ok := Read(s, &request.Source{})
	require.True(t, ok)
	assert.Equal(t, r.InputTokens, second.InputTokens)
	assert.Equal(t, pcommon.ValueTypeInt, func() pcommon.ValueType { v, _ := s.Attributes().Get(names.InputTokens); return v.Type() }())
}
