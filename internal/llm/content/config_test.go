package content

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func TestConfigErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg  Config
		want string
	}{
		"an unknown mode":                {Config{Mode: "mask"}, `mode: must be one of strip, hash, truncate, keep, got "mask"`},
		"hash without a key":             {Config{Mode: ModeHash}, "hash_key: needed for hashing; set it from the environment or a file, at least 16 random bytes"},
		"an override that hashes":        {Config{Overrides: []Override{{Key: "gen_ai.prompt", Mode: ModeHash}}}, "hash_key: needed for hashing"},
		"a service that hashes":          {Config{Services: []Rule{{Service: "a", Mode: ModeHash}}}, "hash_key: needed for hashing"},
		"identities without a key":       {Config{HashIdentity: true}, "hash_key: needed for hashing"},
		"a negative length":              {Config{MaxLength: -1}, "max_length: must not be negative (0 means 256), got -1"},
		"an override of nothing":         {Config{Overrides: []Override{{Mode: ModeKeep}}}, "overrides::0: needs either key or prefix"},
		"an override of both":            {Config{Overrides: []Override{{Key: "a", Prefix: "b", Mode: ModeKeep}}}, "overrides::0: needs either key or prefix"},
		"an override without mode":       {Config{Overrides: []Override{{Key: "a"}}}, "overrides::0::mode: must be one of strip, hash, truncate, keep"},
		"a service without name":         {Config{Services: []Rule{{Mode: ModeKeep}}}, "services::0::service: must be a service.name"},
		"a service without mode":         {Config{Services: []Rule{{Service: "a"}}}, "services::0::mode: must be one of"},
		"an empty key to allow":          {Config{Allow: []string{""}}, "allow::0: must be a key or a prefix ending in '*'"},
		"a pattern in the middle":        {Config{Deny: []string{"ok", "a.*.b"}}, "deny::1: '*' is allowed at the end only, got \"a.*.b\""},
		"a pattern with two wild places": {Config{Allow: []string{"a*b*"}}, "allow::0: '*' is allowed at the end only"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(tc.cfg)
			require.Error(t, err)
			assert.Contains(t, err.Error(), tc.want)
		})
	}
	_, err := New(Config{})
	require.NoError(t, err)
}

func TestAllErrorsAtOnce(t *testing.T) {
	err := Config{Mode: "x", MaxLength: -1, Allow: []string{""}}.Validate()
	require.Error(t, err)
	for _, want := range []string{"mode:", "max_length:", "allow::0:"} {
		assert.Contains(t, err.Error(), want)
	}
}

func TestWarnings(t *testing.T) {
	assert.Empty(t, Config{}.Warnings())
	assert.Empty(t, Config{Mode: ModeHash, HashKey: testKey}.Warnings())
	assert.Len(t, Config{Mode: ModeKeep}.Warnings(), 1)
	assert.Len(t, Config{Services: []Rule{{"a", ModeKeep}, {"b", ModeKeep}}}.Warnings(), 1)
	assert.Len(t, Config{Overrides: []Override{{Key: "a", Mode: ModeKeep}}}.Warnings(), 1)
	assert.Len(t, Config{Allow: []string{"*"}}.Warnings(), 1)
	assert.Contains(t, Config{Mode: ModeHash, HashKey: []byte("short")}.Warnings()[0], "shorter than 16 bytes")
}

// one redacts a span with one attribute and returns the value under the key, or nil.
func one(t *testing.T, cfg Config, key string, value any) any {
	var f Facts
	return redactAttribute(t, redactor(t, cfg), key, value, &f).AsRaw()[key]
}

