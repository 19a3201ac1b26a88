package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Config describes an installation. Instants are offsets from the start of the world. Rates are per second, shares 0 to 1.
type Config struct {
	// Seed makes the run repeatable; equal seeds give equal runs.
	Seed uint64 `mapstructure:"seed"`
	// Rate of Poisson arrivals, calls per second over all teams. 0: only Replay and Submit bring calls.
	Rate float64 `mapstructure:"rate"`
	// MaxInFlight bounds the calls that exist at one time; the gateway (or the engine) answers 503 above it.
	MaxInFlight int      `mapstructure:"max_in_flight"`
	Engines     []Engine `mapstructure:"engines"`
	Teams       []Team   `mapstructure:"teams"`
	Mix         Mix      `mapstructure:"mix"`
	Gateway     Gateway  `mapstructure:"gateway"`
	Client      Client   `mapstructure:"client"`
	Faults      []Fault  `mapstructure:"faults"`
	// Replay is added to the Poisson arrivals, in order of At.
	Replay []Arrival `mapstructure:"-"`
}

// Engine is one vLLM process: one model on one GPU.
type Engine struct {
	// Name is its service.name; Model the served model name. Both unique.
	Name  string `mapstructure:"name"`
	Model string `mapstructure:"model"`
	// Weight is its share of the Poisson calls, relative to the other engines.
	Weight float64 `mapstructure:"weight"`

	MaxNumSeqs       int `mapstructure:"max_num_seqs"`
	MaxBatchedTokens int `mapstructure:"max_num_batched_tokens"`
	MaxModelLen      int `mapstructure:"max_model_len"`
	// MaxQueued refuses calls with 503 when so many sequences wait; 0 is without limit, as in vLLM.
	MaxQueued int `mapstructure:"max_num_queued_reqs"`
	BlockSize int `mapstructure:"block_size"`
	Blocks    int `mapstructure:"num_gpu_blocks"`

	// PrefillRate is in prompt tokens per second. A step takes StepBase + StepPerSequence × decoding sequences +
	// prefill tokens ÷ PrefillRate, then × (1 ± StepJitter).
	PrefillRate     float64       `mapstructure:"prefill_rate"`
	StepBase        time.Duration `mapstructure:"step_base"`
	StepPerSequence time.Duration `mapstructure:"step_per_sequence"`
	StepJitter      float64       `mapstructure:"step_jitter"`
	// Startup is how long the engine takes from start (or restart after a crash) until it listens. At the start of the
	// world it has been started Startup earlier.
	Startup time.Duration `mapstructure:"startup"`

	Prompt Lengths `mapstructure:"prompt_tokens"`
	Output Lengths `mapstructure:"output_tokens"`
	GPU    GPUSpec `mapstructure:"gpu"`
}

// Lengths is a log-normal distribution of token counts, cut to Min..Max. Sigma 0 gives Median always.
type Lengths struct {
	Median float64 `mapstructure:"median"`
	Sigma  float64 `mapstructure:"sigma"`
	Min    int     `mapstructure:"min"`
	Max    int     `mapstructure:"max"`
}

// Team is a group of users; its name travels in the x-team header.
type Team struct {
	Name   string  `mapstructure:"name"`
	Weight float64 `mapstructure:"weight"`
	// Models it calls; empty: all.
	Models []string `mapstructure:"models"`
	// SharedPrefix is how many tokens at the start of its prompts are always the same (its system prompt).
	SharedPrefix int `mapstructure:"shared_prefix_tokens"`
}

// Mix says what the Poisson calls are like. Choices, Prompts, Beam and the rest (plain calls) exclude each other.
type Mix struct {
	Stream  float64 `mapstructure:"stream"`
	Choices float64 `mapstructure:"choices"` // n = 2..4
	Prompts float64 `mapstructure:"prompts"` // 2..4 prompts in a /v1/completions call
	Beam    float64 `mapstructure:"beam"`    // 2 or 3 beams, 2 to 16 steps
	Abort   float64 `mapstructure:"abort"`   // of the streams with one sequence
	Refused float64 `mapstructure:"refused"` // 400 and 404
	Greedy  float64 `mapstructure:"greedy"`  // temperature 0
	Stop    float64 `mapstructure:"stop"`    // ends by stop, else by length
}

