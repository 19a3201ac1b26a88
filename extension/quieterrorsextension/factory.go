package quieterrorsextension

import (
	"context"
	"net/http"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"

	"github.com/otelcol-llm/otelcol-llm/extension/quieterrorsextension/internal/metadata"
)

// Config has no keys: there is nothing about it that should differ.
type Config struct {
	_ struct{}
}

// NewFactory returns the factory of the quiet_errors extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(
		metadata.Type,
		func() component.Config { return &Config{} },
		func(_ context.Context, set extension.Settings, _ component.Config) (extension.Extension, error) {
			telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
			if err != nil {
				return nil, err
			}
			return &middleware{telemetry: telemetry}, nil
		},
		metadata.ExtensionStability,
	)
}

type middleware struct {
	component.StartFunc
	telemetry *metadata.TelemetryBuilder
}

var _ extensionmiddleware.HTTPServer = (*middleware)(nil)

func (m *middleware) Shutdown(context.Context) error {
	m.telemetry.Shutdown()
	return nil
}

// GetHTTPHandler implements extensionmiddleware.HTTPServer.
func (m *middleware) GetHTTPHandler(context.Context) (extensionmiddleware.WrapHTTPHandlerFunc, error) {
	return func(_ context.Context, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q := &quiet{ResponseWriter: w, protobuf: isProtobuf(r)}
			next.ServeHTTP(q, r)
			if q.replaced {
				m.telemetry.ExtensionQuietErrorsAnswers.Add(r.Context(), 1)
			}
		}), nil
	}, nil
}
