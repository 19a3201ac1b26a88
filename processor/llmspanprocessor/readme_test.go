package llmspanprocessor

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
)

func TestReadmeConfigures(t *testing.T) {
	doctest.Load(t, "README.md", "processors", "llmspan", createDefaultConfig)
	doctest.KeyTable(t, "README.md", createDefaultConfig())
}

func TestReadmeExample(t *testing.T) {
	out := process(t, createDefaultConfig().(*Config), input(t, "gateway-and-engine"))
	doctest.Generated(t, "README.md", "what comes out", doctest.Fence("diff", doctest.Spans(input(t, "gateway-and-engine"), out, false)))
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
