package llmspanconnector

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestConfig(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	cases := map[string]struct {
		want *Config
		errs []string
	}{
		"llmspan": {want: defaults()},
		"llmspan/all": {want: &Config{
			JoinWindow: 30 * time.Second, MaxSpans: 5000,
			Histograms: HistogramConfig{Exponential: true},
			Metrics:    MetricsConfig{Interval: time.Minute, MaxSeries: 200},
			Records:    RecordsNone, RecordsBaselineRatio: .2,
		}},
		"llmspan/unknown_key":        {errs: []string{"has invalid keys: record"}},
		"llmspan/unknown_nested_key": {errs: []string{"'metrics' has invalid keys: max_serie"}},
		"llmspan/short_window":       {errs: []string{"join_window: must be at least 1s, got 100ms"}},
		"llmspan/no_spans":           {errs: []string{"max_spans: must be positive, got 0"}},
		"llmspan/short_interval":     {errs: []string{"metrics: interval: must be at least 100ms, got 1ms"}},
		"llmspan/negative_expiry":    {errs: []string{"metrics: expiry: must not be negative, got -1s; 0 keeps series for ever"}},
		"llmspan/no_series":          {errs: []string{"metrics: max_series: must be positive, got 0"}},
		"llmspan/wrong_records":      {errs: []string{`records: must be sampled, all or none, got "some"`}},
		"llmspan/everything_wrong":   {errs: []string{"join_window: must be at least 1s, got 0s", "metrics: interval: must be at least 100ms, got 0s"}},
		"llmspan/wrong_ratio":        {errs: []string{"records_baseline_ratio: must be from 0 to 1, got 20"}},
		"llmspan/wrong_type":         {errs: []string{"'max_spans'"}},
	}
	assert.Len(t, conf.ToStringMap(), len(cases), "every section is a case")
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			sub, err := conf.Sub(name)
			require.NoError(t, err)
			cfg := createDefaultConfig()
			if err = sub.Unmarshal(&cfg); err == nil {
				err = confmap.Validate(cfg)
			}
			for _, want := range tt.errs {
				assert.ErrorContains(t, err, want)
			}
			if tt.errs == nil {
				require.NoError(t, err)
				assert.Equal(t, tt.want, cfg)
			}
		})
	}
}