func TestPrecedence(t *testing.T) {
	const key, text = "gen_ai.prompt", "a text of five words"
	hashed := redactor(t, Config{}).hash.text(text)
	for name, tc := range map[string]struct {
		cfg  Config
		want any
	}{
		"strip is the default":               {Config{}, nil},
		"the mode":                           {Config{Mode: ModeHash}, hashed},
		"an override comes before the mode":  {Config{Overrides: []Override{{Key: key, Mode: ModeHash}}}, hashed},
		"an override by prefix":              {Config{Overrides: []Override{{Prefix: "gen_ai.", Mode: ModeHash}}}, hashed},
		"the first override wins":            {Config{Overrides: []Override{{Key: key, Mode: ModeHash}, {Key: key, Mode: ModeKeep}}}, hashed},
		"the exact override comes first":     {Config{Overrides: []Override{{Prefix: "gen_ai.", Mode: ModeKeep}, {Key: key, Mode: ModeHash}}}, hashed},
		"truncate":                           {Config{Mode: ModeTruncate, MaxLength: 6}, "a text"},
		"truncate with the default length":   {Config{Mode: ModeTruncate}, text},
		"keep":                               {Config{Mode: ModeKeep}, text},
		"allow":                              {Config{Allow: []string{key}}, text},
		"allow by prefix":                    {Config{Allow: []string{"gen_ai.pro*"}}, text},
		"deny wins over allow":               {Config{Allow: []string{key}, Deny: []string{key}}, nil},
		"deny by prefix wins over allow":     {Config{Allow: []string{key}, Deny: []string{"gen_ai.*"}}, nil},
		"deny wins over allow by prefix":     {Config{Allow: []string{"*"}, Deny: []string{key}}, nil},
		"a denied key has an override still": {Config{Deny: []string{key}, Overrides: []Override{{Key: key, Mode: ModeHash}}}, hashed},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, one(t, tc.cfg, key, text)) })
	}
}

func TestDenyAndOverrideOfSafeKeys(t *testing.T) {
	assert.Nil(t, one(t, Config{Deny: []string{"team"}}, "team", "search"))
	assert.Nil(t, one(t, Config{Deny: []string{"gen_ai.usage.*"}}, "gen_ai.usage.input_tokens", 5))
	assert.Equal(t, int64(5), one(t, Config{}, "gen_ai.usage.input_tokens", 5))
	r := redactor(t, Config{Overrides: []Override{{Key: "user.id", Mode: ModeHash}}})
	var f Facts
	got := redactAttribute(t, r, "user.id", "u-1", &f)
	assert.Equal(t, r.hash.text("u-1"), got.AsRaw()["user.id"])
	assert.EqualValues(t, 1, f.ByClass[ClassIdentity])
}

func TestServicesHaveModesOfTheirOwn(t *testing.T) {
	r := redactor(t, Config{Services: []Rule{{"eval", ModeKeep}, {"audit", ModeHash}}, Overrides: []Override{{Key: "gen_ai.completion", Mode: ModeStrip}}})
	for service, want := range map[string]any{"eval": "a secret", "audit": r.hash.text("a secret"), "prod": nil, "": nil} {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		if service != "" {
			rs.Resource().Attributes().PutStr("service.name", service)
		}
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.Attributes().PutStr("gen_ai.prompt", "a secret")
		span.Attributes().PutStr("gen_ai.completion", "an answer")
		var f Facts
		r.Traces(td, &f)
		assert.Equal(t, want, span.Attributes().AsRaw()["gen_ai.prompt"], service)
		assert.Nil(t, span.Attributes().AsRaw()["gen_ai.completion"], "an override comes before a service")
	}
	res := pcommon.NewResource()
	res.Attributes().PutInt("service.name", 1)
	assert.Equal(t, ModeStrip, r.ModeOf(res))
}

func TestPlacesCanBeConfigured(t *testing.T) {
	span := func(cfg Config) ptrace.Span {
		s := ptrace.NewSpan()
		s.SetName("A sentence which has far too many words for a name")
		s.Status().SetMessage("it failed: sk-abcdefghijklmnop")
		s.TraceState().FromRaw("vendor=Some-Text")
		s.Events().AppendEmpty().SetName("Überraschung")
		var f Facts
		redactor(t, cfg).Span(cfg.Mode, s, &f)
		return s
	}
	s := span(Config{Mode: ModeStrip})
	assert.Equal(t, []string{"_other", "", "", "_other"}, []string{s.Name(), s.Status().Message(), s.TraceState().AsRaw(), s.Events().At(0).Name()})
	s = span(Config{Mode: ModeStrip, Allow: PlaceKeys})
	assert.Equal(t, "A sentence which has far too many words for a name", s.Name())
	assert.Equal(t, "it failed: [secret]", s.Status().Message(), "secrets go all the same")
	assert.Equal(t, "vendor=Some-Text", s.TraceState().AsRaw())
	assert.Equal(t, "Überraschung", s.Events().At(0).Name())
	s = span(Config{Mode: ModeStrip, Overrides: []Override{{Key: "span.status.message", Mode: ModeTruncate}}, MaxLength: 9})
	assert.Equal(t, "it failed", s.Status().Message())
	s = span(Config{Mode: ModeHash})
	assert.True(t, isHashed(s.Status().Message()))
}
