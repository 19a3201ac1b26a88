package target

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/engine"
)

func TestStates(t *testing.T) {
	vllm := recorded(t, "vllm-0.32.0-end.prom")
	tests := []struct {
		name   string
		answer Answer
		pin    string
		state  State
		reason string // part of the event's text
		up     float64
	}{
		{"an engine", served(vllm), "", StateOK, "found vLLM >=0.32", 1},
		{"no answer in time", Answer{Failure: "timeout"}, "", StateUnreachable, "timeout", 0},
		{"nobody listens", Answer{Failure: "refused"}, "", StateUnreachable, "refused", 0},
		{"loading, come later", Answer{Status: 503}, "", StateUnreachable, "http_503", 0},
		{"not allowed", Answer{Status: 401}, "", StateUnreachable, "http_401", 0},
		{"no such page", Answer{Status: 404}, "", StateNotFound, "http_404", 0},
		{"llama.cpp without --metrics", Answer{Status: 501}, "", StateNotFound, "http_501", 0},
		{"a web page", served("<html><body>hello</body></html>\n"), "", StateNotEngine, "no metrics page", 0},
		{"TensorRT-LLM's JSON", served("[{\"iter\": 1}]\n"), "", StateNotEngine, "no metrics page", 0},
		{"a router", served(recorded(t, "vllm-router-0.1.17-end.prom")), "", StateNotEngine, "a page of vllm-router", 0},
		{"a Go program", served("go_goroutines 5\n"), "", StateNotEngine, "--disable-log-stats", 0},
		{"an empty page", served(""), "", StateIncomplete, "empty", 1},
		{"half a page", served("vllm:num_requests_running 1\n"), "", StateIncomplete, "missing vllm:prompt_tokens_total", 1},
		{"a cut page", Answer{Status: 200, Body: vllm[:len(vllm)/20], Cut: true}, "vllm", StateIncomplete, "cut", 1},
		{"statistics off, and the engine is pinned", served("python_info 1\n"), "vllm", StateIncomplete, "missing", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rep := New(Options{Pin: tt.pin, Path: "/metrics", MaxSeries: 1000}).Observe(time.Unix(1796043400, 0), tt.answer)
			assert.Equal(t, tt.state, rep.State)
			require.NotEmpty(t, rep.Events)
			assert.Equal(t, EventState, rep.Events[0].Name)
			assert.Contains(t, rep.Events[0].Text, tt.reason)
			assert.Equal(t, tt.state != StateOK, rep.Events[0].Warn)
			for _, o := range rep.Outputs {
				if o.Metric == engine.Up {
					assert.Equal(t, tt.up, o.Value)
					assert.Equal(t, []engine.Attr{{Key: engine.AttrState, Value: string(tt.state)}}, o.Attrs)
				}
			}
		})
	}
}

func TestAChangeIsToldOnce(t *testing.T) {
	good := recorded(t, "llama.cpp-b11434-end.prom")
	target := newTarget()
	var told []string
	for i, a := range []Answer{served(good), served(good), {Failure: "timeout"}, {Failure: "timeout"}, {Failure: "refused"}, served(good), served("python_info 1\n")} {
		for _, e := range target.Observe(time.Unix(1796044700+10*int64(i), 0), a).Events {
			told = append(told, e.Name+" "+e.Attrs[0].Value)
		}
	}
	assert.Equal(t, []string{
		"llm.engine.state ok", "llm.engine.advice tracing_unsupported",
		"llm.engine.state unreachable", "llm.engine.state ok",
		"llm.engine.state incomplete", // where an engine was, a page without its families is that engine's
		"llm.engine.advice stats_disabled", "llm.engine.advice tracing_unsupported",
	}, told, "the last one settles what was said before")
}

func TestAdviceIsSettled(t *testing.T) {
	off := recorded(t, "vllm-0.32.0-end.prom")
	on := off + "vllm:kv_block_lifetime_seconds_sum 1\nvllm:kv_block_lifetime_seconds_count 1\n"
	target := newTarget()
	codes := func(i int64, body string) (out []string) {
		for _, e := range target.Observe(time.Unix(1796043400+10*i, 0), served(body)).Events {
			if e.Name == EventAdvice {
				out = append(out, e.Attrs[0].Value+" "+e.Attrs[1].Key[strings.LastIndexByte(e.Attrs[1].Key, '.')+1:])
			}
		}
		return out
	}
	assert.Equal(t, []string{"tracing_unseen flag", "block_metrics_off flag", "mfu_metrics_off flag"}, codes(0, off))
	assert.Empty(t, codes(1, off))
	assert.Equal(t, []string{"block_metrics_off resolved"}, codes(2, on))
	assert.Equal(t, []string{"block_metrics_off flag"}, codes(3, off))
}

