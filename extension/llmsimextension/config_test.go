package llmsimextension

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

func load(t *testing.T, conf *confmap.Conf) (*Config, error) {
	t.Helper()
	cfg := createDefaultConfig()
	if err := conf.Unmarshal(cfg); err != nil {
		return cfg, err
	}
	return cfg, confmap.Validate(cfg)
}

func TestDefaultsAreValidAndLocal(t *testing.T) {
	cfg, err := load(t, confmap.New())
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(cfg.Server.NetAddr.Endpoint, "127.0.0.1:"))
	assert.Equal(t, sim.DefaultConfig(), cfg.simulation())
	assert.Equal(t, "http://127.0.0.1:4318/v1/traces", cfg.tracesURL())
}

func TestConfigSections(t *testing.T) {
	all, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	for name, section := range all.ToStringMap() {
		t.Run(name, func(t *testing.T) {
			m := section.(map[string]any)
			want, bad := m["error"]
			body, _ := m["config"].(map[string]any)
			cfg, err := load(t, confmap.NewFromStringMap(body))
			if bad {
				require.Error(t, err)
				assert.Contains(t, err.Error(), want)
				return
			}
			require.NoError(t, err)
			if name == "one engine" {
				want := sim.DefaultEngine("a", "m")
				want.MaxNumSeqs = 8
				assert.Equal(t, []EngineConfig{{want}}, cfg.Engines, "the rest of the entry is the default of an engine")
				assert.Equal(t, []TeamConfig{{sim.Team{Name: "t", Weight: 1}}}, cfg.Teams)
				assert.Equal(t, 250*time.Millisecond, cfg.Export.Interval)
				assert.Equal(t, "http://127.0.0.1:9999/otlp/v1/traces", cfg.tracesURL())
			}
		})
	}
}

func TestREADMEBlocksLoad(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(readme, -1)
	require.Len(t, blocks, 2)
	for _, b := range blocks {
		r, err := confmap.NewRetrievedFromYAML(b[1])
		require.NoError(t, err)
		all, err := r.AsConf()
		require.NoError(t, err)
		conf, err := all.Sub("extensions::llmsim")
		require.NoError(t, err)
		_, err = load(t, conf)
		require.NoError(t, err, string(b[1]))
	}
}

// flatten lists the keys of a configuration whose values are plain.
func flatten(prefix string, m map[string]any, into map[string]string) {
	for k, v := range m {
		if sub, ok := v.(map[string]any); ok {
			flatten(prefix+k+"::", sub, into)
			continue
		}
		into[prefix+k] = fmt.Sprint(v)
	}
}

func TestREADMETablesGiveTheDefaults(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_:]+)` \\| ([^|]*?) ?\\| ").FindAllStringSubmatch(string(readme), -1) {
		documented[row[1]] = strings.Trim(row[2], "`")
	}
	defaults := func(cfg component.Config) map[string]string {
		conf := confmap.New()
		require.NoError(t, conf.Marshal(cfg))
		flat := map[string]string{}
		flatten("", conf.ToStringMap(), flat)
		return flat
	}
	prose := map[string]bool{"engines": true, "teams": true, "faults": true, "name": true, "model": true, "replay_file": true}
	check := func(flat map[string]string, skip func(string) bool) {
		for k, v := range flat {
			if skip(k) || prose[k] {
				continue
			}
			got, ok := documented[k]
			if assert.True(t, ok, "%s is not in the README", k) {
				assert.Equal(t, v, got, k)
			}
		}
	}
	check(defaults(createDefaultConfig()), func(k string) bool {
		if strings.HasPrefix(k, "server::") {
			return k != "server::endpoint"
		}
		if strings.HasPrefix(k, "export::") {
			return k != "export::endpoint" && k != "export::interval" && k != "export::queue_size"
		}
		return false
	})
	check(defaults(&EngineConfig{sim.DefaultEngine("", "")}), func(k string) bool { return strings.Contains(k, "::") })
	for k := range documented {
		_, top := defaults(createDefaultConfig())[k]
		_, engine := defaults(&EngineConfig{sim.DefaultEngine("", "")})[k]
		group := k == "prompt_tokens" || k == "output_tokens" || k == "gpu"
		assert.True(t, top || engine || group || prose[k], "%s is in the README and not in the configuration", k)
	}
}
