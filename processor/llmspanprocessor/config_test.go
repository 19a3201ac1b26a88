package llmspanprocessor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/content"
)

// allConfig is the default configuration with changes.
func allConfig(change func(*Config)) *Config {
	c := createDefaultConfig().(*Config)
	change(c)
	return c
}

func TestConfig(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	const noKey = "content: hash_key: needed for hashing; set it from the environment or a file, at least 16 random bytes, the same in every process whose hashes are to be equal"
	byKeyFile := createDefaultConfig().(*Config)
	byKeyFile.Content.Mode, byKeyFile.Content.HashKeyFile = content.ModeHash, "/run/secrets/llmspan"
	for name, tt := range map[string]struct {
		want *Config
		err  string
	}{
		"llmspan": {want: createDefaultConfig().(*Config)},
		"llmspan/all": {want: allConfig(func(c *Config) {
			c.Content = ContentConfig{
				Mode: content.ModeTruncate, HashKey: "0123456789abcdef", MaxLength: 80,
				Overrides:    []OverrideConfig{{Key: "gen_ai.system_instructions", Mode: content.ModeStrip}, {Prefix: "gen_ai.tool.", Mode: content.ModeHash}},
				Allow:        []string{"app.release"},
				Deny:         []string{"customer.*"},
				Services:     []ServiceConfig{{Service: "eval", Mode: content.ModeKeep}},
				HashIdentity: true,
			}
			c.Stages.Spans, c.Normalize.DropSource = false, true
		})},
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
	} {
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

// Every section of testdata/config.yaml is one of the table above; a section that no test reads proves nothing.
func TestConfigSectionsAreAllTested(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	assert.Len(t, conf.ToStringMap(), 15)
}

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
