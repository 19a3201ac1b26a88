package vllmreceiver

import (
	"path/filepath"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/require"
)

// TestWholeResults compares the complete pdata of a page of each shape: a whole V1 page's worth of it would be 5,000 lines, so small pages stand
// in; the values of all pages are in TestRecordedPages.
func TestWholeResults(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"llama.cpp-b11434-end":                     nil,
		"synthetic_vllm_rust_frontend_openmetrics": nil,
		"trtllm_2026-01_real":                      func(c *Config) { c.ServiceName = "chat" },
		"vllm_v1_0.10.0_fragment_real":             func(c *Config) { c.Raw = true },
		"vllm-router-0.1.17-end":                   nil,
	} {
		t.Run(name, func(t *testing.T) {
			got := scrapeOnce(t, readPage(t, filepath.Join("testdata/pages", name+".prom")), change)
			for _, rm := range got.ResourceMetrics().All() { // the address of the test's server
				rm.Resource().Attributes().PutStr("service.instance.id", "127.0.0.1:8000")
				rm.Resource().Attributes().PutInt("server.port", 8000)
			}
			path := filepath.Join("testdata/whole", name+".yaml")
			if *update {
				require.NoError(t, golden.WriteMetricsToFile(path, got, golden.SkipMetricTimestampNormalization()))
			}
			want, err := golden.ReadMetrics(path)
			require.NoError(t, err)
			require.NoError(t, pmetrictest.CompareMetrics(want, got, pmetrictest.IgnoreMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder()))
		})
	}
}
