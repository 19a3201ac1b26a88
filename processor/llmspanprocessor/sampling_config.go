package llmspanprocessor

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/assemble"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/sampling"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/split"
)

// SamplingConfig says how traces are assembled and which are kept.
type SamplingConfig struct {
	// Enabled assembles whole traces and decides on them. Default false: the processor holds nothing.
	Enabled bool `mapstructure:"enabled"`

	// Apply is tag (pass every trace on, marked, to the llmspan connector, which measures all and forwards the kept) or drop (for use
	// without the connector). Default tag.
	Apply ApplyMode `mapstructure:"apply"`

	// BaselineRatio is the share of normal traffic that is kept, from 0 to 1. Default 0.05.
	BaselineRatio float64 `mapstructure:"baseline_ratio"`

	// DecisionDelay is the wait after a trace's root span. Default 2s.
	DecisionDelay time.Duration `mapstructure:"decision_delay"`

	// AnswerDelay is the wait after the root of a trace in which the span of the engine is missing although the requests of its service
	// reach one; then the request is taken for cancelled. Default 10s: engines export every 5s.
	AnswerDelay time.Duration `mapstructure:"answer_delay"`

	// IdleTimeout is the wait for a trace without a root to which nothing comes. Default 60s.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`

	// TraceTimeout is the most that a trace waits. Default 30m.
	TraceTimeout time.Duration `mapstructure:"trace_timeout"`

	// MaxBytes bounds what is held; beyond it the oldest traces are decided on early. Default 512MiB.
	MaxBytes ByteSize `mapstructure:"max_bytes"`

	// MaxTraceBytes and MaxTraceSpans bound one trace, so that an endless one does not starve the rest. Default 4MiB and 20000.
	MaxTraceBytes ByteSize `mapstructure:"max_trace_bytes"`
	MaxTraceSpans int      `mapstructure:"max_trace_spans"`

	// KeptCache and DroppedCache are how many decisions are remembered for spans that come late. Default 50000 and 500000.
	KeptCache    int `mapstructure:"kept_cache"`
	DroppedCache int `mapstructure:"dropped_cache"`

	// ClientErrors makes refused requests (HTTP 4xx) errors. Default false.
	ClientErrors bool `mapstructure:"client_errors"`

	// Slow are the durations from which a request is slow and kept; 0 leaves one out. Default ttft 5s, tpot 200ms, e2e 60s, queue 5s.
	Slow SlowConfig `mapstructure:"slow"`

	// Quality are the issues of answers for which a trace is kept, after slow. Default all but truncated, which is what max_tokens is for.
	Quality []string `mapstructure:"quality"`

	// Models override ratio and durations by the name of a model.
	Models map[string]ModelConfig `mapstructure:"models"`

	// Rules keep the traces in which an attribute has one of some values; the first match wins, after error, cancelled, slow, quality and oversize.
	Rules []RuleConfig `mapstructure:"rules"`

	// Caps bound the kept traces a second by rule (error, cancelled, slow, quality, oversize, baseline, or the name of one of rules). Beyond its cap a rule
	// keeps a share, with the weight that says so. Default none.
	Caps map[string]float64 `mapstructure:"caps"`
}

// SlowConfig are the durations from which a request is slow.
type SlowConfig struct {
	TTFT  time.Duration `mapstructure:"ttft"`
	TPOT  time.Duration `mapstructure:"tpot"`
	E2E   time.Duration `mapstructure:"e2e"`
	Queue time.Duration `mapstructure:"queue"`
}

// ModelConfig overrides what holds for one model.
type ModelConfig struct {
	// BaselineRatio replaces the general ratio. Default: the general one.
	BaselineRatio *float64 `mapstructure:"baseline_ratio"`
	// Slow replaces the general durations as a whole. Default: the general ones.
	Slow *SlowConfig `mapstructure:"slow"`
}

// RuleConfig keeps the traces in which an attribute has one of some values.
type RuleConfig struct {
	Name      string   `mapstructure:"name"`
	Attribute string   `mapstructure:"attribute"`
	Values    []string `mapstructure:"values"`
	// Ratio is the share that is kept. Default 1.
	Ratio *float64 `mapstructure:"ratio"`
}

