package queuestorageextension

import (
	"bytes"
	"context"
	"maps"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/otelcol-llm/otelcol-llm/extension/queuestorageextension/internal/metadata"
)

// disk is a storage extension in memory that can be full: then it reads and does not write. A transaction is whole or nothing.
type disk struct {
	component.StartFunc
	component.ShutdownFunc

	mu     sync.Mutex
	full   bool
	noSets bool // there is room for deletions, and none for data
	broken bool // cannot be read either
	data   map[string][]byte
	names  []string // of the clients
	closed int
}

func newDisk() *disk { return &disk{data: map[string][]byte{}} }

// copied is what another process finds after this one was killed now.
func (d *disk) copied() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &disk{data: maps.Clone(d.data), full: d.full}
}

func (d *disk) setFull(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

func (d *disk) has(key string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.Clone(d.data[key])
}

func (d *disk) GetClient(_ context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	d.names = append(d.names, kind.String()+" "+id.String()+" "+name)
	return diskClient{d}, nil
}

type diskClient struct{ d *disk }

func (c diskClient) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := c.Batch(ctx, op)
	return op.Value, err
}

func (c diskClient) Set(ctx context.Context, key string, value []byte) error {
	return c.Batch(ctx, storage.SetOperation(key, value))
}

func (c diskClient) Delete(ctx context.Context, key string) error {
	return c.Batch(ctx, storage.DeleteOperation(key))
}

func (c diskClient) Batch(_ context.Context, ops ...*storage.Operation) error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if c.d.broken {
		return syscall.EIO
	}
	next := maps.Clone(c.d.data)
	for _, op := range ops {
		switch {
		case op.Type == storage.Get:
			op.Value = bytes.Clone(next[op.Key])
		case c.d.full, c.d.noSets && op.Type == storage.Set:
			return syscall.ENOSPC
		case op.Type == storage.Set:
			next[op.Key] = bytes.Clone(op.Value)
		default:
			delete(next, op.Key)
		}
	}
	c.d.data = next
	return nil
}

func (c diskClient) Close(context.Context) error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.d.closed++
	return nil
}

// host has extensions, and remembers the status that components report.
type host struct {
	component.Host
	extensions map[component.ID]component.Component

	mu     sync.Mutex
	status []componentstatus.Status
}

func newHost(extensions map[component.ID]component.Component) *host {
	return &host{Host: componenttest.NewNopHost(), extensions: extensions}
}

func (h *host) GetExtensions() map[component.ID]component.Component { return h.extensions }

func (h *host) Report(e *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status = append(h.status, e.Status())
}

var (
	diskID = component.MustNewID("file_storage")
	ourID  = component.NewID(metadata.Type)
)

// started is the extension in front of a store, started on a host that has both.
func started(t testing.TB, store component.Component, set extension.Settings, change func(*Config)) (*queueStorage, *host) {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	if change != nil {
		change(cfg)
	}
	ext, err := NewFactory().Create(t.Context(), set, cfg)
	require.NoError(t, err)
	h := newHost(map[component.ID]component.Component{diskID: store, ourID: ext})
	require.NoError(t, ext.Start(t.Context(), h))
	t.Cleanup(func() { require.NoError(t, ext.Shutdown(context.Background())) })
	return ext.(*queueStorage), h
}

func nopSettings() extension.Settings { return extensiontest.NewNopSettings(metadata.Type) }
