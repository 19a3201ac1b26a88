package queuestorageextension

import (
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/extension/queuestorageextension/internal/metadatatest"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
)

func TestReadmeConfigures(t *testing.T) {
	doctest.Load(t, "README.md", "extensions", "queue_storage", createDefaultConfig)
	doctest.KeyTable(t, "README.md", createDefaultConfig())
}

// promtool's own tests on the rules that go by these metrics.
func TestRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	cmd := exec.CommandContext(t.Context(), promtool, "test", "rules", "collector_test.yaml")
	cmd.Dir = filepath.Join("..", "..", "deploy", "rules")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestValidate(t *testing.T) {
	require.NoError(t, createDefaultConfig().(*Config).Validate())
	require.ErrorContains(t, (&Config{MaxMemoryMiB: 1}).Validate(), "storage must name the storage extension")
	require.ErrorContains(t, (&Config{Storage: diskID}).Validate(), "max_memory_mib must be at least 1")
}

func TestTheOtherStorageMustBeThere(t *testing.T) {
	for name, c := range map[string]struct {
		storage    component.ID
		extensions map[component.ID]component.Component
		want       string
	}{
		"missing":   {diskID, nil, `storage "file_storage" is not there: add it to extensions and to service::extensions`},
		"no store":  {diskID, map[component.ID]component.Component{diskID: struct{ component.Component }{}}, `storage "file_storage" does not store`},
		"ourselves": {ourID, nil, `storage "queue_storage" is this extension itself`},
	} {
		t.Run(name, func(t *testing.T) {
			set := nopSettings()
			set.ID = ourID
			ext, err := NewFactory().Create(t.Context(), set, &Config{Storage: c.storage, MaxMemoryMiB: 1})
			require.NoError(t, err)
			require.ErrorContains(t, ext.Start(t.Context(), newHost(c.extensions)), c.want)
			require.NoError(t, ext.Shutdown(t.Context()))
		})
	}
}

func TestTheOtherStorageSeesTheSameNames(t *testing.T) {
	d := newDisk()
	ext, _ := started(t, d, nopSettings(), nil)
	assert.Equal(t, []component.ID{diskID}, ext.Dependencies())
	c, err := ext.GetClient(t.Context(), component.KindExporter, component.MustNewIDWithName("otlp_http", "records"), "logs")
	require.NoError(t, err)
	assert.Equal(t, []string{"Exporter otlp_http/records logs"}, d.names)
	require.NoError(t, c.Close(t.Context()))
	require.NoError(t, c.Close(t.Context()), "a second time changes nothing")
	assert.Equal(t, 1, d.closed)
	require.ErrorIs(t, c.Set(t.Context(), "a", nil), errClosed)
}

func TestWhatAnOperatorSees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := componenttest.NewTelemetry()
		defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
		core, logs := observer.New(zap.InfoLevel)
		set := extension.Settings{ID: ourID, TelemetrySettings: tel.NewTelemetrySettings()}
		set.Logger = zap.New(core)
		d := newDisk()
		ext, h := started(t, d, set, func(c *Config) { c.MaxMemoryMiB = 1 })
		get := func(signal string) storage.Client {
			c, err := ext.GetClient(t.Context(), component.KindExporter, component.MustNewID("otlp"), signal)
			require.NoError(t, err)
			return c
		}
		a, b := get("traces"), get("logs")
		attrs := func(signal string) attribute.Set {
			return attribute.NewSet(attribute.String("component", "otlp"), attribute.String("storage", signal))
		}
		point := func(signal string, v int64) metricdata.DataPoint[int64] {
			return metricdata.DataPoint[int64]{Attributes: attrs(signal), Value: v}
		}
		gauges := func(failing, held [2]int64) {
			t.Helper()
			metadatatest.AssertEqualExtensionQueueStorageFailing(t, tel,
				[]metricdata.DataPoint[int64]{point("traces", failing[0]), point("logs", failing[1])}, metricdatatest.IgnoreTimestamp())
			metadatatest.AssertEqualExtensionQueueStorageMemory(t, tel,
				[]metricdata.DataPoint[int64]{point("traces", held[0]), point("logs", held[1])}, metricdatatest.IgnoreTimestamp())
		}
		gauges([2]int64{}, [2]int64{})

		d.setFull(true)
		require.NoError(t, a.Set(t.Context(), "1", make([]byte, 900<<10)))
		err := a.Set(t.Context(), "2", make([]byte, 200<<10))
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, "cannot be written and 921600 bytes wait in memory")
		require.NoError(t, b.Set(t.Context(), "1", []byte("x")))
		gauges([2]int64{1, 1}, [2]int64{900 << 10, 1})
		metadatatest.AssertEqualExtensionQueueStorageRefused(t, tel, []metricdata.DataPoint[int64]{point("traces", 1)}, metricdatatest.IgnoreTimestamp())
		time.Sleep(5 * retryInterval)
		assert.Equal(t, 2, logs.FilterMessageSnippet("cannot be written (is the disk full?)").Len(), "once for each queue, not for each try")

		d.setFull(false)
		time.Sleep(2 * retryInterval)
		gauges([2]int64{}, [2]int64{})
		assert.Equal(t, 2, logs.FilterMessage("the queue's storage is written again").Len())
		assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, h.status)
		require.NoError(t, a.Close(t.Context()))
		require.NoError(t, b.Close(t.Context()))
	})
}
