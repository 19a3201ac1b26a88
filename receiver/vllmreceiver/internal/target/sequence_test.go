package target

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/engine"
)

func recorded(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../testdata/pages", name))
	require.NoError(t, err)
	return string(b)
}

func newTarget() *Target { return New(Options{Path: "/metrics", MaxSeries: 10_000, Expiry: time.Hour}) }

func served(body string) Answer { return Answer{Status: 200, Body: body} }

// reader sums what a reader of cumulative points counts: the rise of a series, all of it when the series begins anew.
type reader struct {
	last  map[string]float64
	start map[string]time.Time
	total map[string]float64 // by metric name
	t     testing.TB
}

func newReader(t testing.TB) *reader {
	return &reader{last: map[string]float64{}, start: map[string]time.Time{}, total: map[string]float64{}, t: t}
}

// read takes a report; before the first one there is nothing to compare with, so only rises after it count.
func (r *reader) read(rep Report, now time.Time) {
	for _, o := range rep.Outputs {
		if o.Metric.Kind == engine.Gauge || o.Gone {
			continue
		}
		key := o.Metric.Name + string(engine.AppendKey(nil, o.Attrs))
		value := o.Value
		if o.Hist != nil {
			value = float64(o.Hist.Count)
		}
		start, known := r.start[key]
		switch {
		case !known && !o.Start.Equal(now):
			r.total[o.Metric.Name] += value
		case known && o.Start.Equal(start):
			require.GreaterOrEqual(r.t, value, r.last[key], "%s fell without a new start: a negative rate", key)
			r.total[o.Metric.Name] += value - r.last[key]
		case known:
			require.True(r.t, o.Start.After(start), key)
			r.total[o.Metric.Name] += value
		}
		r.last[key], r.start[key] = value, o.Start
	}
}

