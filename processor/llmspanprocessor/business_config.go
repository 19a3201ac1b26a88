package llmspanprocessor

import (
	"errors"
	"fmt"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/dimension"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/quality"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/slo"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/warmup"
)

// DimensionConfig is one label on every metric point and record.
type DimensionConfig struct {
	// Name is the label's key. Required.
	Name string `mapstructure:"name"`

	// From are the places to look in, the first that says something wins: span.K, parent.K, resource.K, baggage.K, header.K. Required.
	From []string `mapstructure:"from"`

	// Default is the value where nothing says one. Default unknown.
	Default string `mapstructure:"default"`

	// MaxValues bounds the different values; further ones become _overflow. Default 200.
	MaxValues int `mapstructure:"max_values"`

	// Values, when given, are the only values; every other becomes _other. Default: any.
	Values []string `mapstructure:"values"`
}

// SLOConfig is what the requests of some models should keep to. The first pattern that matches holds.
type SLOConfig struct {
	// Model is a name or a pattern; * stands for any characters. Required.
	Model string `mapstructure:"model"`

	// TTFT, TPOT and E2E are at the engine's vantage, UserTTFT at the outermost layer's; 0 leaves one out. At least one is required.
	TTFT     time.Duration `mapstructure:"ttft"`
	TPOT     time.Duration `mapstructure:"tpot"`
	E2E      time.Duration `mapstructure:"e2e"`
	UserTTFT time.Duration `mapstructure:"user_ttft"`
}

// PricesConfig is what tokens cost.
type PricesConfig struct {
	// Currency is the code of the prices' currency. Default USD.
	Currency string `mapstructure:"currency"`

	// Models are the prices; the first pattern that matches holds.
	Models []PriceConfig `mapstructure:"models"`

	// File holds currency and models, and is read again when it changes. Default none; it or models, not both.
	File string `mapstructure:"file"`

	// ReloadInterval is how often the file is looked at. Default 30s, at least 1s.
	ReloadInterval time.Duration `mapstructure:"reload_interval"`
}

// PriceConfig is the price of some models, for a million tokens.
type PriceConfig struct {
	// Model is a name or a pattern; * stands for any characters. Required.
	Model string `mapstructure:"model"`

	// ValidFrom is the first instant at which the price holds: a day (UTC) such as 2026-07-01, or a time such as 2026-07-01T08:00:00Z.
	// Default: always.
	ValidFrom time.Time `mapstructure:"valid_from"`

	// Input and Output are required, unless GPUHour is there.
	Input  *float64 `mapstructure:"input"`
	Output *float64 `mapstructure:"output"`

	// CachedInput is for prompt tokens from a cache, CacheWrite for those written to one. Default: input.
	CachedInput *float64 `mapstructure:"cached_input"`
	CacheWrite  *float64 `mapstructure:"cache_write"`

	// Reasoning is for generated tokens that were reasoning. Default: output.
	Reasoning *float64 `mapstructure:"reasoning"`

	// Request is for each request beside its tokens, in units of the currency. Default 0.
	Request float64 `mapstructure:"request"`

	// GPUHour is the price of one GPU for an hour; with GPUs and TokensPerHour it takes the place of the prices of tokens. Default none.
	GPUHour float64 `mapstructure:"gpu_hour"`

	// GPUs is the number of GPUs whose tokens this process sees. Default 1.
	GPUs int64 `mapstructure:"gpus"`

	// TokensPerHour is what is expected until five minutes were measured. Required with GPUHour.
	TokensPerHour int64 `mapstructure:"tokens_per_hour"`
}

// QualityConfig chooses what is looked for in answers. Truncated, empty, malformed JSON and garbled ones always are.
type QualityConfig struct {
	// Repetition looks for answers that repeat themselves. Default true.
	Repetition bool `mapstructure:"repetition"`

	// Refusal looks for answers that begin with a refusal. Default false.
	Refusal bool `mapstructure:"refusal"`
}

