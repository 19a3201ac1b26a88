package llmspanconnector

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
)

// Config is the configuration of the connector.
type Config struct {
	// JoinWindow is how long the span of a client or gateway waits for the span of an engine below it, so that a request that both
	// report is counted once. Default 10s, at least 1s: exporters of SDKs and engines send every 5s.
	JoinWindow time.Duration `mapstructure:"join_window"`

	// MaxSpans bounds the spans that are remembered to join layers and to tell retries. Beyond it the oldest trace is settled early
	// and counted. Default 50000.
	MaxSpans int `mapstructure:"max_spans"`

	// Histograms chooses their form.
	Histograms HistogramConfig `mapstructure:"histograms"`

	// Metrics bounds the series.
	Metrics MetricsConfig `mapstructure:"metrics"`

	// Records chooses which requests get a record: sampled (those whose trace is kept; without sampling that is all), all, or none.
	// Default sampled.
	Records RecordsMode `mapstructure:"records"`

	// RecordsBaselineRatio is the share of normal requests of dropped traces that get a record all the same, by the same randomness as
	// the traces: with a ratio above the processor's baseline_ratio the kept traces' records are a part of them. Default 0.05.
	RecordsBaselineRatio float64 `mapstructure:"records_baseline_ratio"`
}

// HistogramConfig is the form of the histograms.
type HistogramConfig struct {
	// Exponential makes them exponential instead of explicit. Default false.
	Exponential bool `mapstructure:"exponential"`
}

// MetricsConfig bounds the series and paces their export.
type MetricsConfig struct {
	// Interval is the time between two exports. Default 10s, at least 100ms.
	Interval time.Duration `mapstructure:"interval"`

	// Expiry is how long a series is exported without a new observation; 0 keeps it for ever. Default 5m.
	Expiry time.Duration `mapstructure:"expiry"`

	// MaxSeries bounds the series; observations of further ones go to one overflow series of each metric. Default 10000.
	MaxSeries int `mapstructure:"max_series"`
}

// RecordsMode says which requests get a record.
type RecordsMode string

// The modes.
const (
	RecordsSampled RecordsMode = "sampled"
	RecordsAll     RecordsMode = "all"
	RecordsNone    RecordsMode = "none"
)

// Validate implements xconfmap.Validator.
func (m RecordsMode) Validate() error {
	switch m {
	case RecordsSampled, RecordsAll, RecordsNone:
		return nil
	}
	return fmt.Errorf("must be sampled, all or none, got %q", string(m))
}

// Validate implements xconfmap.Validator.
func (c *Config) Validate() error {
	var errs []error
	if c.JoinWindow < time.Second {
		errs = append(errs, fmt.Errorf("join_window: must be at least 1s, got %s", c.JoinWindow))
	}
	if c.MaxSpans <= 0 {
		errs = append(errs, fmt.Errorf("max_spans: must be positive, got %d", c.MaxSpans))
	}
	if !(c.RecordsBaselineRatio >= 0 && c.RecordsBaselineRatio <= 1) {
		errs = append(errs, fmt.Errorf("records_baseline_ratio: must be from 0 to 1, got %v", c.RecordsBaselineRatio))
	}
	return errors.Join(errs...)
}

// Validate implements xconfmap.Validator.
func (c *MetricsConfig) Validate() error {
	var errs []error
	if c.Interval < 100*time.Millisecond {
		errs = append(errs, fmt.Errorf("interval: must be at least 100ms, got %s", c.Interval))
	}
	if c.Expiry < 0 {
		errs = append(errs, fmt.Errorf("expiry: must not be negative, got %s; 0 keeps series for ever", c.Expiry))
	}
	if c.MaxSeries <= 0 {
		errs = append(errs, fmt.Errorf("max_series: must be positive, got %d", c.MaxSeries))
	}
	return errors.Join(errs...)
}

func createDefaultConfig() component.Config {
	return &Config{
		JoinWindow: 10 * time.Second,
		MaxSpans:   50_000,
		Metrics:    MetricsConfig{Interval: 10 * time.Second, Expiry: 5 * time.Minute, MaxSeries: 10_000},
		Records:    RecordsSampled,

		RecordsBaselineRatio: 0.05,
	}
}