func TestSeveralProcessesInTurnAreNoticed(t *testing.T) {
	page := func(start, tokens string) string {
		return "vllm:num_requests_running 0\nvllm:prompt_tokens_total " + tokens + "\nvllm:time_to_first_token_seconds_sum 0\nvllm:time_to_first_token_seconds_count 0\nprocess_start_time_seconds " + start + "\n"
	}
	target := newTarget()
	has := func(i int64, body string) bool {
		for _, e := range target.Observe(time.Unix(1796044700+10*i, 0), served(body)).Events {
			if e.Name == EventAdvice && e.Attrs[0].Value == engine.AdviceSplit {
				return e.Attrs[1].Key == KeyFlag
			}
		}
		return false
	}
	assert.False(t, has(0, page("1796044000", "5")))
	assert.False(t, has(1, page("1796044003", "9")), "one jump is a restart")
	assert.True(t, has(2, page("1796044000", "6")), "a jump back is not")
	assert.False(t, has(3, page("1796044003", "9")), "told once")
}

func TestAnotherIdentityEndsTheSeriesOfTheOldOne(t *testing.T) {
	target := newTarget()
	first := target.Observe(time.Unix(1796044700, 0), served(recorded(t, "vllm-0.10.2.post2-end.prom")))
	assert.Empty(t, first.Moved)
	live := len(first.Outputs)
	second := target.Observe(time.Unix(1796044710, 0), served(recorded(t, "vllm-0.32.0-start.prom")))
	assert.Len(t, second.Moved, live, "all of them end where they were")
	for _, o := range second.Moved {
		assert.True(t, o.Gone)
	}
	third := target.Observe(time.Unix(1796044720, 0), served(recorded(t, "vllm-0.32.0-end.prom")))
	assert.Empty(t, third.Moved)
}

func TestWhatTheCapCostIsReported(t *testing.T) {
	target := New(Options{Path: "/metrics", MaxSeries: 20})
	rep := target.Observe(time.Unix(1796043400, 0), served(recorded(t, "vllm-0.32.0-end.prom")))
	assert.Equal(t, 20+6, rep.Held, "20 of the page and the receiver's own")
	assert.Positive(t, rep.Dropped)
	assert.Len(t, rep.Outputs, 26)
	dropped := 0.0
	for _, o := range rep.Outputs {
		if o.Metric == engine.SeriesDropped {
			dropped = o.Value
		}
	}
	assert.Equal(t, float64(rep.Dropped), dropped)
}

func TestUnknownFamiliesAreCountedAndNamed(t *testing.T) {
	target := newTarget()
	rep := target.Observe(time.Unix(1796043400, 0), served(recorded(t, "vllm-0.32.0-end.prom")+"vllm:something_new_total 1\n"))
	assert.Equal(t, 1, rep.Unknown)
	found := false
	for _, e := range rep.Events {
		if e.Name == EventAdvice && e.Attrs[0].Value == engine.AdviceUnknown {
			found = strings.Contains(e.Text, "vllm:something_new")
		}
	}
	assert.True(t, found)
}

func TestRawPassesFamiliesThrough(t *testing.T) {
	target := New(Options{Path: "/metrics", MaxSeries: 10_000, MaxFamilies: 1000, Raw: true})
	rep := target.Observe(time.Unix(1796043400, 0), served(recorded(t, "vllm-0.32.0-end.prom")))
	values := map[string]float64{}
	for _, o := range rep.Outputs {
		values[o.Metric.Name] += valueOf(o.Value, nil)
		if o.Hist != nil {
			values[o.Metric.Name+" count"] += float64(o.Hist.Count)
		}
		assert.False(t, strings.HasSuffix(o.Metric.Name, "_created"), o.Metric.Name)
		assert.False(t, strings.HasSuffix(o.Metric.Name, "_bucket"), o.Metric.Name)
		if o.Metric.Name == "vllm:prompt_tokens_total" {
			assert.Equal(t, engine.Counter, o.Metric.Kind)
			assert.Equal(t, []engine.Attr{{Key: "engine", Value: "0"}, {Key: "model_name", Value: "tiny-llama"}}, o.Attrs)
			assert.Equal(t, int64(1796043184), o.Start.Unix())
		}
	}
	assert.Equal(t, 18160.0, values["vllm:prompt_tokens_total"])
	assert.Equal(t, 97.0, values["vllm:time_to_first_token_seconds count"])
	assert.Equal(t, 2498.0, values["vllm:iteration_tokens_total count"], "a histogram in spite of its name")
	assert.Equal(t, 95.0, values["http_requests_total"]+1, "other families of the page too")
	assert.Equal(t, 18160.0, values["llm.engine.input_tokens"], "beside the canonical ones")
}
