package dimension

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func attrs(t *testing.T, m map[string]any) pcommon.Map {
	t.Helper()
	a := pcommon.NewMap()
	require.NoError(t, a.FromRaw(m))
	return a
}

func TestFind(t *testing.T) {
	none := map[string]any{}
	for _, c := range []struct {
		name                              string
		from                              []string
		span, layer, above, res, layerRes map[string]any
		want                              string
	}{
		{"its own span", []string{"span.team"}, map[string]any{"team": "a"}, map[string]any{"team": "b"}, none, none, none, "a"},
		{"a layer around it", []string{"span.team"}, none, map[string]any{"team": "b"}, map[string]any{"team": "c"}, none, none, "b"},
		{"a span above that is no layer is a parent", []string{"span.team"}, none, none, map[string]any{"team": "c"}, none, none, ""},
		{"the nearest parent", []string{"parent.team"}, map[string]any{"team": "a"}, map[string]any{"team": "b"}, map[string]any{"team": "c"}, none, none, "b"},
		{"its resource, then the layer's", []string{"resource.team"}, none, none, none, none, map[string]any{"team": "e"}, "e"},
		{"the first place that says something", []string{"span.team", "resource.team"}, none, none, none, map[string]any{"team": "d"}, none, "d"},
		{"the order of the list, not of the spans", []string{"resource.team", "span.team"}, map[string]any{"team": "a"}, none, none, map[string]any{"team": "d"}, none, "d"},
		{"a captured header, an array of one", []string{"header.x-team"}, none, none, map[string]any{"http.request.header.x_team": []any{"h"}}, none, none, "h"},
		{"a captured header as it is now spelt", []string{"header.X-Team"}, none, map[string]any{"http.request.header.x-team": []any{"h"}}, none, none, none, "h"},
		{"two values are none", []string{"header.x-team"}, none, map[string]any{"http.request.header.x-team": []any{"h", "i"}}, none, none, none, ""},
		{"baggage that an SDK has copied", []string{"baggage.team"}, none, none, map[string]any{"baggage.team": "g"}, none, none, "g"},
		{"a captured baggage header", []string{"baggage.team"}, none, map[string]any{"http.request.header.baggage": []any{"app=x, team=s%2Ft;p=1,b=c"}}, none, none, none, "s/t"},
		{"a number", []string{"span.tier"}, map[string]any{"tier": 2}, none, none, none, none, "2"},
		{"an empty text says nothing", []string{"span.team", "resource.team"}, map[string]any{"team": ""}, none, none, map[string]any{"team": "d"}, none, "d"},
		{"a structure says nothing", []string{"span.team"}, map[string]any{"team": map[string]any{"a": 1}}, none, none, none, none, ""},
	} {
		r, err := New([]Config{{Name: "x", From: c.from, Default: "none", Max: 10}})
		require.NoError(t, err, c.name)
		way := []Place{
			{Span: attrs(t, c.span), Resource: attrs(t, c.res), Layer: true},
			{Span: attrs(t, c.layer), Resource: attrs(t, c.layerRes), Layer: true},
			{Span: attrs(t, c.above), Resource: attrs(t, none)},
		}
		got, ok := r.Find(0, way, false)
		assert.Equal(t, c.want, got, c.name)
		assert.Equal(t, c.want != "", ok, c.name)

		// The same after the text is gone: what Keep noted is all that is left of the spans.
		for i := range way {
			r.Keep(way[i].Span)
			way[i].Span.RemoveIf(func(k string, _ pcommon.Value) bool { return !strings.HasPrefix(k, "llmspan.dimension_kept.") })
		}
		got, _ = r.Find(0, way, true)
		assert.Equal(t, c.want, got, "%s, kept", c.name)
		for i := range way {
			r.Forget(way[i].Span)
			assert.Zero(t, way[i].Span.Len(), c.name)
		}
	}
}

func TestLabelsAreFewAndHaveTheFormOfNames(t *testing.T) {
	now := time.Unix(1_796_045_488, 0)
	r, err := New([]Config{
		{Name: "team", From: []string{"span.team"}, Default: "nobody", Max: 2},
		{Name: "tier", From: []string{"span.tier"}, Default: "free", Max: 1, Values: []string{"gold", "silver plus"}},
	})
	require.NoError(t, err)
	label := func(at time.Time, i int, v string) string { l, _ := r.Label(at, i, v, true); return l }
	assert.Equal(t, "a", label(now, 0, "a"))
	assert.Equal(t, "b", label(now, 0, "b"))
	assert.Equal(t, Overflow, label(now, 0, "c"))
	_, over := r.Label(now, 0, "c", true)
	assert.True(t, over, "and it is counted")
	assert.Equal(t, "a", label(now.Add(50*time.Minute), 0, "a"), "known ones stay")
	assert.Equal(t, "c", label(now.Add(61*time.Minute), 0, "c"), "b was not seen for an hour")
	assert.Equal(t, Overflow, label(now.Add(61*time.Minute), 0, "b"))
	for _, v := range []string{"tell me a secret", "naïve", "密钥", strings.Repeat("x", 65), "a\nb", "{}"} {
		assert.Equal(t, Other, label(now, 0, v), v)
	}
	l, over := r.Label(now, 0, "", false)
	assert.Equal(t, "nobody", l)
	assert.False(t, over)
	assert.Equal(t, "gold", label(now, 1, "gold"))
	assert.Equal(t, "silver plus", label(now, 1, "silver plus"))
	assert.Equal(t, Other, label(now, 1, "bronze"))
}

func TestRefusesWhatHasAValueForEachRequestOrPerson(t *testing.T) {
	for _, key := range []string{
		"request_id", "gen_ai.request.id", "gen_ai.response.id", "x-request-id", "trace_id", "span.id", "traceparent", "id", "message.id", "correlation-id",
		"user", "user.id", "user_id", "enduser.id", "end_user", "user.email", "username", "x-user-id", "client.address", "authorization", "x-api-key",
		"session", "session.id", "gen_ai.conversation.id", "thread_id", "chat_id",
		"prompt", "gen_ai.prompt", "gen_ai.input.messages", "completion", "message", "content", "system_instructions",
	} {
		assert.Error(t, allowed(key), key)
	}
	for _, key := range []string{"team", "app", "environment", "model_version", "tier", "priority", "user_tier", "customer", "tenant", "k8s.namespace.name", "prompt_version", "session_type", "x-team", "region"} {
		assert.NoError(t, allowed(key), key)
	}
	var many []Config
	for i := range 9 {
		many = append(many, Config{Name: fmt.Sprint("d", i), From: []string{"span.x"}, Default: "-", Max: 1})
	}
	assert.ErrorContains(t, Validate(many), "at most 8 are possible")
}

func FuzzMember(f *testing.F) {
	f.Add("a=b,team=search;p=1", "team")
	f.Add("team=%zz", "team")
	f.Fuzz(func(t *testing.T, header, name string) {
		if v, ok := member(header, name); ok && v == "" {
			t.Fatal("an empty value is none")
		}
	})
}
