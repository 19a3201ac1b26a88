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
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithTracesToMetrics(createTracesToMetrics, metadata.TracesToMetricsStability),
		connector.WithTracesToLogs(createTracesToLogs, metadata.TracesToLogsStability),
		connector.WithTracesToTraces(createTracesToTraces, metadata.TracesToTracesStability),
	)
}

func createTracesToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Traces, error) {
	return newMetricsConnector(set, cfg.(*Config), next)
}

func createTracesToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Traces, error) {
	return newRecordsConnector(set, cfg.(*Config), next)
}

func createTracesToTraces(_ context.Context, _ connector.Settings, _ component.Config, next consumer.Traces) (connector.Traces, error) {
	return &tracesConnector{next: next}, nil
}
