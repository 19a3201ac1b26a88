package recordings_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/stage"
	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
)

const attributesPage = "../../docs/attributes.md"

// assembledOnly are the attributes of names.SpanAttributes that take whole traces, or a decision on them: they are written with sampling on.
var assembledOnly = []string{
	names.UserTTFTEstimated, names.UserE2E, names.UserGapMax, names.Chunks,
	names.SamplingDecision, names.SamplingReason, names.SamplingPartial, names.SamplingIncoming,
}

// configuredOnly are written when the configuration asks for them: objectives, prices, dimensions, a smaller oversize_tokens; the last two
// on whole traces of a proxy that lets its engine run on.
var configuredOnly = []string{
	names.SLOOutcome, names.SLOViolated, names.Price, names.Unpriced, names.Oversize, names.Dimension + "<name>", names.DimensionsDefault,
	names.Wasted, names.Part,
}

// rare is a request with what no recording has: a wait for another engine's cache, a gateway whose clock is ahead, and figures that
// cannot be true.
func rare() ptrace.Traces {
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	add := func(id, parent byte, name string, kind ptrace.SpanKind, from, to int) pcommon.Map {
		s := spans.AppendEmpty()
		s.SetTraceID(pcommon.TraceID{1})
		s.SetSpanID(pcommon.SpanID{id})
		if parent != 0 {
			s.SetParentSpanID(pcommon.SpanID{parent})
		}
		s.SetName(name)
		s.SetKind(kind)
		s.SetStartTimestamp(pcommon.Timestamp(1_796_045_488_000+from) * 1e6)
		s.SetEndTimestamp(pcommon.Timestamp(1_796_045_488_000+to) * 1e6)
		return s.Attributes()
	}
	gateway := add(1, 0, "POST /v1/chat/completions", ptrace.SpanKindServer, 30, 1100)
	gateway.PutStr("http.request.method", "POST")
	gateway.PutStr("url.path", "/v1/chat/completions")
	engine := add(2, 1, "llm_request", ptrace.SpanKindServer, 0, 1000)
	engine.PutDouble("gen_ai.latency.e2e", 0.9)
	engine.PutDouble("gen_ai.latency.time_to_first_token", 0.4)
	engine.PutDouble("gen_ai.latency.time_in_queue", -1)
	add(3, 2, "vllm_async_kv_transfer", ptrace.SpanKindInternal, 100, 150)
	return td
}

// added are the keys that the processor put on spans of td, without those that a redaction leaves (<key>.length and the like).
func added(t *testing.T, batches []ptrace.Traces) map[string]bool {
	t.Helper()
	before := map[pcommon.SpanID]pcommon.Map{}
	for _, td := range batches {
		each(td, func(s ptrace.Span) {
			a := pcommon.NewMap()
			s.Attributes().CopyTo(a)
			before[s.SpanID()] = a
		})
	}
	out := map[string]bool{}
	for _, td := range run(t, batches).traces {
		each(td, func(s ptrace.Span) {
			old, ok := before[s.SpanID()]
			for k := range s.Attributes().All() {
				if ok {
					if _, had := old.Get(k); had || leftByRedaction(k, old) {
						continue
					}
				}
				out[k] = true
			}
		})
	}
	return out
}

func leftByRedaction(key string, old pcommon.Map) bool {
	for _, suffix := range []string{".length", ".count", ".roles", ".types"} {
		if of, ok := strings.CutSuffix(key, suffix); ok {
			_, had := old.Get(of)
			return had || of == "span.status.message" || of == "span.name"
		}
	}
	return false
}

// The table of attributes is names.SpanAttributes, and that is what comes out: nothing else on any recording, and each of them somewhere.
func TestSpanAttributesAreDocumented(t *testing.T) {
	var rows [][]string
	listed := map[string]bool{}
	for _, a := range names.SpanAttributes {
		listed[a.Key] = true
		meaning := a.Meaning
		if slices.Contains(assembledOnly, a.Key) {
			meaning += " (with sampling on)"
		}
		if slices.Contains(configuredOnly, a.Key) {
			continue // business_attributes_test.go
		}
		rows = append(rows, []string{"`" + a.Key + "`", a.Type, meaning})
	}
	doctest.Generated(t, attributesPage, "span attributes", doctest.Table([]string{"attribute", "type", "meaning"}, rows))

	seen := added(t, []ptrace.Traces{rare()})
	for _, name := range recordings.Names() {
		for k := range added(t, load(t, name)) {
			if assert.True(t, listed[k], "%s: %s is added and not in names.SpanAttributes", name, k) {
				seen[k] = true
			}
		}
	}
	for k := range listed {
		if !slices.Contains(assembledOnly, k) && !slices.Contains(configuredOnly, k) && !folded(k) {
			assert.True(t, seen[k], "%s is documented and never written", k)
		}
	}
	whole := map[string]bool{}
	for _, name := range recordings.Names() {
		for _, td := range assembled(t, name) {
			each(td, func(s ptrace.Span) {
				for k := range s.Attributes().All() {
					whole[k] = true
				}
			})
		}
	}
	for _, k := range assembledOnly {
		assert.False(t, seen[k], "%s is written without sampling", k)
		if k != names.SamplingIncoming { // no recording was head-sampled by a sampler that was honest
			assert.True(t, whole[k], "%s is documented and never written with sampling", k)
		}
	}
}

