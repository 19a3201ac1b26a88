package llmspanprocessor

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/content"
)

func TestConfig(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	const noKey = "content: hash_key: needed for hashing; set it from the environment or a file, at least 16 random bytes, the same in every process whose hashes are to be equal"
	byKeyFile := createDefaultConfig().(*Config)
	byKeyFile.Content.Mode, byKeyFile.Content.HashKeyFile = content.ModeHash, "/run/secrets/llmspan"
	sections := map[string]struct {
		want *Config
		err  string
	}{
		"llmspan": {want: createDefaultConfig().(*Config)},
		"llmspan/all": {want: &Config{
			Content: ContentConfig{
				Mode: content.ModeTruncate, HashKey: "0123456789abcdef", MaxLength: 80,
				Overrides:    []OverrideConfig{{Key: "gen_ai.system_instructions", Mode: content.ModeStrip}, {Prefix: "gen_ai.tool.", Mode: content.ModeHash}},
				Allow:        []string{"app.release"},
				Deny:         []string{"customer.*"},
				Services:     []ServiceConfig{{Service: "eval", Mode: content.ModeKeep}},
				HashIdentity: true,
			},
			Normalize: NormalizeConfig{DropSource: true},
			Dimensions: []DimensionConfig{
				{Name: "team", From: []string{"header.x-team", "resource.team"}, Default: "nobody", MaxValues: 20},
				{Name: "tier", From: []string{"span.tier"}, Values: []string{"gold", "free"}},
			},
			SLO: []SLOConfig{{Model: "small*", TTFT: 500 * time.Millisecond}, {Model: "*", TTFT: 2 * time.Second, TPOT: 50 * time.Millisecond, E2E: time.Minute, UserTTFT: 3 * time.Second}},
			Prices: PricesConfig{Currency: "EUR", ReloadInterval: 10 * time.Second, Models: []PriceConfig{
				{Model: "small*", Input: ptr(.5), Output: ptr(1.5), CachedInput: ptr(.05), CacheWrite: ptr(.6), Reasoning: ptr(2.), Request: .0001, ValidFrom: time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)},
				{Model: "*", GPUHour: 2.5, GPUs: 8, TokensPerHour: 40_000_000},
			}},
			Quality: QualityConfig{Refusal: true}, OversizeTokens: 5000,
			Warmup: WarmupConfig{Requests: 10, Settle: time.Minute, ExcludeFromSLO: true},
			Sampling: SamplingConfig{
				Enabled: true, Apply: ApplyDrop, BaselineRatio: .01, DecisionDelay: time.Second, AnswerDelay: 20 * time.Second,
				IdleTimeout: 30 * time.Second, TraceTimeout: 10 * time.Minute, MaxBytes: 2 << 30, MaxTraceBytes: 512 << 10, MaxTraceSpans: 500,
				KeptCache: 10, DroppedCache: 20, ClientErrors: true,
				Quality: []string{"truncated"},
				Slow:    SlowConfig{TTFT: 2 * time.Second, TPOT: 50 * time.Millisecond, E2E: 10 * time.Second, Queue: time.Second},
				Models:  map[string]ModelConfig{"small": {BaselineRatio: ptr(.5), Slow: &SlowConfig{E2E: time.Second}}},
				Rules:   []RuleConfig{{Name: "vip", Attribute: "team", Values: []string{"search"}, Ratio: ptr(.5)}},
				Caps:    map[string]float64{"error": 50, "vip": 10},
			},
		}},
		"llmspan/key_file":              {want: byKeyFile}, // the file is read at start, and need not be where a configuration is checked
		"llmspan/unknown_key":           {err: "has invalid keys: contents"},
		"llmspan/unknown_nested_key":    {err: "'stages' has invalid keys: span"},
		"llmspan/wrong_mode":            {err: `content::mode: must be one of strip, hash, truncate, keep, got "remove"`},
		"llmspan/hash_without_key":      {err: noKey},
		"llmspan/identity_without_key":  {err: noKey},
		"llmspan/two_keys":              {err: "content: hash_key_file: set it or hash_key, not both"},
		"llmspan/negative_length":       {err: "content: max_length: must not be negative (0 means 256), got -1"},
		"llmspan/override_of_nothing":   {err: "content: overrides::0: needs either key or prefix"},
		"llmspan/override_without_mode": {err: `content: overrides::0::mode: must be one of strip, hash, truncate, keep, got ""`},
		"llmspan/service_without_name":  {err: "content: services::0::service: must be a service.name"},
		"llmspan/star_inside":           {err: `content: allow::0: '*' is allowed at the end only, got "gen_ai.*.id"`},
		"llmspan/wrong_type":            {err: "'stages.spans'"},

		"llmspan/slo_without_model":     {err: `slo::0: model: must be the name of a model, or a pattern such as "Qwen/*" or "*"`},
		"llmspan/slo_without_objective": {err: "slo::0: must have at least one of ttft, tpot, e2e, user_ttft"},
		"llmspan/slo_negative":          {err: "slo::0: tpot: must not be negative, got -1s; 0 leaves it out"},
		"llmspan/price_without_output":  {err: "prices: models::0::output: must be a price for a million tokens; write 0 for none"},
		"llmspan/price_too_fine":        {err: "prices: models::0::input: must be a price for a million tokens from 0 to 1000000 with at most 6 decimals, got 1e-07"},
		"llmspan/price_twice":           {err: `prices: models: model "a" is listed twice from the same day; give the later one a valid_from`},
		"llmspan/price_day":             {err: `'prices.models[0].valid_from' parsing time "1 July"`},
		"llmspan/price_currency":        {err: `prices: currency: must be a code of three to eight capital letters such as USD, got "$"`},
		"llmspan/price_two_sources":     {err: "prices: file: set it or models, not both"},
		"llmspan/price_interval":        {err: "prices: reload_interval: must be at least 1s, got 1ms"},
		"llmspan/price_gpu":             {err: "prices: models::0::tokens_per_hour: must be the number of tokens an hour that are expected until they are measured"},
		"llmspan/price_gpu_and_tokens":  {err: "prices: models::0::gpu_hour: takes the place of the other prices; leave them out"},
		"llmspan/dimension_request":     {err: `dimensions::0::name: "request_id" must not be a dimension: every request has a value of its own, so that each would be a time series; find single requests by their records or traces`},
		"llmspan/dimension_user":        {err: `dimensions::0::from::0: "user.id" must not be a dimension: it names a person or a secret, and has as many values as there are users; use a team, an application or a tier`},
		"llmspan/dimension_session":     {err: `dimensions::0::from::0: "x-session-id" must not be a dimension: every conversation has a value of its own, so that each would be a time series`},
		"llmspan/dimension_prompt":      {err: `dimensions::0::from::0: "gen_ai.prompt" must not be a dimension: it is text, which never leaves; label by something that you chose`},
		"llmspan/dimension_source":      {err: `dimensions::0::from::0: must be span., parent., resource., baggage. or header. and a key, such as span.team or header.x-team; got "team"`},
		"llmspan/dimension_reserved":    {err: `dimensions::0::name: "service.team" has a meaning already; choose another`},
		"llmspan/dimension_twice":       {err: `dimensions::1::name: "team" is there twice`},
		"llmspan/dimension_cap":         {err: "dimensions::0::max_values: must be from 1 to 10000, got -1"},
		"llmspan/oversize":              {err: "oversize_tokens: must not be negative, got -1; 0 marks none"},
		"llmspan/warmup":                {err: "warmup: requests: must be from 0 to 10000, got -1; 0 marks none"},

		"llmspan/sampling_apply":      {err: `sampling::apply: must be tag or drop, got "maybe"`},
		"llmspan/sampling_ratio":      {err: "sampling: baseline_ratio: must be from 0 to 1, got 5"},
		"llmspan/sampling_delay":      {err: "sampling: answer_delay: must not be shorter than decision_delay (30s), got 10s"},
		"llmspan/sampling_idle":       {err: "sampling: idle_timeout: must not be longer than trace_timeout (1s), got 1m0s"},
		"llmspan/sampling_bytes":      {err: `must be a number of bytes such as 1048576, 64KiB, 512MiB or 2GiB, got "512MB"`},
		"llmspan/sampling_no_bytes":   {err: "sampling: max_bytes: must be positive, got 0"},
		"llmspan/sampling_rule_name":  {err: `sampling: rules::0::name: must be a name of its own, not one of error, cancelled, slow, quality, oversize, baseline; got "slow"`},
		"llmspan/sampling_rule_empty": {err: "rules::0::values: must list at least one value"},
		"llmspan/sampling_cap":        {err: "sampling: caps::erorr: no such rule; there are error, cancelled, slow, quality, oversize, baseline"},
		"llmspan/sampling_slow":       {err: "sampling::slow: ttft: must not be negative, got -1s; 0 leaves it out"},
		"llmspan/sampling_model":      {err: "sampling: models::m::baseline_ratio: must be from 0 to 1, got 2"},
		"llmspan/sampling_typo":       {err: "'sampling' has invalid keys: baseline"},
	}
	assert.Len(t, conf.ToStringMap(), len(sections), "every section is a case")
	for name, tt := range sections {
		t.Run(name, func(t *testing.T) {
			sub, err := conf.Sub(name)
			require.NoError(t, err)
			cfg := createDefaultConfig()
			if err = sub.Unmarshal(&cfg); err == nil {
				err = confmap.Validate(cfg)
			}
			if tt.err != "" {
				assert.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, cfg)
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestHashKeyFile(t *testing.T) {
	dir := t.TempDir()
	file := func(name, key string) string {
		p := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(p, []byte(key), 0o600))
		return p
	}
	f := NewFactory()
	for name, tt := range map[string]struct{ file, err string }{
		"missing":          {filepath.Join(dir, "none"), "content::hash_key_file: cannot read the key: open "},
		"empty":            {file("empty", ""), `/empty" is empty; put the key in it`},
		"only a line end":  {file("newline", "\r\n"), `/newline" is empty; put the key in it`},
		"a key":            {file("key", "0123456789abcdef"), ""},
		"a key and a line": {file("line", "0123456789abcdef\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.Content.Mode, cfg.Content.HashKeyFile = content.ModeHash, tt.file
			require.NoError(t, confmap.Validate(cfg))
			p, err := f.CreateTraces(t.Context(), processortest.NewNopSettings(f.Type()), cfg, consumertest.NewNop())
			if tt.err != "" {
				assert.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.NoError(t, p.Shutdown(t.Context()))
		})
	}
}

// The line end of a file is no part of the key: hashes equal those of a process that has the key from its environment.
func TestHashKeyFileGivesTheSameKey(t *testing.T) {
	p := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(p, []byte("0123456789abcdef\r\n"), 0o600))
	fromFile := ContentConfig{HashKeyFile: p}
	got, err := fromFile.resolve()
	require.NoError(t, err)
	assert.Equal(t, "0123456789abcdef", string(got.HashKey))
}
