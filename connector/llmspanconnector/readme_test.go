package llmspanconnector

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
)

func TestReadmeConfigures(t *testing.T) {
	doctest.Load(t, "README.md", "connectors", "llmspan", createDefaultConfig)
	doctest.KeyTable(t, "README.md", createDefaultConfig())
}

func TestReadmeExample(t *testing.T) {
	sink, g := new(consumertest.MetricsSink), &gate{}
	metrics, records := newMetrics(t, defaults(), sink), newRecords(t, defaults(), g)
	require.NoError(t, metrics.ConsumeTraces(t.Context(), input(t, "gateway-and-engine")))
	require.NoError(t, records.ConsumeTraces(t.Context(), input(t, "gateway-and-engine")))
	require.NoError(t, metrics.Shutdown(context.Background()))
	require.Equal(t, 1, g.records.LogRecordCount())
	lr := g.records.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	doctest.Generated(t, "README.md", "metrics", doctest.Fence("text", doctest.Points(last(sink))))
	doctest.Generated(t, "README.md", "record", doctest.Fence("text", doctest.Record(lr)))
}

// Every metric of metadata.yaml is in the README under the name that it has where it is scraped.
func TestReadmeNamesEveryMetric(t *testing.T) {
	metadata, err := confmaptest.LoadConf("metadata.yaml")
	require.NoError(t, err)
	metrics, err := metadata.Sub("telemetry::metrics")
	require.NoError(t, err)
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.NotEmpty(t, metrics.ToStringMap())
	for name := range metrics.ToStringMap() {
		assert.Contains(t, string(page), "| `otelcol_"+name+"` |")
	}
}
