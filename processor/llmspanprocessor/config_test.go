package llmspanprocessor

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/content"
)

func TestConfig(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	const noKey = "content: hash_key: needed for hashing; set it from the environment or a file, at least 16 random bytes, the same in every process whose hashes are to be equal"
	byKeyFile := createDefaultConfig().(*Config)
	byKeyFile.Content.Mode, byKeyFile.Content.HashKeyFile = content.ModeHash, "/run/secrets/llmspan"
	sections := map[string]struct {
		want *Config
		err  string
	}{
		"llmspan": {want: createDefaultConfig().(*Config)},
		"llmspan/all": {want: &Config{
			Content: ContentConfig{
				Mode: content.ModeTruncate, HashKey: "0123456789abcdef", MaxLength: 80,
				Overrides:    []OverrideConfig{{Key: "gen_ai.system_instructions", Mode: content.ModeStrip}, {Prefix: "gen_ai.tool.", Mode: content.ModeHash}},
				Allow:        []string{"app.release"},
				Deny:         []string{"customer.*"},
				Services:     []ServiceConfig{{Service: "eval", Mode: content.ModeKeep}},
				HashIdentity: true,
			},
			Normalize: NormalizeConfig{DropSource: true},
			Sampling: SamplingConfig{
				Enabled: true, Apply: ApplyDrop, BaselineRatio: .01, DecisionDelay: time.Second, AnswerDelay: 20 * time.Second,
				IdleTimeout: 30 * time.Second, TraceTimeout: 10 * time.Minute, MaxBytes: 2 << 30, MaxTraceBytes: 512 << 10, MaxTraceSpans: 500,
				KeptCache: 10, DroppedCache: 20, ClientErrors: true,
				Slow:   SlowConfig{TTFT: 2 * time.Second, TPOT: 50 * time.Millisecond, E2E: 10 * time.Second, Queue: time.Second},
				Models: map[string]ModelConfig{"small": {BaselineRatio: ptr(.5), Slow: &SlowConfig{E2E: time.Second}}},
				Rules:  []RuleConfig{{Name: "vip", Attribute: "team", Values: []string{"search"}, Ratio: ptr(.5)}},
				Caps:   map[string]float64{"error": 50, "vip": 10},
			},
		}},
		"llmspan/key_file":              {want: byKeyFile}, // the file is read at start, and need not be where a configuration is checked
		"llmspan/unknown_key":           {err: "has invalid keys: contents"},
		"llmspan/unknown_nested_key":    {err: "'stages' has invalid keys: span"},
		"llmspan/wrong_mode":            {err: `content::mode: must be one of strip, hash, truncate, keep, got "remove"`},
		"llmspan/hash_without_key":      {err: noKey},
		"llmspan/identity_without_key":  {err: noKey},
		"llmspan/two_keys":              {err: "content: hash_key_file: set it or hash_key, not both"},
		"llmspan/negative_length":       {err: "content: max_length: must not be negative (0 means 256), got -1"},
		"llmspan/override_of_nothing":   {err: "content: overrides::0: needs either key or prefix"},
		"llmspan/override_without_mode": {err: `content: overrides::0::mode: must be one of strip, hash, truncate, keep, got ""`},
		"llmspan/service_without_name":  {err: "content: services::0::service: must be a service.name"},
		"llmspan/star_inside":           {err: `content: allow::0: '*' is allowed at the end only, got "gen_ai.*.id"`},
		"llmspan/wrong_type":            {err: "'stages.spans'"},

		"llmspan/sampling_apply":      {err: `sampling::apply: must be tag or drop, got "maybe"`},
		"llmspan/sampling_ratio":      {err: "sampling: baseline_ratio: must be from 0 to 1, got 5"},
		"llmspan/sampling_delay":      {err: "sampling: answer_delay: must not be shorter than decision_delay (30s), got 10s"},
		"llmspan/sampling_idle":       {err: "sampling: idle_timeout: must not be longer than trace_timeout (1s), got 1m0s"},
		"llmspan/sampling_bytes":      {err: `must be a number of bytes such as 1048576, 64KiB, 512MiB or 2GiB, got "512MB"`},
		"llmspan/sampling_no_bytes":   {err: "sampling: max_bytes: must be positive, got 0"},
		"llmspan/sampling_rule_name":  {err: `sampling: rules::0::name: must be a name of its own, not one of error, cancelled, slow, baseline; got "slow"`},
		"llmspan/sampling_rule_empty": {err: "rules::0::values: must list at least one value"},
		"llmspan/sampling_cap":        {err: "sampling: caps::erorr: no such rule; there are error, cancelled, slow, baseline"},
		"llmspan/sampling_slow":       {err: "sampling::slow: ttft: must not be negative, got -1s; 0 leaves it out"},
		"llmspan/sampling_model":      {err: "sampling: models::m::baseline_ratio: must be from 0 to 1, got 2"},
		"llmspan/sampling_typo":       {err: "'sampling' has invalid keys: baseline"},
	}
	assert.Len(t, conf.ToStringMap(), len(sections), "every section is a case")
	for name, tt := range sections {
		t.Run(name, func(t *testing.T) {
			sub, err := conf.Sub(name)
			require.NoError(t, err)
			cfg := createDefaultConfig()
			if err = sub.Unmarshal(&cfg); err == nil {
				err = confmap.Validate(cfg)
			}
			if tt.err != "" {
				assert.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, cfg)
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestHashKeyFile(t *testing.T) {
	dir := t.TempDir()
	file := func(name, key string) string {
		p := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(p, []byte(key), 0o600))
		return p
	}
	f := NewFactory()
	for name, tt := range map[string]struct{ file, err string }{
		"missing":          {filepath.Join(dir, "none"), "content::hash_key_file: cannot read the key: open "},
		"empty":            {file("empty", ""), `/empty" is empty; put the key in it`},
		"only a line end":  {file("newline", "\r\n"), `/newline" is empty; put the key in it`},
		"a key":            {file("key", "0123456789abcdef"), ""},
		"a key and a line": {file("line", "0123456789abcdef\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.Content.Mode, cfg.Content.HashKeyFile = content.ModeHash, tt.file
			require.NoError(t, confmap.Validate(cfg))
			p, err := f.CreateTraces(t.Context(), processortest.NewNopSettings(f.Type()), cfg, consumertest.NewNop())
			if tt.err != "" {
				assert.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.NoError(t, p.Shutdown(t.Context()))
		})
	}
}

// The line end of a file is no part of the key: hashes equal those of a process that has the key from its environment.
func TestHashKeyFileGivesTheSameKey(t *testing.T) {
	p := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(p, []byte("0123456789abcdef\r\n"), 0o600))
	fromFile := ContentConfig{HashKeyFile: p}
	got, err := fromFile.resolve()
	require.NoError(t, err)
	assert.Equal(t, "0123456789abcdef", string(got.HashKey))
}