// folded: keys that sources write themselves, so that a recording need not gain them.
func folded(key string) bool { return key == names.ResponseID }

var stageTexts = map[string][3]string{
	"ingress":     {"enclosing span's start", "engine span's start", "enclosing span"},
	"admission":   {"engine span's start (arrival)", "queue", "engine span"},
	"queue":       {"queued by the core", "scheduled", "engine span"},
	"kv_transfer": {"", "", ""},
	"prefill":     {"scheduled", "first token = start + TTFT", "engine span"},
	"decode":      {"first token", "last token", "engine span"},
	"return":      {"last token", "end of the enclosing span, else of the engine's", "enclosing span, else engine span"},
}

func TestStagesAreDocumented(t *testing.T) {
	var rows [][]string
	for n := stage.Ingress; n <= stage.Return; n++ {
		text, ok := stageTexts[n.String()]
		require.True(t, ok, n.String())
		if text[0] != "" { // a figure, and no span of its own yet
			rows = append(rows, []string{"`" + n.SpanName() + "`", "`" + n.String() + "`", text[0], text[1], text[2]})
		}
	}
	doctest.Generated(t, attributesPage, "stages", doctest.Table([]string{"span", "`llmspan.stage`", "from", "to", "parent"}, rows))
	seen := map[string]bool{}
	for _, batches := range [][]ptrace.Traces{load(t, exampleRecording), together(t, exampleRecording)} {
		for _, td := range run(t, batches).traces {
			each(td, func(s ptrace.Span) {
				if v, ok := s.Attributes().Get(names.Stage); ok {
					seen[v.Str()] = true
					assert.Equal(t, "llm."+v.Str(), s.Name())
					assert.Equal(t, 1, s.Attributes().Len(), "no attribute but the stage")
				}
			})
		}
	}
	assert.Len(t, seen, len(rows), "the stages of the table are the ones that are made")
}

// The record's attributes on the page are those of the records of all recordings, both ways.
func TestRecordAttributesAreDocumented(t *testing.T) {
	raw, err := os.ReadFile(attributesPage)
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(raw), "## The request record")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]bool{}
	for line := range strings.SplitSeq(section, "\n") {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") {
			for key := range strings.SplitSeq(strings.TrimPrefix(cells[0], "| "), ", ") {
				documented[strings.Trim(key, "`")] = true
			}
		}
	}
	seen := map[string]bool{}
	note := func(res result) {
		for _, lr := range res.records {
			for k := range lr.Attributes().All() {
				seen[k] = true
			}
		}
	}
	note(run(t, []ptrace.Traces{rare()}))
	note(run(t, together(t, exampleRecording)))
	for _, name := range recordings.Names() {
		note(run(t, load(t, name)))
	}
	assert.Equal(t, slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(seen)), "documented (first) and seen")
}

// exampleRecording has the span of the worked example: six requests through a gateway, one at a time.
const exampleRecording = "gateway/vllm-0.32.0-gw-idle"

// together is a recording whose batches came as one.
func together(t *testing.T, name string) []ptrace.Traces {
	t.Helper()
	all := ptrace.NewTraces()
	for _, td := range load(t, name) {
		td.ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
	}
	return []ptrace.Traces{all}
}

// example is the first engine span of the recording, alone.
func example(t *testing.T) ptrace.Traces {
	t.Helper()
	td := load(t, exampleRecording)[0]
	require.Equal(t, 1, td.ResourceSpans().Len())
	first := true
	td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().RemoveIf(func(ptrace.Span) bool {
		if first {
			first = false
			return false
		}
		return true
	})
	require.Equal(t, 1, td.SpanCount())
	return td
}

// The worked example is what the pair makes of the recorded span today.
func TestWorkedExample(t *testing.T) {
	in := example(t)
	before := ptrace.NewTraces()
	in.CopyTo(before)
	res := run(t, []ptrace.Traces{in})
	require.Len(t, res.traces, 1)
	require.Len(t, res.records, 1)

	begin := before.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).StartTimestamp()
	end := before.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).EndTimestamp()
	ms := func(t pcommon.Timestamp) string { return fmt.Sprintf("%.3f", float64(t)/1e6) }
	var rows [][]string
	var sum pcommon.Timestamp
	each(res.traces[0], func(s ptrace.Span) {
		if _, ok := s.Attributes().Get(names.Stage); ok {
			length := s.EndTimestamp() - s.StartTimestamp()
			sum += length
			rows = append(rows, []string{"`" + s.Name() + "`", ms(s.StartTimestamp() - begin), ms(s.EndTimestamp() - begin), ms(length)})
		}
	})
	assert.Equal(t, end-begin, sum, "the stages partition the span to the nanosecond")
	rows = append(rows, []string{"sum = `llm_request`", ms(0), ms(end - begin), ms(sum)})

	doctest.Generated(t, attributesPage, "example span", doctest.Fence("diff", doctest.Spans(before, res.traces[0], true)))
	doctest.Generated(t, attributesPage, "example stages", doctest.Table([]string{"stage", "from, ms", "to, ms", "length, ms"}, rows))
	doctest.Generated(t, attributesPage, "example metrics", doctest.Fence("text", doctest.Points(res.metrics)))
	doctest.Generated(t, attributesPage, "example record", doctest.Fence("text", doctest.Record(res.records[0])))
}
