package sim

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConfigNamesWhatIsWrong(t *testing.T) {
	require.NoError(t, new(DefaultConfig()).Validate())
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Rate = -1 }, "rate: -1 calls per second is outside 0 to 100000"},
		{func(c *Config) { c.Rate = math.NaN() }, "rate: NaN calls per second is outside 0 to 100000"},
		{func(c *Config) { c.MaxInFlight = 0 }, "max_in_flight: 0 must be at least 1"},
		{func(c *Config) { c.Engines = nil }, "engines: at least one is needed"},
		{func(c *Config) { c.Engines[1].Name = c.Engines[0].Name }, `engines[1]: name "vllm-chat" is used twice`},
		{func(c *Config) { c.Engines[0].Blocks = 10 }, "engines[0]: num_gpu_blocks 10 × block_size 16 must hold max_model_len 8192 tokens"},
		{func(c *Config) { c.Engines[0].PrefillRate = 0 }, "engines[0]: prefill_rate 0 must be above 0"},
		{func(c *Config) { c.Engines[0].Prompt.Max = 1 }, "engines[0]: prompt_tokens: median 350 must be above 0, sigma 0.8 not negative, and 1 ≤ min 4 ≤ max 1"},
		{func(c *Config) { c.Teams[0].Models = []string{"nope"} }, `teams[0]: models names "nope", which no engine serves`},
		{func(c *Config) { c.Mix.Stream = 1.5 }, "mix.stream: 1.5 is outside 0 to 1"},
		{func(c *Config) { c.Mix.Choices, c.Mix.Beam = 0.9, 0.9 }, "mix: choices, prompts and beam add up to more than 1"},
		{func(c *Config) { c.Gateway.Conventions = "new" }, `gateway.http_conventions: "new" is not one of old, stable`},
		{func(c *Config) { c.Faults = []Fault{{Kind: "flood", For: time.Second}} }, `faults[0]: kind: "flood" is not one of [slow_prefill kv_pressure engine_crash gateway_5xx slow_frontend]`},
		{func(c *Config) { c.Faults = []Fault{{Kind: FaultEngineCrash, For: time.Second, Engine: "x"}} }, `faults[0]: engine: no engine is named "x"`},
		{func(c *Config) { c.Faults = []Fault{{Kind: FaultEngineCrash, For: time.Minute, Every: time.Second}} }, "faults[0]: at 0s must not be negative, for 1m0s above 0, every 1s 0 or longer than for"},
	} {
		c := DefaultConfig()
		tt.change(&c)
		assert.EqualError(t, c.Validate(), tt.want)
	}
}

func TestRepliesToCallsThatMakeNoSense(t *testing.T) {
	w, err := New(DefaultConfig(), start)
	require.NoError(t, err)
	good := plain("llama-3.1-8b", 10, 10)
	for _, tt := range []struct {
		change func(*Call)
		want   string
	}{
		{func(c *Call) { c.Model = "x" }, `no engine serves model "x"`},
		{func(c *Call) { c.Route = "/v1/embeddings" }, `route "/v1/embeddings" is not one of /v1/chat/completions, /v1/completions`},
		{func(c *Call) { c.Kind = "many" }, `kind "many" is not one of single, choices, prompts, beam`},
		{func(c *Call) { c.Outputs[0] = 11 }, "an output of 11 tokens is outside 1 to max_tokens 10"},
		{func(c *Call) { c.Prompts[0] = 8190 }, "a prompt of 8190 and max_tokens 10 do not fit max_model_len 8192"},
		{func(c *Call) { c.Kind = KindPrompts }, "a call with several prompts is to /v1/completions, with one output a prompt"},
		{func(c *Call) { c.Refuse = 200 }, "refuse 200 is outside 400 to 499"},
	} {
		c := good
		c.Prompts, c.Outputs = []int{10}, []int{10}
		tt.change(&c)
		_, err := w.Submit(c)
		assert.EqualError(t, err, tt.want)
	}
}