// WarmupConfig says which requests count as an engine's first.
type WarmupConfig struct {
	// Requests is the number of first requests after an engine's start that are marked; 0 marks none. Default 3.
	Requests int `mapstructure:"requests"`

	// Settle is how long after its own start this process takes an engine that it hears for the first time for an old one. Default 2m.
	Settle time.Duration `mapstructure:"settle"`

	// ExcludeFromSLO leaves the marked requests out of slo. Default false.
	ExcludeFromSLO bool `mapstructure:"exclude_from_slo"`
}

func defaultBusiness(c *Config) {
	c.Quality = QualityConfig{Repetition: true}
	c.Prices = PricesConfig{Currency: "USD", ReloadInterval: 30 * time.Second}
	c.Warmup = WarmupConfig{Requests: 3, Settle: 2 * time.Minute}
	c.OversizeTokens = 100_000
}

// Validate implements xconfmap.Validator.
func (c *Config) Validate() error {
	var errs []error
	if err := dimension.Validate(c.dimensions()); err != nil {
		errs = append(errs, prefixed("dimensions", err))
	}
	if c.OversizeTokens < 0 {
		errs = append(errs, fmt.Errorf("oversize_tokens: must not be negative, got %d; 0 marks none", c.OversizeTokens))
	}
	return errors.Join(errs...)
}

// prefixed puts a key before each of joined errors.
func prefixed(key string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s: %w", key, err)
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, fmt.Errorf("%s::%w", key, e))
	}
	return errors.Join(errs...)
}

// Validate implements xconfmap.Validator.
func (c *SLOConfig) Validate() error {
	var errs []error
	if c.Model == "" {
		errs = append(errs, errors.New(`model: must be the name of a model, or a pattern such as "Qwen/*" or "*"`))
	}
	limits := 0
	for _, l := range [...]struct {
		key string
		d   time.Duration
	}{{"ttft", c.TTFT}, {"tpot", c.TPOT}, {"e2e", c.E2E}, {"user_ttft", c.UserTTFT}} {
		if l.d < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative, got %s; 0 leaves it out", l.key, l.d))
		}
		if l.d > 0 {
			limits++
		}
	}
	if limits == 0 {
		errs = append(errs, errors.New("must have at least one of ttft, tpot, e2e, user_ttft"))
	}
	return errors.Join(errs...)
}

