package queuestorageextension

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/extension/queuestorageextension/internal/metadata"
)

// queueStorage hands out the clients of another storage extension, each behind a client of ours.
type queueStorage struct {
	set       extension.Settings
	cfg       *Config
	telemetry *metadata.TelemetryBuilder
	host      component.Host

	mu      sync.Mutex
	queues  map[*client]metric.MeasurementOption
	failing int // of the queues
}

var (
	_ storage.Extension               = (*queueStorage)(nil)
	_ extensioncapabilities.Dependent = (*queueStorage)(nil)
)

func newExtension(set extension.Settings, cfg *Config) (*queueStorage, error) {
	tb, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	s := &queueStorage{set: set, cfg: cfg, telemetry: tb, queues: map[*client]metric.MeasurementOption{}}
	gauge := func(read func(state) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			s.mu.Lock()
			queues := maps.Clone(s.queues)
			s.mu.Unlock()
			// Without the lock: a queue that begins to fail holds its own lock and asks for this one.
			for c, attrs := range queues {
				o.Observe(read(c.state()), attrs)
			}
			return nil
		}
	}
	err = tb.RegisterExtensionQueueStorageFailingCallback(gauge(func(st state) int64 {
		if st.failing {
			return 1
		}
		return 0
	}))
	if err != nil {
		return nil, err
	}
	return s, tb.RegisterExtensionQueueStorageMemoryCallback(gauge(func(st state) int64 { return st.held }))
}

// Dependencies implements extensioncapabilities.Dependent: the other extension is started first and stopped last.
func (s *queueStorage) Dependencies() []component.ID { return []component.ID{s.cfg.Storage} }

// Start finds the other extension, and looks through its files, which nobody has opened yet.
func (s *queueStorage) Start(ctx context.Context, host component.Host) error {
	s.host = host
	if _, err := s.store(); err != nil {
		return err
	}
	if s.cfg.Directory == "" {
		return nil
	}
	return s.repairFiles(ctx)
}

func (s *queueStorage) Shutdown(context.Context) error {
	s.telemetry.Shutdown()
	return nil
}

// store is the extension that keeps the data.
func (s *queueStorage) store() (storage.Extension, error) {
	if s.cfg.Storage == s.set.ID {
		return nil, fmt.Errorf("storage %q is this extension itself; name the one that keeps the data, such as file_storage", s.cfg.Storage)
	}
	ext, ok := s.host.GetExtensions()[s.cfg.Storage]
	if !ok {
		return nil, fmt.Errorf("storage %q is not there: add it to extensions and to service::extensions", s.cfg.Storage)
	}
	store, ok := ext.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("storage %q does not store; name a storage extension, such as file_storage", s.cfg.Storage)
	}
	return store, nil
}

// GetClient implements storage.Extension. The other extension sees the same names as without us, so that a queue finds what it left there.
func (s *queueStorage) GetClient(ctx context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	store, err := s.store()
	if err != nil {
		return nil, err
	}
	inner, err := store.GetClient(ctx, kind, id, name)
	if err != nil {
		return nil, err
	}
	attrs := metric.WithAttributeSet(attribute.NewSet(attribute.String("component", id.String()), attribute.String("storage", name)))
	logger := s.set.Logger.With(zap.String("component", id.String()), zap.String("storage", name))
	c := newClient(inner, s.cfg.MaxMemoryMiB<<20, events{
		failing: func(err error) {
			logger.Warn("the queue's storage cannot be written (is the disk full?); what waits is sent all the same, new data waits in memory, and what exceeds max_memory_mib is refused",
				zap.Int64("max_memory_mib", s.cfg.MaxMemoryMiB), zap.Error(err))
			s.count(1, err)
		},
		written: func() {
			logger.Info("the queue's storage is written again")
			s.count(-1, nil)
		},
		refused: func(ctx context.Context) { s.telemetry.ExtensionQueueStorageRefused.Add(ctx, 1, attrs) },
	})
	c.closed = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.queues, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[c] = attrs
	return c, nil
}

// count reports the status of the extension when the first queue begins to fail and when the last one works again.
func (s *queueStorage) count(change int, err error) {
	s.mu.Lock()
	before := s.failing
	s.failing += change
	after := s.failing
	s.mu.Unlock()
	switch {
	case before == 0 && after > 0:
		componentstatus.ReportStatus(s.host, componentstatus.NewRecoverableErrorEvent(fmt.Errorf("a queue's storage cannot be written: %w", err)))
	case before > 0 && after == 0:
		componentstatus.ReportStatus(s.host, componentstatus.NewEvent(componentstatus.StatusOK))
	}
}