// Gateway stands in front of the engines, like a FastAPI application with OpenTelemetry on that calls them with httpx.
type Gateway struct {
	Enabled bool   `mapstructure:"enabled"`
	Name    string `mapstructure:"name"`
	// Conventions of its HTTP attributes.
	Conventions Conventions `mapstructure:"http_conventions"`
	// ModelAttribute adds gen_ai.operation.name and gen_ai.request.model to the SERVER span (FastAPI alone does not).
	ModelAttribute bool `mapstructure:"model_attribute"`
	// Chunks is the share of calls with one "http send" span for each message sent.
	Chunks float64 `mapstructure:"chunk_spans"`
	// Ingress is the median time from its start to the engine's arrival.
	Ingress time.Duration `mapstructure:"ingress"`
}

// Conventions is the version of the HTTP attribute names.
type Conventions string

// The two sets of HTTP attribute names in use.
const (
	ConventionsOld    Conventions = "old"    // http.method, http.status_code, http.target: what the instrumentation emits unasked
	ConventionsStable Conventions = "stable" // http.request.method, http.response.status_code, url.path
)

// Client is an application with the GenAI instrumentation of the OpenAI SDK.
type Client struct {
	// Share of the calls that come from such an application; the others have no span in front of the gateway.
	Share float64 `mapstructure:"share"`
	Name  string  `mapstructure:"name"`
}

// FaultKind names a scenario.
type FaultKind string

// Scenarios.
const (
	FaultSlowPrefill  FaultKind = "slow_prefill"  // PrefillRate ÷ Factor
	FaultKVPressure   FaultKind = "kv_pressure"   // Factor (0..1) of the KV blocks are taken
	FaultEngineCrash  FaultKind = "engine_crash"  // the engine dies, and starts again when the fault ends
	FaultGateway5xx   FaultKind = "gateway_5xx"   // the gateway answers 503 to Factor (0..1) of the calls
	FaultSlowFrontEnd FaultKind = "slow_frontend" // calls wait Factor seconds before the engine's arrival, and again on the way back
)

var faultKinds = []FaultKind{FaultSlowPrefill, FaultKVPressure, FaultEngineCrash, FaultGateway5xx, FaultSlowFrontEnd}

// Fault is a scenario: it begins at At, lasts For, and comes back every Every when that is not 0.
type Fault struct {
	Kind   FaultKind     `mapstructure:"kind"`
	At     time.Duration `mapstructure:"at"`
	For    time.Duration `mapstructure:"for"`
	Every  time.Duration `mapstructure:"every"`
	Engine string        `mapstructure:"engine"` // name; empty: all
	Factor float64       `mapstructure:"factor"`
}

// GPUSpec is the board under an engine.
type GPUSpec struct {
	UUID        string  `mapstructure:"uuid"`
	Model       string  `mapstructure:"model"`
	MemoryBytes int64   `mapstructure:"memory_bytes"`
	PowerLimit  float64 `mapstructure:"power_limit_watts"`
	MaxClock    float64 `mapstructure:"max_sm_clock_hertz"`
	MemoryClock float64 `mapstructure:"memory_clock_hertz"`
}

// DefaultEngine returns an engine of the size of an 8B model on one H100.
func DefaultEngine(name, model string) Engine {
	return Engine{
		Name: name, Model: model, Weight: 1,
		MaxNumSeqs: 256, MaxBatchedTokens: 8192, MaxModelLen: 8192, BlockSize: 16, Blocks: 24576,
		PrefillRate: 60000, StepBase: 7 * time.Millisecond, StepPerSequence: 30 * time.Microsecond, StepJitter: 0.05,
		Startup: 45 * time.Second,
		Prompt:  Lengths{Median: 350, Sigma: 0.8, Min: 4, Max: 6000},
		Output:  Lengths{Median: 60, Sigma: 0.7, Min: 1, Max: 1500},
		GPU: GPUSpec{
			Model: "NVIDIA H100 80GB HBM3", MemoryBytes: 80 << 30, PowerLimit: 700, MaxClock: 1980e6, MemoryClock: 2619e6,
		},
	}
}