// Validate implements xconfmap.Validator. The file is not read here: it may not exist where a configuration is checked.
func (c *PricesConfig) Validate() error {
	var errs []error
	if !cost.IsCurrency(c.Currency) {
		errs = append(errs, fmt.Errorf("currency: must be a code of three to eight capital letters such as USD, got %q", c.Currency))
	}
	if c.File != "" && len(c.Models) > 0 {
		errs = append(errs, errors.New("file: set it or models, not both"))
	}
	if c.ReloadInterval < time.Second {
		errs = append(errs, fmt.Errorf("reload_interval: must be at least 1s, got %s", c.ReloadInterval))
	}
	if _, err := c.table(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Validate implements xconfmap.Validator.
func (c *WarmupConfig) Validate() error {
	var errs []error
	if c.Requests < 0 || c.Requests > 10_000 {
		errs = append(errs, fmt.Errorf("requests: must be from 0 to 10000, got %d; 0 marks none", c.Requests))
	}
	if c.Settle < 0 {
		errs = append(errs, fmt.Errorf("settle: must not be negative, got %s", c.Settle))
	}
	return errors.Join(errs...)
}

func (c *Config) dimensions() []dimension.Config {
	var out []dimension.Config
	for _, d := range c.Dimensions {
		o := dimension.Config{Name: d.Name, From: d.From, Default: d.Default, Max: d.MaxValues, Values: d.Values}
		if o.Default == "" {
			o.Default = "unknown"
		}
		if o.Max == 0 {
			o.Max = 200
		}
		out = append(out, o)
	}
	return out
}

func (c *Config) objectives() slo.Objectives {
	var out slo.Objectives
	for _, s := range c.SLO {
		out = append(out, slo.Objective{Model: s.Model, TTFT: s.TTFT.Seconds(), TPOT: s.TPOT.Seconds(), E2E: s.E2E.Seconds(), UserTTFT: s.UserTTFT.Seconds()})
	}
	return out
}

// maxEngines bounds the engines that are remembered for their warm-up.
const maxEngines = 10_000

func (c *Config) warmup() *warmup.Tracker {
	if c.Warmup.Requests == 0 {
		return nil
	}
	return warmup.New(warmup.Config{Requests: c.Warmup.Requests, Settle: c.Warmup.Settle, Max: maxEngines, Within: time.Hour})
}

func (c *Config) quality() *quality.Assessor {
	return quality.New(quality.Config{Repetition: c.Quality.Repetition, Refusal: c.Quality.Refusal})
}

// table is the price table of the models, nil when there are none.
func (c *PricesConfig) table() (*cost.Table, error) {
	if len(c.Models) == 0 {
		return nil, nil
	}
	var entries []cost.Entry
	var errs []error
	for i := range c.Models {
		e, err := c.Models[i].entry(c.Currency)
		if err != nil {
			errs = append(errs, prefixed(fmt.Sprintf("models::%d", i), err))
			continue
		}
		entries = append(entries, e)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	t, err := cost.NewTable(entries)
	if err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	return t, nil
}

// entry is one line of the price table.
func (c *PriceConfig) entry(currency string) (cost.Entry, error) {
	var errs []error
	e := cost.Entry{Model: c.Model, From: c.ValidFrom, Price: cost.Price{Currency: currency}}
	p := &e.Price
	if c.Model == "" {
		errs = append(errs, errors.New(`model: must be the name of a model, or a pattern such as "Qwen/*" or "*"`))
	}
	amount := func(key string, f float64) cost.Amount {
		a, ok := cost.FromFloat(f)
		if !ok {
			errs = append(errs, fmt.Errorf("%s: must not be negative, got %v", key, f))
		}
		return a
	}
	p.Request = amount("request", c.Request)
	if c.GPUHour != 0 {
		e.GPU = &cost.GPU{Hour: amount("gpu_hour", c.GPUHour), Count: max(c.GPUs, 1), Expected: c.TokensPerHour}
		if c.Input != nil || c.Output != nil || c.CachedInput != nil || c.CacheWrite != nil || c.Reasoning != nil || c.Request != 0 {
			errs = append(errs, errors.New("gpu_hour: takes the place of the other prices; leave them out"))
		}
		if c.TokensPerHour <= 0 {
			errs = append(errs, errors.New("tokens_per_hour: must be the number of tokens an hour that are expected until they are measured"))
		}
		return e, errors.Join(errs...)
	}
	if c.GPUs != 0 || c.TokensPerHour != 0 {
		errs = append(errs, errors.New("gpus, tokens_per_hour: need gpu_hour"))
	}
	for _, r := range [...]struct {
		key      string
		f        *float64
		to       *cost.Rate
		fallback *cost.Rate
	}{
		{"input", c.Input, &p.Input, nil},
		{"output", c.Output, &p.Output, nil},
		{"cached_input", c.CachedInput, &p.CachedInput, &p.Input},
		{"cache_write", c.CacheWrite, &p.CacheWrite, &p.Input},
		{"reasoning", c.Reasoning, &p.Reasoning, &p.Output},
	} {
		switch {
		case r.f != nil:
			rate, err := cost.PerMillion(*r.f)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", r.key, err))
			}
			*r.to = rate
		case r.fallback != nil:
			*r.to = *r.fallback
		default:
			errs = append(errs, fmt.Errorf("%s: must be a price for a million tokens; write 0 for none", r.key))
		}
	}
	return e, errors.Join(errs...)
}
