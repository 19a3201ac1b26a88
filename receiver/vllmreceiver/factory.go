package vllmreceiver

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/metadata"
)

// NewFactory returns the factory of the vllm receiver. Its metrics and logs of one configuration come from the same scrapes.
func NewFactory() receiver.Factory {
	f := &factory{shared: map[*Config]*vllmReceiver{}}
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithMetrics(f.createMetrics, metadata.MetricsStability),
		receiver.WithLogs(f.createLogs, metadata.LogsStability),
	)
}

type factory struct {
	mu     sync.Mutex
	shared map[*Config]*vllmReceiver // guarded by mu; a receiver leaves when it is shut down
}

func (f *factory) createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	r, err := f.receiver(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	r.metrics = next
	return r, nil
}

func (f *factory) createLogs(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	r, err := f.receiver(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	r.logs = next
	return r, nil
}

func (f *factory) receiver(set receiver.Settings, cfg *Config) (*vllmReceiver, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.shared[cfg]; ok {
		return r, nil
	}
	r, err := newReceiver(set, cfg)
	if err != nil {
		return nil, err
	}
	r.leave = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.shared, cfg)
	}
	f.shared[cfg] = r
	return r, nil
}
