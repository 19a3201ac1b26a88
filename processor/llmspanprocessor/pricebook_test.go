package llmspanprocessor

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor/internal/metadatatest"
)

func priceFile(t *testing.T, path, text string, at time.Time) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.Chtimes(path, at, at)) // two writes within the clock's tick are one change
}

func TestPricesAreReadAgainWhenTheFileChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prices.yaml")
	at := time.Unix(1_796_045_488, 0)
	priceFile(t, file, "currency: EUR\nmodels: [{model: '*', input: 1, output: 2, valid_from: 2026-01-01}]\n", at)
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	tb, err := metadata.NewTelemetryBuilder(tel.NewTelemetrySettings())
	require.NoError(t, err)
	core, logs := observer.New(zap.InfoLevel)
	b, err := newPricebook(&PricesConfig{Currency: "USD", File: file, ReloadInterval: time.Hour}, zap.New(core), tb)
	require.NoError(t, err)
	require.NoError(t, b.start())
	defer b.stop()
	input := func() string {
		e := b.table.Load().Find("any", at)
		require.NotNil(t, e)
		return e.Price.String()
	}
	assert.Equal(t, "EUR input=1 output=2", input())
	b.look(t.Context())
	assert.Empty(t, logs.All(), "nothing has changed")

	priceFile(t, file, "currency: EUR\nmodels: [{model: '*', input: 3, output: 4}]\n", at.Add(time.Second))
	b.look(t.Context())
	assert.Equal(t, "EUR input=3 output=4", input())

	priceFile(t, file, "currency: EUR\nmodels: [{model: '*', inptu: 5, output: 6}]\n", at.Add(2*time.Second))
	b.look(t.Context())
	b.look(t.Context())
	assert.Equal(t, "EUR input=3 output=4", input(), "a change that cannot be used changes nothing")
	require.NoError(t, os.Remove(file))
	b.look(t.Context())
	assert.Equal(t, "EUR input=3 output=4", input(), "a file that is being replaced")
	require.Equal(t, 2, logs.Len(), "each change is said once")
	assert.Contains(t, logs.All()[1].ContextMap()["error"], "inptu")
	metadatatest.AssertEqualProcessorLlmspanPriceReloads(t, tel, []metricdata.DataPoint[int64]{
		{Value: 1, Attributes: attribute.NewSet(attribute.String("outcome", "ok"))}, {Value: 1, Attributes: attribute.NewSet(attribute.String("outcome", "failed"))},
	}, metricdatatest.IgnoreTimestamp())

	b.unpriced(map[string]int{"a": 3})
	b.unpriced(map[string]int{"a": 1, "b": 1})
	assert.Equal(t, 2, logs.FilterMessageSnippet("no price for a model").Len(), "each model is named once")
}

func TestAFileOfPricesThatCannotBeUsedStopsTheStart(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, err string }{
		"missing":      {"", "no such file"},
		"no models":    {"currency: USD\n", "models: must list at least one"},
		"another file": {"file: /etc/prices.yaml\n", "a file of prices cannot name another"},
		"a list":       {"- a\n", "must have currency and models"},
		"a typo":       {"models: [{model: a, input: 1, output: 1, cached: 1}]\n", "cached"},
		"a bad price":  {"models: [{model: a, input: -1, output: 1}]\n", "models::0::input: must be a price for a million tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name)
			if c.text != "" {
				priceFile(t, file, c.text, time.Unix(1_796_045_488, 0))
			}
			b := &pricebook{file: file, logger: zap.NewNop()}
			assert.ErrorContains(t, b.start(), c.err)
			b.stop()
		})
	}
}
