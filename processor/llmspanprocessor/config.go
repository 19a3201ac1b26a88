package llmspanprocessor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/content"
)

// Config is the configuration of the processor.
type Config struct {
	// Content says what happens to prompt text.
	Content ContentConfig `mapstructure:"content"`

	// Stages says how a request is split.
	Stages StagesConfig `mapstructure:"stages"`

	// Normalize says how spellings are folded.
	Normalize NormalizeConfig `mapstructure:"normalize"`

	// Dimensions are labels on every metric point and record. Default none.
	Dimensions []DimensionConfig `mapstructure:"dimensions"`

	// SLO are the objectives that requests are held against. Default none.
	SLO []SLOConfig `mapstructure:"slo"`

	// Prices is what tokens cost. Default none.
	Prices PricesConfig `mapstructure:"prices"`

	// Quality chooses what is looked for in answers, before their text is removed.
	Quality QualityConfig `mapstructure:"quality"`

	// OversizeTokens is the number of tokens, of prompt and answer together, beyond which a request is marked and kept. Default 100000;
	// 0 marks none.
	OversizeTokens int64 `mapstructure:"oversize_tokens"`

	// Warmup says which requests count as an engine's first.
	Warmup WarmupConfig `mapstructure:"warmup"`

	// Sampling assembles whole traces and decides which are kept. Default off.
	Sampling SamplingConfig `mapstructure:"sampling"`
}

// StagesConfig says how a request is split.
type StagesConfig struct {
	// Spans adds a child span for each stage. Default true; the stages' durations are attributes of the request span in any case.
	Spans bool `mapstructure:"spans"`

	// FoldChunks folds the spans of single chunks of a stream into their parent; with sampling only. Default true.
	FoldChunks bool `mapstructure:"fold_chunks"`
}

// NormalizeConfig says how spellings are folded.
type NormalizeConfig struct {
	// DropSource removes the source's own spelling of what is written under a current name. Default false.
	DropSource bool `mapstructure:"drop_source"`
}

// ContentConfig says what happens to prompt text. See docs/privacy.md.
type ContentConfig struct {
	// Mode is strip, hash, truncate or keep. Default strip.
	Mode content.Mode `mapstructure:"mode"`

	// HashKey is the key of the HMAC-SHA-256 of hash, at least 16 bytes. Default none; hash does not start without one.
	HashKey configopaque.String `mapstructure:"hash_key"`

	// HashKeyFile is a file that holds the key, read at start; one trailing newline is not part of it. Default none.
	HashKeyFile string `mapstructure:"hash_key_file"`

	// MaxLength is how many characters truncate keeps of a text. Default 256; 0 means the default.
	MaxLength int `mapstructure:"max_length"`

	// Overrides give single keys, or prefixes of keys, a mode of their own; the first match wins.
	Overrides []OverrideConfig `mapstructure:"overrides"`

	// Allow are further keys that pass, Deny further keys that count as text: exact, or a prefix that ends in *.
	Allow []string `mapstructure:"allow"`
	Deny  []string `mapstructure:"deny"`

	// Services give services a mode of their own, by service.name; the first match wins.
	Services []ServiceConfig `mapstructure:"services"`

	// HashIdentity hashes identities (user.id, session.id, …) with the same key. Default false.
	HashIdentity bool `mapstructure:"hash_identity"`
}

// OverrideConfig gives a key or a prefix a mode.
type OverrideConfig struct {
	Key    string       `mapstructure:"key"`
	Prefix string       `mapstructure:"prefix"`
	Mode   content.Mode `mapstructure:"mode"`
}

// ServiceConfig gives a service a mode.
type ServiceConfig struct {
	Service string       `mapstructure:"service"`
	Mode    content.Mode `mapstructure:"mode"`
}

// Validate implements xconfmap.Validator. The file of the key is not read here: it may not exist where a configuration is checked.
func (c *ContentConfig) Validate() error {
	if c.HashKey != "" && c.HashKeyFile != "" {
		return errors.New("hash_key_file: set it or hash_key, not both")
	}
	cfg := c.core()
	cfg.HashKey = []byte(c.HashKey)
	if c.HashKeyFile != "" {
		cfg.HashKey = []byte("read at start")
	}
	return cfg.Validate()
}

// core is the configuration of the core, without the key.
func (c *ContentConfig) core() content.Config {
	out := content.Config{Mode: c.Mode, MaxLength: c.MaxLength, Allow: c.Allow, Deny: c.Deny, HashIdentity: c.HashIdentity}
	for _, o := range c.Overrides {
		out.Overrides = append(out.Overrides, content.Override{Key: o.Key, Prefix: o.Prefix, Mode: o.Mode})
	}
	for _, s := range c.Services {
		out.Services = append(out.Services, content.Rule{Service: s.Service, Mode: s.Mode})
	}
	return out
}

// resolve is the configuration of the core with the key in it.
func (c *ContentConfig) resolve() (content.Config, error) {
	out := c.core()
	out.HashKey = []byte(c.HashKey)
	if c.HashKeyFile == "" {
		return out, nil
	}
	b, err := os.ReadFile(c.HashKeyFile)
	if err != nil {
		return out, fmt.Errorf("content::hash_key_file: cannot read the key: %w", err)
	}
	if out.HashKey = []byte(strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")); len(out.HashKey) == 0 {
		return out, fmt.Errorf("content::hash_key_file: %q is empty; put the key in it", c.HashKeyFile)
	}
	return out, nil
}

func createDefaultConfig() component.Config {
	c := &Config{
		Content:  ContentConfig{Mode: content.ModeStrip, MaxLength: content.DefaultMaxLength},
		Stages:   StagesConfig{Spans: true, FoldChunks: true},
		Sampling: defaultSampling(),
	}
	defaultBusiness(c)
	return c
}
