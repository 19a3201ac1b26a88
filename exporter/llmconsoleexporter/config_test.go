package llmconsoleexporter

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
)

func TestConfig(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		want *Config
		err  string
	}{
		"llmconsole":             {want: &Config{Output: OutputStdout, MaxLinesPerSecond: 20, Color: ColorAuto}},
		"llmconsole/all":         {want: &Config{Output: OutputStderr, MaxLinesPerSecond: 0, Color: ColorNever}},
		"llmconsole/bad_output":  {err: `output: must be stdout or stderr, got "syslog"`},
		"llmconsole/bad_rate":    {err: "max_lines_per_second: must be 0 (all) or more, got -1"},
		"llmconsole/bad_color":   {err: `color: must be auto, always or never, got "yes"`},
		"llmconsole/unknown_key": {err: "has invalid keys: outptu"},
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

func TestReadme(t *testing.T) {
	doctest.Load(t, "README.md", "exporters", "llmconsole", createDefaultConfig)
	doctest.KeyTable(t, "README.md", createDefaultConfig())
}

func TestColorAuto(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer file.Close()
	assert.False(t, wantsColor(ColorAuto, file), "a file is not a terminal")
	assert.True(t, wantsColor(ColorAlways, file))

	device, err := os.Open(os.DevNull) // a character device, as a terminal is
	require.NoError(t, err)
	defer device.Close()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	assert.True(t, wantsColor(ColorAuto, device))
	assert.False(t, wantsColor(ColorNever, device))
	t.Setenv("NO_COLOR", "1")
	assert.False(t, wantsColor(ColorAuto, device))
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	assert.False(t, wantsColor(ColorAuto, device))
}