func TestSequencesOfPages(t *testing.T) {
	type step struct {
		at   int64 // Unix seconds
		page string
	}
	tests := []struct {
		name  string
		steps []step
		// want is what a reader counts over the whole sequence.
		want  map[string]float64
		state State
	}{
		{"vLLM 0.20.2 from its start over an abort and a restart", []step{
			{1796045755, "vllm-0.20.2-start.prom"},
			{1796045780, "vllm-0.20.2-busy.prom"},
			{1796045850, "vllm-0.20.2-end.prom"},
			{1796045860, "vllm-0.20.2-afterabort.prom"},
			{1796045930, "vllm-0.20.2-restart.prom"},
		}, map[string]float64{
			// the last page before the restart, and the first after it
			"llm.engine.input_tokens": 4724 + 66, "llm.engine.output_tokens": 1399 + 62, "llm.engine.requests": 36 + 3,
			"llm.engine.requests.started": 37 + 3, "llm.engine.time_to_first_token": 37 + 3,
		}, StateOK},
		{"an upgrade from 0.10.2 to 0.32: the names of half the concepts change", []step{
			{1796040000, "vllm-0.10.2.post2-end.prom"},
			{1796043200, "vllm-0.32.0-start.prom"},
			{1796043400, "vllm-0.32.0-end.prom"},
		}, map[string]float64{
			"llm.engine.input_tokens": 18160, "llm.engine.output_tokens": 12082, "llm.engine.requests": 95,
			"llm.engine.prefix_cache.hits": 3840, "llm.engine.inter_token_latency": 11985,
		}, StateOK},
		{"data-parallel ranks, then a restart of both", []step{
			{1786900100, "synthetic_vllm_head_dp2_t0.prom"},
			{1786900200, "synthetic_vllm_head_dp2_t1.prom"},
			{1786900300, "synthetic_vllm_head_dp2_t2_restarted.prom"},
		}, map[string]float64{"llm.engine.output_tokens": 13396 + 8802 + 515 + 58}, StateOK},
		{"two API servers from before the first request", []step{
			{1796047000, "vllm-0.32.0-multi-start.prom"},
			{1796047010, "vllm-0.32.0-multi-busy.prom"},
			{1796047020, "vllm-0.32.0-multi-end.prom"},
		}, map[string]float64{"llm.engine.input_tokens": 1735, "llm.engine.output_tokens": 1200, "llm.engine.requests": 20, "llm.engine.time_to_first_token": 20}, StateOK},
		{"SGLang: request families appear with the first request and are gone after a restart", []step{
			{1796044700, "sglang-0.5.23-prestart.prom"},
			{1796044710, "sglang-0.5.23-start.prom"},
			{1796044740, "sglang-0.5.23-busy.prom"},
			{1796044770, "sglang-0.5.23-end.prom"},
			{1796044900, "sglang-0.5.23-restart.prom"},
		}, map[string]float64{"llm.engine.input_tokens": 957, "llm.engine.output_tokens": 1311, "llm.engine.requests": 21, "llm.engine.queue.duration": 21}, StateOK},
		{"llama.cpp, whose page has no start time, over a restart", []step{
			{1796044700, "llama.cpp-b11434-start.prom"},
			{1796044710, "llama.cpp-b11434-busy.prom"},
			{1796044720, "llama.cpp-b11434-end.prom"},
			{1796044730, "llama.cpp-b11434-restart.prom"},
		}, map[string]float64{"llm.engine.input_tokens": 879, "llm.engine.output_tokens": 11011}, StateOK},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target, r := newTarget(), newReader(t)
			var rep Report
			for i, s := range tt.steps {
				now := time.Unix(s.at, 0)
				if i == 0 && strings.HasPrefix(tt.name, "an upgrade") {
					// What the old engine had counted before the first scrape is not part of the sequence.
					rep = target.Observe(now, served(recorded(t, s.page)))
					r.read(rep, now)
					clear(r.total)
					continue
				}
				rep = target.Observe(now, served(recorded(t, s.page)))
				assert.Zero(t, rep.Dropped)
				r.read(rep, now)
			}
			assert.Equal(t, tt.state, rep.State)
			for name, want := range tt.want {
				assert.Equal(t, want, r.total[name], name)
			}
		})
	}
}

// TestAnOldV1BecomesHead is the upgrade from 0.8 on, of which only a fragment was recorded: blocks become tokens, and no rate is negative or doubled.
func TestAnOldV1BecomesHead(t *testing.T) {
	old := func(hits int) string {
		return fmt.Sprintf(`# HELP vllm:gpu_prefix_cache_hits_total GPU prefix cache hits, in terms of number of cached blocks.
vllm:num_requests_running{model_name="m"} 1
vllm:prompt_tokens_total{model_name="m"} %d
vllm:time_to_first_token_seconds_sum{model_name="m"} 1
vllm:time_to_first_token_seconds_count{model_name="m"} 1
vllm:gpu_prefix_cache_queries_total{model_name="m"} 1000
vllm:gpu_prefix_cache_hits_total{model_name="m"} %d
vllm:cache_config_info{block_size="16",num_gpu_blocks="10"} 1
process_start_time_seconds 1.7e9
`, 100*hits, hits)
	}
	head := func(hits int) string {
		return fmt.Sprintf(`vllm:num_requests_running{model_name="m",engine="0"} 1
vllm:prompt_tokens_total{model_name="m",engine="0"} %d
vllm:time_to_first_token_seconds_sum{model_name="m",engine="0"} 1
vllm:time_to_first_token_seconds_count{model_name="m",engine="0"} 1
vllm:prefix_cache_queries_total{model_name="m",engine="0"} 1000
vllm:prefix_cache_hits_total{model_name="m",engine="0"} %d
vllm:kv_cache_usage_perc{model_name="m",engine="0"} 0.5
process_start_time_seconds 1.700000500e9
`, 100*hits, hits)
	}
	target, r := newTarget(), newReader(t)
	versions := []string{}
	for i, page := range []string{old(10), old(20), head(5), head(9)} {
		now := time.Unix(1_700_000_490+10*int64(i), 0)
		rep := target.Observe(now, served(page))
		r.read(rep, now)
		versions = append(versions, rep.Version)
	}
	assert.Equal(t, 20*16+9.0, r.total["llm.engine.prefix_cache.hits"], "20 blocks of 16 tokens, then 9 tokens")
	assert.Equal(t, 2900.0, r.total["llm.engine.input_tokens"])
	assert.Equal(t, []string{">=0.8 <0.9.2", ">=0.8 <0.9.2", ">=0.9.2 <0.10.2", ">=0.9.2 <0.10.2"}, versions)
}

