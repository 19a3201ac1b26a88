package llmconsoleexporter

import (
	"context"
	"io"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/exporter/llmconsoleexporter/internal/line"
	"github.com/otelcol-llm/otelcol-llm/exporter/llmconsoleexporter/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/exporter/llmconsoleexporter/internal/pace"
)

// What can become of a record; metadata.yaml describes the same values.
const (
	outcomePrinted     = "printed"
	outcomeRateLimited = "rate_limited"
	outcomeBlocked     = "blocked"
	outcomeWriteFailed = "write_failed"
	outcomeIgnored     = "ignored"
)

type consoleExporter struct {
	printer   *printer
	telemetry *metadata.TelemetryBuilder
	counted   map[string]metric.MeasurementOption // prepared once: one a record is on the hot path
	zone      *time.Location

	mu      sync.Mutex // guards limiter
	limiter pace.Limiter
}

func newConsoleExporter(cfg *Config, out io.Writer, color bool, zone *time.Location, set component.TelemetrySettings) (*consoleExporter, error) {
	tb, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	e := &consoleExporter{
		telemetry: tb,
		counted:   map[string]metric.MeasurementOption{},
		zone:      zone,
		limiter:   pace.Limiter{PerSecond: cfg.MaxLinesPerSecond},
	}
	for _, o := range []string{outcomePrinted, outcomeRateLimited, outcomeBlocked, outcomeWriteFailed, outcomeIgnored} {
		e.counted[o] = metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", o)))
	}
	e.printer = newPrinter(out, color, set.Logger.With(zap.String("output", string(cfg.Output))), e.count)
	return e, nil
}

func (e *consoleExporter) start(context.Context, component.Host) error {
	e.printer.run()
	return nil
}

// consumeLogs prints the request records of ld. It never fails: a line that cannot be printed is counted, not sent again.
func (e *consoleExporter) consumeLogs(_ context.Context, ld plog.Logs) error {
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, rec := range sl.LogRecords().All() {
				e.record(rec, rl.Resource().Attributes())
			}
		}
	}
	return nil
}

func (e *consoleExporter) record(rec plog.LogRecord, resource pcommon.Map) {
	if rec.EventName() != eventName {
		e.count(outcomeIgnored)
		return
	}
	if !e.admit(time.Now()) {
		e.printer.skip(outcomeRateLimited)
		return
	}
	e.printer.print(line.Format(requestOf(rec, resource, e.zone), e.printer.color))
}

func (e *consoleExporter) admit(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.limiter.Admit(now)
}

func (e *consoleExporter) count(outcome string) {
	e.telemetry.ExporterLlmconsoleRecords.Add(context.Background(), 1, e.counted[outcome])
}

func (e *consoleExporter) shutdown(ctx context.Context) error {
	err := e.printer.shutdown(ctx)
	e.telemetry.Shutdown()
	return err
}
