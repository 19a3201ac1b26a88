package llmconsoleexporter

import (
	"context"
	"os"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-llm/otelcol-llm/exporter/llmconsoleexporter/internal/metadata"
)

// NewFactory returns the factory of exporter llmconsole (logs only).
func NewFactory() exporter.Factory {
	return exporter.NewFactory(metadata.Type, createDefaultConfig, exporter.WithLogs(createLogs, metadata.LogsStability))
}

func createLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	c := cfg.(*Config)
	out := os.Stdout
	if c.Output == OutputStderr {
		out = os.Stderr
	}
	e, err := newConsoleExporter(c, out, wantsColor(c.Color, out), time.Local, set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	// No queue, retry or timeout: consumeLogs never fails, and blocks no longer than patience.
	return exporterhelper.NewLogs(ctx, set, cfg, e.consumeLogs,
		exporterhelper.WithStart(e.start), exporterhelper.WithShutdown(e.shutdown), exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}))
}

// wantsColor decides auto: a terminal that understands colours, and nobody who has opted out (no-color.org).
func wantsColor(c Color, out *os.File) bool {
	if c != ColorAuto {
		return c == ColorAlways
	}
	info, err := out.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
