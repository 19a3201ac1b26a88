package sim

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// shape is everything of a span but its values: what a reader may key on.
type shape struct {
	name, kind, status, scope, version, schema string
	flags                                      uint32
	resource, attributes                       string
}

// keys are "key:type" in order.
func keys(m pcommon.Map) string {
	var b strings.Builder
	for k, v := range m.All() {
		b.WriteString(k + ":" + v.Type().String())
		if v.Type() == pcommon.ValueTypeSlice {
			for _, x := range v.Slice().All() {
				b.WriteString("[" + x.Type().String() + "]")
			}
		}
		b.WriteString(" ")
	}
	return b.String()
}

func shapeOf(s flat) shape {
	return shape{
		name: s.Name(), kind: s.Kind().String(), status: s.Status().Code().String(), scope: s.scope.Name(), version: s.scope.Version(),
		schema: s.schema, flags: s.Flags(), resource: keys(s.resource), attributes: keys(s.Attributes()),
	}
}

func shapes(all []flat) []shape {
	var out []shape
	for _, s := range all {
		if x := shapeOf(s); !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

func TestEngineSpansHaveTheRecordedShape(t *testing.T) {
	w, err := New(only(nil), start)
	require.NoError(t, err)
	model := w.engines[0].Model
	traced := plain(model, 56, 20)
	traced.TraceID, traced.Parent = w.random.traceID(), w.random.spanID()
	for _, c := range []Call{plain(model, 56, 20), traced} {
		_, err = w.Submit(c)
		require.NoError(t, err)
	}
	w.Advance(time.Minute)
	got := shapes(named(w.Drain().spans(), "llm_request"))
	assert.ElementsMatch(t, shapes(recorded(t, "vllm-0.32.0-basic.traces.jsonl")), got, "with and without a parent")
}

func TestGreedyRequestsHaveNoTemperature(t *testing.T) {
	w, err := New(only(nil), start)
	require.NoError(t, err)
	c := plain(w.engines[0].Model, 56, 20)
	c.Temperature = 0
	_, err = w.Submit(c)
	require.NoError(t, err)
	w.Advance(time.Minute)
	spans := named(w.Drain().spans(), "llm_request")
	require.Len(t, spans, 1)
	_, ok := spans[0].Attributes().Get("gen_ai.request.temperature")
	assert.False(t, ok)
}

func TestStartupSpansHaveTheRecordedShape(t *testing.T) {
	w, err := New(DefaultConfig(), start)
	require.NoError(t, err)
	got := w.Drain().spans()
	require.NotEmpty(t, got)
	want := recorded(t, "vllm-0.32.0-startup.traces.jsonl")
	for _, s := range got {
		if strings.Contains(s.Name(), "(GPU)") {
			continue // recorded on a CPU
		}
		i := slices.IndexFunc(want, func(x flat) bool { return x.Name() == s.Name() })
		require.GreaterOrEqual(t, i, 0, "%s is not a recorded name", s.Name())
		assert.Equal(t, keys(want[i].Attributes()), keys(s.Attributes()), s.Name())
		assert.Equal(t, want[i].Kind(), s.Kind())
		assert.Equal(t, s.scope.Name(), func() string { v, _ := s.Attributes().Get("code.namespace"); return v.Str() }())
	}
}

// ids replaces what is random in request ids.
var hexRun = regexp.MustCompile(`[0-9a-f]{16}`)

func TestSequencesOfOneCallAreNamedAsRecorded(t *testing.T) {
	type one struct {
		ID           string
		Input, Extra int64 // prompt tokens, and how many more than the first of its trace
	}
	read := func(all []flat) map[string][]one {
		out := map[string][]one{}
		for _, s := range all {
			id, _ := s.Attributes().Get("gen_ai.request.id")
			in, _ := s.Attributes().Get("gen_ai.usage.prompt_tokens")
			tr := s.TraceID().String()
			x := one{ID: hexRun.ReplaceAllString(id.Str(), "X"), Input: in.Int()}
			if len(out[tr]) > 0 {
				x.Extra = x.Input - out[tr][0].Input
			}
			out[tr] = append(out[tr], x)
		}
		return out
	}
	find := func(m map[string][]one, part string) []one {
		for _, v := range m {
			if strings.Contains(v[0].ID, part) && len(v) > 1 {
				return v
			}
		}
		return nil
	}
	api := read(recorded(t, "vllm-0.32.0-api.traces.jsonl"))
	n3 := read(recorded(t, "vllm-0.32.0-n3.traces.jsonl"))
	for _, tt := range []struct {
		name string
		want []one
		call func(*Call)
	}{
		{"several prompts", find(api, "cmpl-X-0"), func(c *Call) {
			c.Kind, c.Route, c.Prompts, c.Outputs = KindPrompts, RouteCompletions, []int{32, 21, 12}, []int{8, 8, 8}
		}},
		{"beam search", find(api, "-beam-"), func(c *Call) { c.Kind, c.Beams, c.Prompts = KindBeam, 2, []int{56} }},
		{"n = 3", find(n3, "chatcmpl-X"), func(c *Call) { c.Kind, c.Outputs, c.Prompts = KindChoices, []int{8, 8, 8}, []int{54} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.NotEmpty(t, tt.want)
			w, err := New(only(nil), start)
			require.NoError(t, err)
			c := plain(w.engines[0].Model, 56, 8)
			tt.call(&c)
			_, err = w.Submit(c)
			require.NoError(t, err)
			w.Advance(time.Minute)
			got := read(named(w.Drain().spans(), "llm_request"))
			require.Len(t, got, 1)
			for _, v := range got {
				assert.ElementsMatch(t, tt.want, v)
			}
		})
	}
}

func TestGatewaySpansHaveTheRecordedShape(t *testing.T) {
	cfg := only(func(c *Config) { c.Gateway.Enabled, c.Gateway.ModelAttribute = true, false })
	w, err := New(cfg, start)
	require.NoError(t, err)
	model := w.engines[0].Model
	stream, unary := plain(model, 94, 60), plain(model, 86, 60)
	stream.Stream, stream.Chunks, unary.Chunks = true, true, true
	bad, missing := Call{Model: model, Route: RouteChat, Refuse: 400, Chunks: true}, Call{Model: model, Route: RouteChat, Refuse: 404, Chunks: true}
	for _, c := range []Call{stream, unary, bad, missing} {
		_, err = w.Submit(c)
		require.NoError(t, err)
	}
	w.Advance(time.Minute)
	got := shapes(w.Drain().spans())
	want := shapes(append(recorded(t, "vllm-0.32.0-gw-busy-2.traces.jsonl"), recorded(t, "vllm-0.32.0-gw-error.traces.jsonl")...))
	assert.ElementsMatch(t, want, got)
}

func TestClientSpansHaveTheRecordedShape(t *testing.T) {
	cfg := only(func(c *Config) { c.Gateway.Enabled = true })
	w, err := New(cfg, start)
	require.NoError(t, err)
	c := plain(w.engines[0].Model, 104, 24)
	c.Client = true
	_, err = w.Submit(c)
	require.NoError(t, err)
	w.Advance(time.Minute)
	spans := named(w.Drain().spans(), "chat "+c.Model)
	require.Len(t, spans, 1)
	for _, want := range recorded(t, "genai-client.traces.jsonl") {
		if !strings.Contains(want.scope.Name(), "genai") {
			continue
		}
		for k, v := range spans[0].Attributes().All() {
			r, ok := want.Attributes().Get(k)
			if assert.True(t, ok, "%s is not a recorded key", k) {
				assert.Equal(t, r.Type(), v.Type(), k)
			}
		}
		assert.Equal(t, want.schema, spans[0].schema)
		assert.Equal(t, want.Kind(), spans[0].Kind())
		return
	}
	t.Fatal("no recorded client span")
}

// pageShape is every line of a page without its values: HELP and TYPE lines as they are, samples with label names and, where
// a name decides over what is counted, label values.
func pageShape(page string) (lines []string) {
	value := regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	keep := []string{"le", "reason", "source", "sleep_state", "finished_reason", "generation", "engine", "method"}
	seen := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSpace(page), "\n") {
		if !strings.HasPrefix(line, "#") {
			if i := strings.LastIndexByte(line, ' '); i > 0 {
				line = line[:i]
			}
			line = value.ReplaceAllStringFunc(line, func(m string) string {
				name, _, _ := strings.Cut(m, "=")
				if slices.Contains(keep, name) {
					return m
				}
				return name
			})
		}
		if !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	return lines
}

func TestPageHasTheRecordedFamiliesTypesLabelsAndBuckets(t *testing.T) {
	want, err := os.ReadFile("testdata/vllm-0.32.0-end.prom")
	require.NoError(t, err)
	cfg := only(func(c *Config) { c.Engines[0].MaxModelLen = 2048 }) // the recorded engine's; token buckets follow from it
	w, err := New(cfg, start)
	require.NoError(t, err)
	model := w.engines[0].Model
	completion := plain(model, 32, 8)
	completion.Route = RouteCompletions
	for _, c := range []Call{plain(model, 56, 20), completion, {Model: model, Route: RouteChat, Refuse: 400}} {
		_, err = w.Submit(c)
		require.NoError(t, err)
	}
	w.Advance(time.Minute)
	page, err := w.Page("vllm-chat")
	require.NoError(t, err)
	assert.Equal(t, pageShape(string(want)), pageShape(string(page)), "order, families, HELP, TYPE, labels and buckets")
}