// ApplyMode says what is done with a decision.
type ApplyMode string

// The modes.
const (
	ApplyTag  ApplyMode = "tag"
	ApplyDrop ApplyMode = "drop"
)

// Validate implements xconfmap.Validator.
func (m ApplyMode) Validate() error {
	if m == ApplyTag || m == ApplyDrop {
		return nil
	}
	return fmt.Errorf("must be tag or drop, got %q", string(m))
}

// ByteSize is a number of bytes, written as a number or with KiB, MiB or GiB.
type ByteSize int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *ByteSize) UnmarshalText(text []byte) error {
	s, factor := strings.TrimSpace(string(text)), int64(1)
	for unit, f := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if n, ok := strings.CutSuffix(s, unit); ok {
			s, factor = strings.TrimSpace(n), f
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/factor {
		return fmt.Errorf("must be a number of bytes such as 1048576, 64KiB, 512MiB or 2GiB, got %q", string(text))
	}
	*b = ByteSize(n * factor)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (b ByteSize) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

func (b ByteSize) String() string {
	for _, u := range [...]struct {
		name string
		size ByteSize
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if b >= u.size && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// Validate implements xconfmap.Validator.
func (c *SamplingConfig) Validate() error {
	var errs []error
	positive := func(key string, ok bool, got any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: must be positive, got %v", key, got))
		}
	}
	ratio := func(key string, v float64) {
		if !(v >= 0 && v <= 1) {
			errs = append(errs, fmt.Errorf("%s: must be from 0 to 1, got %v", key, v))
		}
	}
	ratio("baseline_ratio", c.BaselineRatio)
	positive("decision_delay", c.DecisionDelay > 0, c.DecisionDelay)
	if c.AnswerDelay < c.DecisionDelay {
		errs = append(errs, fmt.Errorf("answer_delay: must not be shorter than decision_delay (%s), got %s", c.DecisionDelay, c.AnswerDelay))
	}
	positive("idle_timeout", c.IdleTimeout > 0, c.IdleTimeout)
	positive("trace_timeout", c.TraceTimeout > 0, c.TraceTimeout)
	positive("max_bytes", c.MaxBytes > 0, c.MaxBytes)
	positive("max_trace_bytes", c.MaxTraceBytes > 0, c.MaxTraceBytes)
	positive("max_trace_spans", c.MaxTraceSpans > 0, c.MaxTraceSpans)
	positive("kept_cache", c.KeptCache > 0, c.KeptCache)
	positive("dropped_cache", c.DroppedCache > 0, c.DroppedCache)
	if c.TraceTimeout > 0 && c.IdleTimeout > c.TraceTimeout {
		errs = append(errs, fmt.Errorf("idle_timeout: must not be longer than trace_timeout (%s), got %s", c.TraceTimeout, c.IdleTimeout))
	}
	for i, q := range c.Quality {
		if request.Flag(q, request.Issues) == 0 {
			errs = append(errs, fmt.Errorf("quality::%d: must be one of %s, got %q", i, strings.Join(request.Issues, ", "), q))
		}
	}
	for name, m := range c.Models {
		if m.BaselineRatio != nil {
			ratio("models::"+name+"::baseline_ratio", *m.BaselineRatio)
		}
	}
	names := []string{sampling.RuleError, sampling.RuleCancelled, sampling.RuleSlow, sampling.RuleQuality, sampling.RuleOversize, sampling.RuleBaseline}
	if len(c.Rules) > split.MaxMatches {
		errs = append(errs, fmt.Errorf("rules: at most %d, got %d", split.MaxMatches, len(c.Rules)))
	}
	for i, r := range c.Rules {
		key := fmt.Sprintf("rules::%d", i)
		if r.Name == "" || slices.Contains(names, r.Name) {
			errs = append(errs, fmt.Errorf("%s::name: must be a name of its own, not one of %s; got %q", key, strings.Join(names, ", "), r.Name))
		}
		names = append(names, r.Name)
		if r.Attribute == "" {
			errs = append(errs, fmt.Errorf("%s::attribute: must be the key of a span or resource attribute", key))
		}
		if len(r.Values) == 0 {
			errs = append(errs, fmt.Errorf("%s::values: must list at least one value", key))
		}
		if r.Ratio != nil {
			ratio(key+"::ratio", *r.Ratio)
		}
	}
	for rule, rate := range c.Caps {
		if !slices.Contains(names, rule) {
			errs = append(errs, fmt.Errorf("caps::%s: no such rule; there are %s", rule, strings.Join(names, ", ")))
		}
		positive("caps::"+rule, rate > 0, rate)
	}
	return errors.Join(errs...)
}

// Validate implements xconfmap.Validator.
func (c *SlowConfig) Validate() error {
	var errs []error
	for key, d := range map[string]time.Duration{"ttft": c.TTFT, "tpot": c.TPOT, "e2e": c.E2E, "queue": c.Queue} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative, got %s; 0 leaves it out", key, d))
		}
	}
	return errors.Join(errs...)
}

func (c *SlowConfig) core() sampling.Slow {
	return sampling.Slow{TTFT: c.TTFT.Seconds(), TPOT: c.TPOT.Seconds(), E2E: c.E2E.Seconds(), Queue: c.Queue.Seconds()}
}

// sampler is the configuration of the core's sampler; shards is the number of samplers that share the caps.
func (c *SamplingConfig) sampler(shards int) sampling.Config {
	out := sampling.Config{Baseline: c.BaselineRatio, Slow: c.Slow.core(), Models: map[string]sampling.Model{}, Caps: map[string]float64{}}
	for name, m := range c.Models {
		o := sampling.Model{Share: -1}
		if m.BaselineRatio != nil {
			o.Share = *m.BaselineRatio
		}
		if m.Slow != nil {
			s := m.Slow.core()
			o.Slow = &s
		}
		out.Models[name] = o
	}
	for _, r := range c.Rules {
		share := 1.0
		if r.Ratio != nil {
			share = *r.Ratio
		}
		out.Rules = append(out.Rules, sampling.Rule{Name: r.Name, Share: share})
	}
	for _, q := range c.Quality {
		out.Quality |= request.Flag(q, request.Issues)
	}
	for rule, rate := range c.Caps {
		out.Caps[rule] = rate / float64(shards)
	}
	return out
}

func (c *SamplingConfig) matches() []split.Match {
	var out []split.Match
	for _, r := range c.Rules {
		m := split.Match{Key: r.Attribute, Values: map[string]struct{}{}}
		for _, v := range r.Values {
			m.Values[v] = struct{}{}
		}
		out = append(out, m)
	}
	return out
}

// buffer is the configuration of one of so many shards.
func (c *SamplingConfig) buffer(shards int, keys *assemble.Keys) assemble.Config {
	return assemble.Config{
		Keys:          keys,
		DecisionDelay: c.DecisionDelay, AnswerDelay: c.AnswerDelay, IdleTimeout: c.IdleTimeout, TraceTimeout: c.TraceTimeout,
		MaxBytes: int(c.MaxBytes) / shards, MaxTraceBytes: int(c.MaxTraceBytes), MaxTraceSpans: c.MaxTraceSpans,
	}
}

func defaultSampling() SamplingConfig {
	return SamplingConfig{
		Apply: ApplyTag, BaselineRatio: 0.05, DecisionDelay: 2 * time.Second, AnswerDelay: 10 * time.Second, IdleTimeout: time.Minute, TraceTimeout: 30 * time.Minute,
		MaxBytes: 512 << 20, MaxTraceBytes: 4 << 20, MaxTraceSpans: 20_000, KeptCache: 50_000, DroppedCache: 500_000,
		Quality: []string{"empty", "repetition", "malformed_json", "refusal", "garbled"},
		Slow:    SlowConfig{TTFT: 5 * time.Second, TPOT: 200 * time.Millisecond, E2E: time.Minute, Queue: 5 * time.Second},
	}
}