// DefaultConfig is two models, three teams and a gateway at 10 calls per second, without faults.
func DefaultConfig() Config {
	small := DefaultEngine("vllm-chat", "llama-3.1-8b")
	small.Weight = 3
	large := DefaultEngine("vllm-reason", "qwen3-32b")
	large.PrefillRate, large.StepBase, large.MaxNumSeqs = 15000, 18*time.Millisecond, 128
	large.Output = Lengths{Median: 150, Sigma: 0.8, Min: 1, Max: 3000}
	return Config{
		Seed: 1, Rate: 10, MaxInFlight: 10000,
		Engines: []Engine{small, large},
		Teams: []Team{
			{Name: "search", Weight: 5, SharedPrefix: 256},
			{Name: "assistant", Weight: 3, SharedPrefix: 512},
			{Name: "batch", Weight: 2},
		},
		Mix: Mix{Stream: 0.6, Choices: 0.04, Prompts: 0.03, Beam: 0.01, Abort: 0.03, Refused: 0.02, Greedy: 0.2, Stop: 0.7},
		Gateway: Gateway{
			Enabled: true, Name: "llm-gateway", Conventions: ConventionsOld, ModelAttribute: true, Chunks: 0.1,
			Ingress: 3 * time.Millisecond,
		},
		Client: Client{Share: 0.3, Name: "app"},
	}
}

// Validate reports every fault of the configuration, naming the key and what is allowed.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !finite(c.Rate) || c.Rate < 0 || c.Rate > 100000 {
		bad("rate: %v calls per second is outside 0 to 100000", c.Rate)
	}
	if c.MaxInFlight < 1 {
		bad("max_in_flight: %d must be at least 1", c.MaxInFlight)
	}
	if len(c.Engines) == 0 {
		bad("engines: at least one is needed")
	}
	names, models := map[string]bool{}, map[string]bool{}
	for i := range c.Engines {
		e := &c.Engines[i]
		if err := e.validate(); err != nil {
			bad("engines[%d]: %w", i, err)
		}
		if names[e.Name] {
			bad("engines[%d]: name %q is used twice", i, e.Name)
		}
		if models[e.Model] {
			bad("engines[%d]: model %q is used twice", i, e.Model)
		}
		names[e.Name], models[e.Model] = true, true
	}
	if len(c.Teams) == 0 {
		bad("teams: at least one is needed")
	}
	for i, t := range c.Teams {
		if t.Name == "" {
			bad("teams[%d]: name must not be empty", i)
		}
		if !positive(t.Weight) {
			bad("teams[%d]: weight %v must be above 0", i, t.Weight)
		}
		if t.SharedPrefix < 0 {
			bad("teams[%d]: shared_prefix_tokens %d must not be negative", i, t.SharedPrefix)
		}
		for _, m := range t.Models {
			if !models[m] {
				bad("teams[%d]: models names %q, which no engine serves", i, m)
			}
		}
	}
	for _, s := range []struct {
		key string
		v   float64
	}{
		{"mix.stream", c.Mix.Stream},
		{"mix.choices", c.Mix.Choices},
		{"mix.prompts", c.Mix.Prompts},
		{"mix.beam", c.Mix.Beam},
		{"mix.abort", c.Mix.Abort},
		{"mix.refused", c.Mix.Refused},
		{"mix.greedy", c.Mix.Greedy},
		{"mix.stop", c.Mix.Stop},
		{"gateway.chunk_spans", c.Gateway.Chunks},
		{"client.share", c.Client.Share},
	} {
		if !share(s.v) {
			bad("%s: %v is outside 0 to 1", s.key, s.v)
		}
	}
	if c.Mix.Choices+c.Mix.Prompts+c.Mix.Beam > 1 {
		bad("mix: choices, prompts and beam add up to more than 1")
	}
	if c.Gateway.Enabled && c.Gateway.Name == "" {
		bad("gateway.name: must not be empty")
	}
	if c.Gateway.Ingress < 0 {
		bad("gateway.ingress: %v must not be negative", c.Gateway.Ingress)
	}
	if v := c.Gateway.Conventions; v != ConventionsOld && v != ConventionsStable {
		bad("gateway.http_conventions: %q is not one of old, stable", v)
	}
	if c.Client.Share > 0 && c.Client.Name == "" {
		bad("client.name: must not be empty")
	}
	for i, f := range c.Faults {
		if err := f.validate(names); err != nil {
			bad("faults[%d]: %w", i, err)
		}
	}
	return errors.Join(errs...)
}

