// Package builtinprovider is a confmap provider that serves the configurations embedded in the binary:
// otelcol-llm --config builtin:standalone works with no file around.
package builtinprovider

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/distributions/otelcol-llm/configs"
)

const scheme = "builtin"

// NewFactory returns the factory of the provider for URIs builtin:NAME, where NAME is one of configs.Names.
func NewFactory() confmap.ProviderFactory {
	return confmap.NewProviderFactory(func(confmap.ProviderSettings) confmap.Provider { return provider{} })
}

type provider struct{}

// Retrieve returns the configuration that uri names. The content never changes, so the watcher is never called.
func (provider) Retrieve(_ context.Context, uri string, _ confmap.WatcherFunc) (*confmap.Retrieved, error) {
	name, ok := strings.CutPrefix(uri, scheme+":")
	if !ok {
		return nil, fmt.Errorf("%q uri is not supported by %q provider", uri, scheme)
	}
	content, err := configs.Read(name)
	if err != nil {
		return nil, err
	}
	return confmap.NewRetrievedFromYAML(content)
}

func (provider) Scheme() string { return scheme }

func (provider) Shutdown(context.Context) error { return nil }
