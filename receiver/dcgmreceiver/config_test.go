package dcgmreceiver

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

func loadConfig(t *testing.T, name string) (*Config, error) {
	t.Helper()
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	sub, err := cm.Sub(name)
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	if err := sub.Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, confmap.Validate(cfg)
}

func TestGoodConfigs(t *testing.T) {
	cfg, err := loadConfig(t, "dcgm")
	require.NoError(t, err)
	assert.Equal(t, component.Config(cfg), createDefaultConfig(), "an empty block is the default")

	cfg, err = loadConfig(t, "dcgm/socket")
	require.NoError(t, err)
	assert.Equal(t, 15*time.Second, cfg.CollectionInterval)
	plan := cfg.plan()
	assert.False(t, plan.On("hw.power"))
	assert.True(t, plan.Wants(312))
	assert.Len(t, plan.Fields(gpu.ClassExtra, false), 2)
	assert.Equal(t, "nvidia.gpu.field.dev_inforom_ecc_version", gpuFieldMetric(t, "80"))

	cfg, err = loadConfig(t, "dcgm/exporter")
	require.NoError(t, err)
	assert.Equal(t, 3*time.Second, cfg.HTTP.Timeout)
}

func gpuFieldMetric(t *testing.T, field string) string {
	t.Helper()
	f := FieldConfig{Field: field}
	require.NoError(t, f.Validate())
	return f.mapping().Metric.Name
}

func TestBadConfigsNameTheKeyAndWhatIsAllowed(t *testing.T) {
	for name, want := range map[string]string{
		"bad_source":    `source: must be one of auto, dcgm, nvml, dcgm_exporter, got "nvidia-smi"`,
		"bad_interval":  "collection_interval: must be at least 1s, got 10ms",
		"bad_profiling": "profiling_interval: must be between 100ms and collection_interval, got 50ms",
		"bad_timeout":   "timeout: must be at least 1s, got 0s",
		"bad_endpoint":  `endpoint: must be host:port, unix:///path or /path, got "localhost"`,
		"bad_socket":    `endpoint: a socket needs an absolute path, got "unix://relative"`,
		"bad_exporter":  `endpoint: must be an http:// or https:// URL for source: dcgm_exporter, got "localhost:9400"`,
		"bad_engine":    "for an exporter set source: dcgm_exporter",
		"bad_nvml":      `endpoint: not used by source: nvml, got "localhost:5555"`,
		"bad_embedded":  "embedded: needs source: dcgm, got source: auto",
		"bad_metric":    `metrics: unknown metric "hw.gpu.utilisation"`,
		"bad_field":     `fields::0: field: unknown field "DCGM_FI_NOPE"`,
		"known_field":   "fields::0: field: DCGM_FI_DEV_GPU_UTIL is reported already",
		"taken_metric":  `fields::0: metric: "hw.power" is a built-in metric`,
		"bad_kind":      `fields::0: kind: must be one of gauge, counter, updowncounter, rate, got "histogram"`,
		"bad_names":     "pod_resource_names::0: must be a resource name, with * at its end only",
		"bad_http":      "http::endpoint: must be empty",
		"typo":          "colection_interval",
		"typo_http":     `http: has no key "tmeout"; keys are auth, compression, `,
		"typo_tls":      "has invalid keys: insecur",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadConfig(t, "dcgm/"+name)
			require.ErrorContains(t, err, want)
		})
	}
}

func TestHostEngineEndpoints(t *testing.T) {
	for in, want := range map[string]struct {
		address string
		unix    bool
	}{
		"": {"localhost:5555", false}, "10.0.0.1:5555": {"10.0.0.1:5555", false}, "[::1]:5555": {"[::1]:5555", false},
		"tcp://h:1": {"h:1", false}, "unix:///run/s": {"/run/s", true}, "/run/s": {"/run/s", true}, "vsock://2:5555": {"vsock://2:5555", false},
	} {
		address, unix, err := hostEngine(in)
		require.NoError(t, err, in)
		assert.Equal(t, want.address, address, in)
		assert.Equal(t, want.unix, unix, in)
	}
}
