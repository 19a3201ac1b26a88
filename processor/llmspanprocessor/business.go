package llmspanprocessor

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/dimension"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/split"
)

// assess prepares what requests of traces are assessed by.
func (p *llmSpan) assess(cfg *Config) error {
	b := &p.options.Business
	b.Objectives, b.SkipWarmup = cfg.objectives(), cfg.Warmup.ExcludeFromSLO
	b.Quality, b.Warmup, b.Oversize = cfg.quality(), cfg.warmup(), cfg.OversizeTokens
	if len(cfg.Dimensions) > 0 {
		d, err := dimension.New(cfg.dimensions())
		if err != nil {
			return fmt.Errorf("dimensions: %w", err)
		}
		b.Dimensions = d
	}
	book, err := newPricebook(&cfg.Prices, p.logger, p.telemetry)
	if err != nil {
		return fmt.Errorf("prices: %w", err)
	}
	if p.prices = book; book != nil {
		b.Prices, b.Currency = book.table.Load, cfg.Prices.Currency
	}
	return nil
}

// optionsAt are the options of a call at a time.
func (p *llmSpan) optionsAt(now time.Time) split.Options {
	o := p.options
	o.Now = now
	return o
}

// recordBusiness counts what requests were found to be.
func (p *llmSpan) recordBusiness(ctx context.Context, f *split.Facts) {
	for i, n := range f.Issues {
		if n > 0 {
			p.telemetry.ProcessorLlmspanQualityIssues.Add(ctx, int64(n), metric.WithAttributes(attribute.String("issue", request.Issues[i])))
		}
	}
	for name, n := range f.Overflowed {
		p.telemetry.ProcessorLlmspanDimensionOverflowed.Add(ctx, int64(n), metric.WithAttributes(attribute.String("dimension", name)))
	}
	unpriced := 0
	for _, n := range f.Unpriced {
		unpriced += n
	}
	if unpriced > 0 {
		p.telemetry.ProcessorLlmspanRequestsUnpriced.Add(ctx, int64(unpriced))
		p.prices.unpriced(f.Unpriced)
	}
	if f.Oversize > 0 {
		p.telemetry.ProcessorLlmspanRequestsOversize.Add(ctx, int64(f.Oversize))
	}
	if f.Warmup > 0 {
		p.telemetry.ProcessorLlmspanRequestsWarmup.Add(ctx, int64(f.Warmup))
	}
}