func (e *Engine) validate() error {
	switch {
	case e.Name == "" || strings.Contains(e.Name, "/"):
		return errors.New("name must not be empty or contain a slash")
	case e.Model == "":
		return errors.New("model must not be empty")
	case !finite(e.Weight) || e.Weight < 0:
		return fmt.Errorf("weight %v must not be negative", e.Weight)
	case e.MaxNumSeqs < 1 || e.MaxBatchedTokens < 1 || e.MaxModelLen < 2 || e.BlockSize < 1:
		return errors.New("max_num_seqs, max_num_batched_tokens and block_size must be at least 1, max_model_len at least 2")
	case e.MaxNumSeqs > e.MaxBatchedTokens:
		return fmt.Errorf("max_num_batched_tokens %d must be at least max_num_seqs %d", e.MaxBatchedTokens, e.MaxNumSeqs)
	case e.Blocks*e.BlockSize < e.MaxModelLen:
		return fmt.Errorf("num_gpu_blocks %d × block_size %d must hold max_model_len %d tokens", e.Blocks, e.BlockSize, e.MaxModelLen)
	case e.MaxQueued < 0:
		return fmt.Errorf("max_num_queued_reqs %d must not be negative", e.MaxQueued)
	case !positive(e.PrefillRate):
		return fmt.Errorf("prefill_rate %v must be above 0", e.PrefillRate)
	case e.StepBase <= 0 || e.StepPerSequence < 0 || e.Startup < 0:
		return errors.New("step_base must be above 0, step_per_sequence and startup must not be negative")
	case !finite(e.StepJitter) || e.StepJitter < 0 || e.StepJitter > 0.5:
		return fmt.Errorf("step_jitter %v is outside 0 to 0.5", e.StepJitter)
	case e.GPU.MemoryBytes < 0 || e.GPU.PowerLimit < 0 || e.GPU.MaxClock < 0 || e.GPU.MemoryClock < 0:
		return errors.New("gpu: figures must not be negative")
	}
	if err := e.Prompt.validate(); err != nil {
		return fmt.Errorf("prompt_tokens: %w", err)
	}
	if err := e.Output.validate(); err != nil {
		return fmt.Errorf("output_tokens: %w", err)
	}
	if e.Prompt.Min+e.Output.Min > e.MaxModelLen {
		return fmt.Errorf("prompt_tokens.min + output_tokens.min must fit max_model_len %d", e.MaxModelLen)
	}
	return nil
}

func (l Lengths) validate() error {
	if !positive(l.Median) || !finite(l.Sigma) || l.Sigma < 0 || l.Min < 1 || l.Max < l.Min {
		return fmt.Errorf("median %v must be above 0, sigma %v not negative, and 1 ≤ min %d ≤ max %d", l.Median, l.Sigma, l.Min, l.Max)
	}
	return nil
}

func (f Fault) validate(engines map[string]bool) error {
	if !slices.Contains(faultKinds, f.Kind) {
		return fmt.Errorf("kind: %q is not one of %v", f.Kind, faultKinds)
	}
	if f.At < 0 || f.For <= 0 || f.Every < 0 || f.Every > 0 && f.Every <= f.For {
		return fmt.Errorf("at %v must not be negative, for %v above 0, every %v 0 or longer than for", f.At, f.For, f.Every)
	}
	if f.Engine != "" && !engines[f.Engine] {
		return fmt.Errorf("engine: no engine is named %q", f.Engine)
	}
	switch f.Kind {
	case FaultSlowPrefill:
		if !finite(f.Factor) || f.Factor < 1 {
			return fmt.Errorf("factor: %v must be at least 1", f.Factor)
		}
	case FaultKVPressure, FaultGateway5xx:
		if !share(f.Factor) || f.Factor == 0 {
			return fmt.Errorf("factor: %v is outside 0 to 1", f.Factor)
		}
	case FaultSlowFrontEnd:
		if !positive(f.Factor) || f.Factor > 600 {
			return fmt.Errorf("factor: %v seconds is outside 0 to 600", f.Factor)
		}
	}
	return nil
}

func finite(v float64) bool   { return !math.IsNaN(v) && !math.IsInf(v, 0) }
func positive(v float64) bool { return finite(v) && v > 0 }
func share(v float64) bool    { return finite(v) && v >= 0 && v <= 1 }
