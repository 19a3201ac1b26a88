package builtinprovider

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/distributions/otelcol-llm/configs"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newProvider() confmap.Provider {
	return NewFactory().Create(confmaptest.NewNopProviderSettings())
}

func TestSchemeIsValid(t *testing.T) {
	assert.NoError(t, confmaptest.ValidateProviderScheme(newProvider()))
	assert.Equal(t, "builtin", newProvider().Scheme())
}

func TestEveryShippedConfigurationHasPipelines(t *testing.T) {
	p := newProvider()
	for _, name := range configs.Names() {
		ret, err := p.Retrieve(t.Context(), "builtin:"+name, nil)
		require.NoError(t, err, name)
		conf, err := ret.AsConf()
		require.NoError(t, err, name)
		assert.True(t, conf.IsSet("service::pipelines"), name)
		assert.NoError(t, ret.Close(t.Context()))
	}
	assert.NoError(t, p.Shutdown(t.Context()))
}

func TestRetrieveRefuses(t *testing.T) {
	for uri, want := range map[string]string{
		"builtin:nothing":         `no built-in configuration "nothing"; there are: `,
		"builtin:":                `no built-in configuration ""; there are: `,
		"file:standalone":         `"file:standalone" uri is not supported by "builtin" provider`,
		"builtin:standalone.yaml": `no built-in configuration "standalone.yaml"`,
	} {
		_, err := newProvider().Retrieve(t.Context(), uri, nil)
		assert.ErrorContains(t, err, want, uri)
	}
}

// The collector resolves the references inside, and lays a second configuration over the first.
func TestResolvesEnvironmentAndOverrides(t *testing.T) {
	t.Setenv("OTELCOL_LLM_DATA", "/var/lib/llm")
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              []string{"builtin:standalone", "yaml:exporters::prometheus::endpoint: 127.0.0.1:9999"},
		ProviderFactories: []confmap.ProviderFactory{NewFactory(), envprovider.NewFactory(), yamlprovider.NewFactory()},
	})
	require.NoError(t, err)
	conf, err := resolver.Resolve(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "/var/lib/llm/traces.jsonl", conf.Get("exporters::file/traces::path"))
	assert.Equal(t, "127.0.0.1:4317", conf.Get("receivers::otlp::protocols::grpc::endpoint"), "the default after :- holds")
	assert.Equal(t, "127.0.0.1:9999", conf.Get("exporters::prometheus::endpoint"))
	assert.NoError(t, resolver.Shutdown(t.Context()))
}

func TestReadme(t *testing.T) {
	doctest.Blocks(t, "README.md")
}

func TestReadmeListsEveryName(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, m[1])
	}
	assert.Equal(t, configs.Names(), listed)
}
