package llmspanprocessor

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/plogtest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
)

var update = flag.Bool("update", false, "rewrite the golden files; review the difference like code")

// cases are the folders below testdata/<signal>: input.yaml, output.yaml, and config.yaml where it is not the default.
func cases(t *testing.T, signal string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join("testdata", signal, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	return dirs
}

func configOf(t *testing.T, dir string) *Config {
	t.Helper()
	cfg := createDefaultConfig()
	file := filepath.Join(dir, "config.yaml")
	if _, err := os.Stat(file); err == nil {
		conf, err := confmaptest.LoadConf(file)
		require.NoError(t, err)
		require.NoError(t, conf.Unmarshal(cfg))
	}
	return cfg.(*Config)
}

// process sends one batch through a processor of the factory.
func process(t *testing.T, cfg *Config, td ptrace.Traces) ptrace.Traces {
	t.Helper()
	f, sink := NewFactory(), new(consumertest.TracesSink)
	p, err := f.CreateTraces(t.Context(), processortest.NewNopSettings(f.Type()), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, p.ConsumeTraces(t.Context(), td))
	require.NoError(t, p.Shutdown(context.Background()))
	require.Len(t, sink.AllTraces(), 1)
	return sink.AllTraces()[0]
}

func TestGoldenTraces(t *testing.T) {
	for _, dir := range cases(t, "traces") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			in, err := golden.ReadTraces(filepath.Join(dir, "input.yaml"))
			require.NoError(t, err)
			got := process(t, configOf(t, dir), in)
			file := filepath.Join(dir, "output.yaml")
			if *update {
				require.NoError(t, golden.WriteTracesToFile(file, got))
			}
			want, err := golden.ReadTraces(file)
			require.NoError(t, err)
			assert.NoError(t, ptracetest.CompareTraces(want, got))
			assertNoText(t, must((&ptrace.JSONMarshaler{}).MarshalTraces(got)))
		})
	}
}

// What is not understood is not touched: not an attribute, not the order.
func TestASpanThatIsNoRequestPassesUnharmed(t *testing.T) {
	in, err := golden.ReadTraces(filepath.Join("testdata", "traces", "not-llm", "input.yaml"))
	require.NoError(t, err)
	want := ptrace.NewTraces()
	in.CopyTo(want)
	assert.NoError(t, ptracetest.CompareTraces(want, process(t, createDefaultConfig().(*Config), in)))
}

// A span that has been through llmspan once (an agent, then a gateway) is not split or counted again.
func TestASecondPassChangesNothing(t *testing.T) {
	for _, dir := range cases(t, "traces") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			once, err := golden.ReadTraces(filepath.Join(dir, "output.yaml"))
			require.NoError(t, err)
			want := ptrace.NewTraces()
			once.CopyTo(want)
			assert.NoError(t, ptracetest.CompareTraces(want, process(t, configOf(t, dir), once)))
		})
	}
}

func TestGoldenLogs(t *testing.T) {
	for _, dir := range cases(t, "logs") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			in, err := golden.ReadLogs(filepath.Join(dir, "input.yaml"))
			require.NoError(t, err)
			f, sink := NewFactory(), new(consumertest.LogsSink)
			p, err := f.CreateLogs(t.Context(), processortest.NewNopSettings(f.Type()), configOf(t, dir), sink)
			require.NoError(t, err)
			require.NoError(t, p.ConsumeLogs(t.Context(), in))
			got := sink.AllLogs()[0]
			file := filepath.Join(dir, "output.yaml")
			if *update {
				require.NoError(t, golden.WriteLogsToFile(file, got))
			}
			want, err := golden.ReadLogs(file)
			require.NoError(t, err)
			assert.NoError(t, plogtest.CompareLogs(want, got))
			assertNoText(t, must((&plog.JSONMarshaler{}).MarshalLogs(got)))
		})
	}
}

func TestGoldenMetrics(t *testing.T) {
	for _, dir := range cases(t, "metrics") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			in, err := golden.ReadMetrics(filepath.Join(dir, "input.yaml"))
			require.NoError(t, err)
			f, sink := NewFactory(), new(consumertest.MetricsSink)
			p, err := f.CreateMetrics(t.Context(), processortest.NewNopSettings(f.Type()), configOf(t, dir), sink)
			require.NoError(t, err)
			require.NoError(t, p.ConsumeMetrics(t.Context(), in))
			got := sink.AllMetrics()[0]
			file := filepath.Join(dir, "output.yaml")
			if *update {
				require.NoError(t, golden.WriteMetricsToFile(file, got, golden.SkipMetricTimestampNormalization()))
			}
			want, err := golden.ReadMetrics(file)
			require.NoError(t, err)
			assert.NoError(t, pmetrictest.CompareMetrics(want, got))
			assertNoText(t, must((&pmetric.JSONMarshaler{}).MarshalMetrics(got)))
		})
	}
}

// assertNoText looks for the markers that every text in testdata carries.
func assertNoText(t *testing.T, b []byte) {
	t.Helper()
	for _, marker := range []string{"CANARY", "SECRET-TEXT"} {
		assert.NotContains(t, string(b), marker)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
