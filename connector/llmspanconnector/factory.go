package llmspanconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector/internal/metadata"
)

// NewFactory returns the factory of the llmspan connector.
func NewFactory() connector.Factory {
	shared := &trackers{}
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithTracesToMetrics(shared.createTracesToMetrics, metadata.TracesToMetricsStability),
		connector.WithTracesToLogs(shared.createTracesToLogs, metadata.TracesToLogsStability),
		connector.WithTracesToTraces(createTracesToTraces, metadata.TracesToTracesStability),
	)
}

func (s *trackers) createTracesToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Traces, error) {
	return newMetricsConnector(set, cfg.(*Config), next, s)
}

func (s *trackers) createTracesToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Traces, error) {
	if cfg.(*Config).Records == RecordsNone {
		return noRecords{}, nil
	}
	return newRecordsConnector(set, cfg.(*Config), next, s)
}

func createTracesToTraces(_ context.Context, _ connector.Settings, _ component.Config, next consumer.Traces) (connector.Traces, error) {
	return &tracesConnector{next: next}, nil
}
