package redaction

import (
	"context"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/redactionprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/content"
)

// system is one way to redact, in place.
type system struct {
	name   string
	traces func(ptrace.Traces)
	logs   func(plog.Logs)
}

// systems are the two that are compared.
func systems(t testing.TB) []system {
	r, err := content.New(content.Config{})
	require.NoError(t, err)
	return []system{
		stock(t),
		{"llmspan", func(td ptrace.Traces) { r.Traces(td, nil) }, func(ld plog.Logs) { r.Logs(ld, nil) }},
	}
}

// stock chains transform and redaction as configured in stock.yaml.
func stock(t testing.TB) system {
	conf, err := confmaptest.LoadConf("stock.yaml")
	require.NoError(t, err)
	ctx := context.Background()
	host := componenttest.NewNopHost()
	config := func(f processor.Factory) component.Config {
		cfg := f.CreateDefaultConfig()
		sub, err := conf.Sub(f.Type().String())
		require.NoError(t, err)
		require.NoError(t, sub.Unmarshal(cfg))
		return cfg
	}
	transform, redact := transformprocessor.NewFactory(), redactionprocessor.NewFactory()
	var traces consumer.Traces = consumertest.NewNop()
	var logs consumer.Logs = consumertest.NewNop()
	for _, f := range []processor.Factory{redact, transform} { // the last one first: each feeds the one before
		tp, err := f.CreateTraces(ctx, processortest.NewNopSettings(f.Type()), config(f), traces)
		require.NoError(t, err)
		lp, err := f.CreateLogs(ctx, processortest.NewNopSettings(f.Type()), config(f), logs)
		require.NoError(t, err)
		for _, c := range []component.Component{tp, lp} {
			require.NoError(t, c.Start(ctx, host))
			t.Cleanup(func() { require.NoError(t, c.Shutdown(context.Background())) })
		}
		traces, logs = tp, lp
	}
	return system{
		"transform + redaction",
		func(td ptrace.Traces) { require.NoError(t, traces.ConsumeTraces(ctx, td)) },
		func(ld plog.Logs) { require.NoError(t, logs.ConsumeLogs(ctx, ld)) },
	}
}
