package llmspanconnector

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/plogtest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

var update = flag.Bool("update", false, "rewrite the golden files; review the difference like code")

// input reads what the processor makes of one of its own cases: the two components meet in these files.
func input(t *testing.T, name string) ptrace.Traces {
	t.Helper()
	td, err := golden.ReadTraces(filepath.Join("..", "..", "processor", "llmspanprocessor", "testdata", "traces", name, "output.yaml"))
	require.NoError(t, err)
	return td
}

func defaults() *Config { return createDefaultConfig().(*Config) }

// Each folder below testdata/cases is one batch through the factory and a shutdown: metrics.yaml and records.yaml come out; a file that
// is not there means that nothing does. The batch is the processor's case of the same name, or the one that the file input names.
func TestGolden(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join("testdata", "cases", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	for _, dir := range dirs {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			cfg := defaults()
			if file := filepath.Join(dir, "config.yaml"); exists(file) {
				conf, err := confmaptest.LoadConf(file)
				require.NoError(t, err)
				require.NoError(t, conf.Unmarshal(cfg))
			}
			if b, err := os.ReadFile(filepath.Join(dir, "input")); err == nil {
				name = strings.TrimSpace(string(b))
			}
			// In a bubble time stands still, so that timestamps are values like any other.
			synctest.Test(t, func(t *testing.T) {
				metrics, logs := new(consumertest.MetricsSink), new(consumertest.LogsSink)
				f := NewFactory()
				set := connectortest.NewNopSettings(f.Type())
				toMetrics, err := f.CreateTracesToMetrics(t.Context(), set, cfg, metrics)
				require.NoError(t, err)
				toLogs, err := f.CreateTracesToLogs(t.Context(), set, cfg, logs)
				require.NoError(t, err)
				both := []connector.Traces{toMetrics, toLogs}
				for _, c := range both {
					require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
				}
				for _, c := range both {
					require.NoError(t, c.ConsumeTraces(t.Context(), input(t, name)))
				}
				for _, c := range both {
					require.NoError(t, c.Shutdown(context.Background()))
				}
				compareMetrics(t, filepath.Join(dir, "metrics.yaml"), metrics.AllMetrics())
				compareRecords(t, filepath.Join(dir, "records.yaml"), logs.AllLogs())
			})
		})
	}
}

func compareMetrics(t *testing.T, file string, got []pmetric.Metrics) {
	t.Helper()
	if len(got) == 0 {
		assert.False(t, exists(file), "no metrics came out")
		return
	}
	require.Len(t, got, 1)
	if *update {
		require.NoError(t, golden.WriteMetricsToFile(file, got[0], golden.SkipMetricTimestampNormalization()))
	}
	want, err := golden.ReadMetrics(file)
	require.NoError(t, err)
	assert.NoError(t, pmetrictest.CompareMetrics(want, got[0], pmetrictest.IgnoreMetricsOrder()))
}

func compareRecords(t *testing.T, file string, got []plog.Logs) {
	t.Helper()
	if len(got) == 0 {
		assert.False(t, exists(file), "no records came out")
		return
	}
	require.Len(t, got, 1)
	if *update {
		require.NoError(t, golden.WriteLogsToFile(file, got[0]))
	}
	want, err := golden.ReadLogs(file)
	require.NoError(t, err)
	assert.NoError(t, plogtest.CompareLogs(want, got[0]))
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// The traces pass on as they came.
func TestTracesPassUnchanged(t *testing.T) {
	f, sink := NewFactory(), new(consumertest.TracesSink)
	c, err := f.CreateTracesToTraces(t.Context(), connectortest.NewNopSettings(f.Type()), defaults(), sink)
	require.NoError(t, err)
	assert.False(t, c.Capabilities().MutatesData)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, c.ConsumeTraces(t.Context(), input(t, "gateway-and-engine")))
	require.NoError(t, c.Shutdown(t.Context()))
	require.Len(t, sink.AllTraces(), 1)
	assert.NoError(t, ptracetest.CompareTraces(input(t, "gateway-and-engine"), sink.AllTraces()[0]))
}
