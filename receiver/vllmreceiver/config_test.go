package vllmreceiver

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func load(t *testing.T, section string) (*Config, error) {
	t.Helper()
	conf, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	sub, err := conf.Sub("vllm/" + section)
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	if err := sub.Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, confmap.Validate(cfg)
}

func TestGoodConfigs(t *testing.T) {
	cfg, err := load(t, "empty")
	require.NoError(t, err)
	assert.Equal(t, createDefaultConfig(), cfg)

	cfg, err = load(t, "endpoints")
	require.NoError(t, err)
	assert.Equal(t, []string{"http://localhost:8000/metrics", "gpu-1:8000", "auto"}, cfg.Endpoints)
	assert.Equal(t, []any{"vllm", "chat", true, 500, int64(1 << 20)}, []any{cfg.Engine, cfg.ServiceName, cfg.Raw, cfg.MaxSeries, cfg.MaxPageBytes})
	assert.Equal(t, []time.Duration{5 * time.Second, 3 * time.Second}, []time.Duration{cfg.Controller.CollectionInterval, cfg.HTTP.Timeout})
	assert.True(t, cfg.HTTP.TLS.InsecureSkipVerify)
	header, ok := cfg.HTTP.Headers.Get("authorization")
	assert.True(t, ok)
	assert.Equal(t, "Bearer x", string(header))
}

func TestTargets(t *testing.T) {
	tests := []struct {
		section  string
		pages    []string
		discover bool
	}{
		{"empty", nil, true},
		{"endpoints", []string{"http://localhost:8000/metrics", "http://gpu-1:8000/metrics"}, true},
		{"found_by_receiver_creator", []string{"http://10.0.0.7:8000/metrics"}, false},
		{"both", []string{"http://10.0.0.7:8000/prometheus/metrics"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.section, func(t *testing.T) {
			cfg, err := load(t, tt.section)
			require.NoError(t, err)
			pages, discover, err := cfg.targets()
			require.NoError(t, err)
			var got []string
			for _, u := range pages {
				got = append(got, u.String())
			}
			assert.Equal(t, tt.pages, got)
			assert.Equal(t, tt.discover, discover)
		})
	}
}

func TestBadConfigs(t *testing.T) {
	for section, want := range map[string]string{
		"bad_scheme":     `endpoints[0]: scheme "ftp" is not supported; use http or https`,
		"no_host":        `endpoints[0]: host is missing; use http://host:port/metrics, host:port or auto`,
		"password":       `endpoints[0]: must not hold a user or password; use auth or headers`,
		"not_a_url":      `endpoints[0]: not a URL; use http://host:port/metrics, host:port or auto`,
		"engine":         `engine: "vlm" is not known; use auto or one of dynamo_frontend, dynamo_worker, llamacpp, lmdeploy, production_stack_router, sglang, tgi, triton, triton_trtllm, trtllm, vllm`,
		"timeout":        `timeout: must be positive, got 0s`,
		"interval":       `"collection_interval": requires positive value`,
		"max_series":     `max_series: must be positive, got 0`,
		"max_page_bytes": `max_page_bytes: must be positive, got -1`,
		"typo":           `has invalid keys: endpoint_`,
		"nested_typo":    `has invalid keys: insecure_skip_verfy`,
	} {
		t.Run(section, func(t *testing.T) {
			_, err := load(t, section)
			require.ErrorContains(t, err, want)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	keys := func(v any) (out []string) {
		for i := range reflect.TypeOf(v).NumField() {
			if f := reflect.TypeOf(v).Field(i); f.IsExported() {
				out = append(out, f.Name+" "+string(f.Tag))
			}
		}
		return out
	}
	assert.Equal(t, keys(Config{}), keys(strictConfig{}))
}
