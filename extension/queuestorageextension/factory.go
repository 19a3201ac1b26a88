package queuestorageextension

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-llm/otelcol-llm/extension/queuestorageextension/internal/metadata"
)

// NewFactory returns the factory of the queue_storage extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(
		metadata.Type,
		createDefaultConfig,
		func(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
			return newExtension(set, cfg.(*Config))
		},
		metadata.ExtensionStability,
	)
}
