package queuestorageextension

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/extension/queuestorageextension/internal/boltfile"
	"github.com/otelcol-llm/otelcol-llm/extension/queuestorageextension/internal/metadatatest"
)

// onDisk is a file_storage in a folder.
func onDisk(t *testing.T, dir string) component.Component {
	t.Helper()
	f := filestorage.NewFactory()
	cfg := f.CreateDefaultConfig().(*filestorage.Config)
	cfg.Directory, cfg.Compaction.Directory = dir, dir
	store, err := f.Create(t.Context(), extensiontest.NewNopSettings(f.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, store.Start(t.Context(), newHost(nil)))
	t.Cleanup(func() { require.NoError(t, store.Shutdown(context.Background())) })
	return store
}

func clientOf(t *testing.T, s *queueStorage, name string) storage.Client {
	t.Helper()
	c, err := s.GetClient(t.Context(), component.KindExporter, component.MustNewID("otlp"), name)
	require.NoError(t, err)
	return c
}

func TestADamagedFileIsSetAside(t *testing.T) {
	dir := t.TempDir()
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	core, logs := observer.New(zap.InfoLevel)
	set := extension.Settings{ID: ourID, TelemetrySettings: tel.NewTelemetrySettings()}
	set.Logger = zap.New(core)
	there := func(c *Config) { c.Directory = dir }

	s, _ := started(t, onDisk(t, dir), set, there)
	for _, name := range []string{"traces", "logs"} {
		c := clientOf(t, s, name)
		for _, key := range []string{"1", "2", "3"} {
			require.NoError(t, c.Set(t.Context(), key, bytes.Repeat([]byte(key), 10_000)))
		}
		require.NoError(t, c.Close(t.Context()))
	}
	assert.Zero(t, logs.Len())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("somebody's"), 0o600))
	file := filepath.Join(dir, "exporter_otlp__traces")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, b[:len(b)/2], 0o600))

	again, _ := started(t, onDisk(t, dir), set, there)
	require.Equal(t, 1, logs.Len())
	entry := logs.All()[0]
	assert.Contains(t, entry.Message, "a queue's file is damaged")
	assert.Equal(t, file, entry.ContextMap()["file"])
	assert.Contains(t, entry.ContextMap()["faults"], "page")
	metadatatest.AssertEqualExtensionQueueStorageDamaged(t, tel, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())
	aside, err := os.ReadFile(file + boltfile.Damaged)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(b[:len(b)/2], aside))
	for name, want := range map[string]bool{"logs": true, "traces": false} {
		c := clientOf(t, again, name)
		v, err := c.Get(t.Context(), "3")
		require.NoError(t, err)
		assert.Equal(t, want, len(v) == 10_000, name)
		require.NoError(t, c.Set(t.Context(), "4", []byte("it is written")))
		require.NoError(t, c.Close(t.Context()))
	}
	assert.FileExists(t, filepath.Join(dir, "notes.txt"))

	_, _ = started(t, onDisk(t, dir), set, there)
	assert.Equal(t, 1, logs.Len(), "what was set aside is not looked at again")
}

func TestAFolderThatIsNotThereIsMadeByTheStorage(t *testing.T) {
	_, _ = started(t, newDisk(), nopSettings(), func(c *Config) { c.Directory = filepath.Join(t.TempDir(), "later") })
}

func TestTwoCollectorsInOneFolder(t *testing.T) {
	dir := t.TempDir()
	store := onDisk(t, dir)
	s, h := started(t, store, nopSettings(), nil)
	c := clientOf(t, s, "traces")
	second, err := NewFactory().Create(t.Context(), nopSettings(), &Config{Storage: diskID, Directory: dir, MaxMemoryMiB: 1})
	require.NoError(t, err)
	require.ErrorContains(t, second.Start(t.Context(), h), "exporter_otlp__traces is in use by another process: give each collector a directory of its own")
	require.NoError(t, second.Shutdown(t.Context()))
	require.NoError(t, c.Close(t.Context()))
}
