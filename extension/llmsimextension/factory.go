package llmsimextension

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-llm/otelcol-llm/extension/llmsimextension/internal/metadata"
)

// NewFactory returns the factory of the llmsim extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(
		metadata.Type,
		func() component.Config { return createDefaultConfig() },
		func(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
			return newSimulator(set, cfg.(*Config))
		},
		metadata.ExtensionStability,
	)
}