func TestAnOutageEndsSeriesAndDoesNotRestartThem(t *testing.T) {
	target, r := newTarget(), newReader(t)
	now := func(i int64) time.Time { return time.Unix(1796044700+10*i, 0) }
	rep := target.Observe(now(0), served(recorded(t, "llama.cpp-b11434-busy.prom")))
	r.read(rep, now(0))
	live := len(rep.Outputs)

	rep = target.Observe(now(1), Answer{Failure: "timeout"})
	assert.Equal(t, StateUnreachable, rep.State)
	gone := 0
	for _, o := range rep.Outputs {
		if o.Gone {
			gone++
		}
	}
	assert.Equal(t, live-1, gone, "all but scrape.duration, the state's series too")

	rep = target.Observe(now(2), Answer{Failure: "timeout"})
	assert.Len(t, rep.Outputs, 2, "up and scrape.duration, nothing repeated")

	rep = target.Observe(now(3), served(recorded(t, "llama.cpp-b11434-end.prom")))
	r.read(rep, now(3))
	assert.Equal(t, StateOK, rep.State)
	assert.Equal(t, 11011.0-tokensOf(t, "llama.cpp-b11434-busy.prom"), r.total["llm.engine.output_tokens"])
}

func tokensOf(t *testing.T, page string) (v float64) {
	for line := range strings.SplitSeq(recorded(t, page), "\n") {
		if rest, ok := strings.CutPrefix(line, "llamacpp:tokens_predicted_total "); ok {
			_, err := fmt.Sscan(rest, &v)
			require.NoError(t, err)
		}
	}
	return v
}

// TestACutPageAnywhere cuts a recorded page at every line: what is left is right, what is lost is not marked as ended.
func TestACutPageAnywhere(t *testing.T) {
	text := recorded(t, "vllm-0.20.2-end.prom")
	now := time.Unix(1796045850, 0)
	whole := map[string]float64{}
	for _, o := range newTarget().Observe(now, served(text)).Outputs {
		whole[outputKey(o.Metric, o.Attrs)] = valueOf(o.Value, o.Hist)
	}
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i += 7 {
		cut := strings.Join(lines[:i], "") + lines[i][:len(lines[i])/2]
		target := newTarget()
		target.Observe(now, served(text))
		rep := target.Observe(now.Add(10*time.Second), served(cut))
		for _, o := range rep.Outputs {
			if strings.HasPrefix(o.Metric.Name, "llm.engine.scrape.") || o.Metric == engine.Up {
				continue
			}
			require.False(t, o.Gone, "cut at line %d: %s", i, o.Metric.Name)
			want, ok := whole[outputKey(o.Metric, o.Attrs)]
			require.True(t, ok, "cut at line %d: %s", i, o.Metric.Name)
			require.Equal(t, want, valueOf(o.Value, o.Hist), "cut at line %d: %s", i, o.Metric.Name)
		}
	}
}

func outputKey(m *engine.Metric, attrs []engine.Attr) string {
	return m.Name + string(engine.AppendKey(nil, attrs))
}

func valueOf(v float64, h *engine.Hist) float64 {
	if h != nil {
		return float64(h.Count)*1e6 + h.Sum
	}
	return v
}
