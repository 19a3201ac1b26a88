package dcgmreceiver

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/metadata"
)

// NewFactory makes the factory of the dcgm receiver.
func NewFactory() receiver.Factory {
	f := &shared{byConfig: map[*Config]*dcgmReceiver{}}
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithMetrics(f.createMetrics, metadata.MetricsStability),
		receiver.WithLogs(f.createLogs, metadata.LogsStability),
	)
}

func createDefaultConfig() component.Config {
	return &Config{
		Source:             SourceAuto,
		CollectionInterval: 10 * time.Second,
		ProfilingInterval:  time.Second,
		Timeout:            10 * time.Second,
		Health:             true,
		PodResourcesSocket: defaultKubelet,
		PodResourceNames:   []string{"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"},
		HTTP:               confighttp.NewDefaultClientConfig(),
	}
}

// shared gives the metrics and the logs pipeline of one configuration one receiver: the library may be opened once.
type shared struct {
	mu       sync.Mutex
	byConfig map[*Config]*dcgmReceiver
}

func (f *shared) receiver(set receiver.Settings, cfg *Config) (*dcgmReceiver, error) {
	if r, ok := f.byConfig[cfg]; ok {
		return r, nil
	}
	r, err := newReceiver(cfg, set, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.byConfig, cfg)
	})
	if err != nil {
		return nil, err
	}
	f.byConfig[cfg] = r
	return r, nil
}

func (f *shared) createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.receiver(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	r.metrics = next
	return r, nil
}

func (f *shared) createLogs(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.receiver(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	r.logs = next
	return r, nil
}

// newSource makes the source the configuration asks for. Nothing is opened yet.
func newSource(cfg *Config, plan *gpu.Plan, host component.Host, set receiver.Settings) gpu.Source {
	exporter := func(endpoint string) gpu.Source {
		return newExporterSource(cfg, endpoint, plan, host, set.TelemetrySettings)
	}
	switch cfg.Source {
	case SourceDCGM:
		return newDCGMSource(cfg, cfg.Endpoint, plan)
	case SourceNVML:
		return newNVMLSource(cfg, plan)
	case SourceExporter:
		return exporter(cfg.Endpoint)
	}
	engineAt, pageAt := cfg.Endpoint, ""
	if isHTTP(cfg.Endpoint) {
		engineAt, pageAt = "", cfg.Endpoint
	}
	return &autoSource{candidates: []gpu.Source{newDCGMSource(cfg, engineAt, plan), exporter(pageAt), newNVMLSource(cfg, plan)}}
}
