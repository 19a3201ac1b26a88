package llmspanprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/content"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/split"
	"github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor/internal/metadata"
)

// llmSpan is the adapter of all three signals: the core's calls, and the counters of what it did.
type llmSpan struct {
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	redactor  *content.Redactor
	warnings  []string
	options   split.Options
	prices    *pricebook // nil without prices; of traces only

	byLayer [request.LayerEngine + 1]metric.MeasurementOption
	byClass map[string][content.NumClasses]metric.MeasurementOption
}

func newLLMSpan(set processor.Settings, cfg *Config) (*llmSpan, error) {
	core, err := cfg.Content.resolve()
	if err != nil {
		return nil, err
	}
	redactor, err := content.New(core)
	if err != nil {
		return nil, err
	}
	tb, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	p := &llmSpan{
		logger: set.Logger, telemetry: tb, redactor: redactor, warnings: core.Warnings(),
		options: split.Options{StageSpans: cfg.Stages.Spans, DropSource: cfg.Normalize.DropSource},
		byClass: map[string][content.NumClasses]metric.MeasurementOption{},
	}
	for l := request.LayerClient; l <= request.LayerEngine; l++ {
		p.byLayer[l] = metric.WithAttributeSet(attribute.NewSet(attribute.String("layer", l.String())))
	}
	for _, signal := range [...]string{"traces", "logs", "metrics"} {
		var opts [content.NumClasses]metric.MeasurementOption
		for c := range content.NumClasses {
			opts[c] = metric.WithAttributeSet(attribute.NewSet(attribute.String("signal", signal), attribute.String("class", c.String())))
		}
		p.byClass[signal] = opts
	}
	return p, nil
}

func (p *llmSpan) start(context.Context, component.Host) error {
	for _, w := range p.warnings {
		p.logger.Warn(w)
	}
	return p.prices.start()
}

func (p *llmSpan) shutdown(context.Context) error {
	p.prices.stop()
	p.telemetry.Shutdown()
	return nil
}

// processTraces recognises and splits first, since the names and keys that tell a source may be text, and redacts all that leaves.
func (p *llmSpan) processTraces(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	facts := split.Traces(td, p.optionsAt(time.Now()))
	var redacted content.Facts
	p.redactor.Traces(td, &redacted)
	p.record(ctx, &facts)
	p.recordRedacted(ctx, "traces", &redacted)
	return td, nil
}

func (p *llmSpan) processLogs(ctx context.Context, ld plog.Logs) (plog.Logs, error) {
	var redacted content.Facts
	p.redactor.Logs(ld, &redacted)
	p.recordRedacted(ctx, "logs", &redacted)
	return ld, nil
}

func (p *llmSpan) processMetrics(ctx context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
	var redacted content.Facts
	p.redactor.Metrics(md, &redacted)
	p.recordRedacted(ctx, "metrics", &redacted)
	return md, nil
}

func (p *llmSpan) record(ctx context.Context, f *split.Facts) {
	for l, n := range f.Requests {
		if n > 0 {
			p.telemetry.ProcessorLlmspanRequests.Add(ctx, int64(n), p.byLayer[l])
		}
	}
	if f.StageSpans > 0 {
		p.telemetry.ProcessorLlmspanStageSpans.Add(ctx, int64(f.StageSpans))
	}
	if f.Skewed > 0 {
		p.telemetry.ProcessorLlmspanClockSkew.Add(ctx, int64(f.Skewed))
	}
	for name, n := range f.Rejected {
		p.telemetry.ProcessorLlmspanFiguresRejected.Add(ctx, int64(n), metric.WithAttributes(attribute.String("figure", name)))
	}
	p.recordBusiness(ctx, f)
}

func (p *llmSpan) recordRedacted(ctx context.Context, signal string, f *content.Facts) {
	opts := p.byClass[signal]
	for c, n := range f.ByClass {
		if n > 0 {
			p.telemetry.ProcessorLlmspanRedacted.Add(ctx, n, opts[c])
		}
	}
}
