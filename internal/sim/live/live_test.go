package live

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet has two engines, a gateway and no calls of its own.
func quiet(faults ...sim.Fault) sim.Config {
	cfg := sim.DefaultConfig()
	cfg.Rate, cfg.Faults = 0, faults
	return cfg
}

// inBubble runs f with a Live that follows the bubble's clock.
func inBubble(t *testing.T, cfg sim.Config, opts Options, f func(t *testing.T, l *Live)) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(cfg, opts)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.Run(ctx)
		}()
		f(t, l)
		cancel()
		<-done
	})
}

func post(ctx context.Context, l *Live, route, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, route, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	l.Handler().ServeHTTP(w, r)
	return w
}

func get(l *Live, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	l.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func lastTruth(t *testing.T, l *Live) sim.Truth {
	t.Helper()
	all := l.truthsAfter(0, 1000).Requests
	require.NotEmpty(t, all)
	return all[len(all)-1]
}

func TestUnaryAnswersMatchTheTruth(t *testing.T) {
	for _, tt := range []struct {
		name, route, body string
		choices           int
		kind              sim.Kind
	}{
		{"chat", sim.RouteChat, `{"model":"llama-3.1-8b","messages":[{"role":"user","content":"hello there"}],"max_tokens":20}`, 1, sim.KindSingle},
		{"content parts", sim.RouteChat, `{"model":"llama-3.1-8b","messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}],"max_completion_tokens":20}`, 1, sim.KindSingle},
		{"n", sim.RouteChat, `{"model":"llama-3.1-8b","messages":[{"role":"user","content":"hello"}],"max_tokens":20,"n":3}`, 3, sim.KindChoices},
		{"completion", sim.RouteCompletions, `{"model":"llama-3.1-8b","prompt":"hello","max_tokens":20}`, 1, sim.KindSingle},
		{"prompts", sim.RouteCompletions, `{"model":"llama-3.1-8b","prompt":["a","b","c"],"max_tokens":20}`, 3, sim.KindPrompts},
		{"token ids", sim.RouteCompletions, `{"model":"llama-3.1-8b","prompt":[[1,2,3],[4,5]],"max_tokens":20}`, 2, sim.KindPrompts},
		{"beam", sim.RouteChat, `{"model":"llama-3.1-8b","messages":[{"role":"user","content":"hello"}],"max_tokens":8,"n":2,"use_beam_search":true}`, 2, sim.KindBeam},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, quiet(), Options{}, func(t *testing.T, l *Live) {
				w := post(t.Context(), l, tt.route, tt.body, "x-team", "search", "X-Request-Id", "abc")
				require.Equal(t, 200, w.Code, w.Body.String())
				var m completion
				require.NoError(t, json.Unmarshal(w.Body.Bytes(), &m))
				x := lastTruth(t, l)
				assert.Equal(t, tt.kind, x.Kind)
				assert.Equal(t, "search", x.Team)
				assert.Equal(t, x.RequestID, m.ID)
				assert.Contains(t, m.ID, "-abc")
				require.Len(t, m.Choices, tt.choices)
				assert.Equal(t, x.InputTokens, m.Usage.PromptTokens)
				assert.Equal(t, x.OutputTokens, m.Usage.CompletionTokens)
				words := 0
				for i, ch := range m.Choices {
					assert.Equal(t, x.FinishReasons[i], *ch.Finish)
					if ch.Message != nil {
						words += len(strings.Fields(ch.Message.Content))
					} else {
						words += len(strings.Fields(*ch.Text))
					}
				}
				assert.Equal(t, x.OutputTokens, words, "one word a token")
			})
		})
	}
}

// events reads a stream's data lines.
func events(t *testing.T, body string) (all []completion, done bool) {
	t.Helper()
	s := bufio.NewScanner(strings.NewReader(body))
	for s.Scan() {
		line, ok := strings.CutPrefix(s.Text(), "data: ")
		switch {
		case !ok:
		case line == "[DONE]":
			done = true
		default:
			require.False(t, done)
			var m completion
			require.NoError(t, json.Unmarshal([]byte(line), &m))
			all = append(all, m)
		}
	}
	return all, done
}

func TestStreamsEndWithUsageOnlyWhenAsked(t *testing.T) {
	for _, include := range []string{"true", "false"} {
		inBubble(t, quiet(), Options{}, func(t *testing.T, l *Live) {
			w := post(t.Context(), l, sim.RouteChat, `{"model":"qwen3-32b","messages":[{"role":"user","content":"hello"}],"max_tokens":30,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":`+include+`}}`)
			assert.Equal(t, "text/event-stream; charset=utf-8", w.Header().Get("Content-Type"))
			all, done := events(t, w.Body.String())
			require.True(t, done)
			last := all[len(all)-1]
			tokens := 0
			for _, e := range all {
				assert.Equal(t, lastTruth(t, l).RequestID, e.ID)
				for _, ch := range e.Choices {
					if strings.Contains(string(ch.Delta), `"content":"`) && !strings.Contains(string(ch.Delta), `"role"`) {
						tokens++
					}
				}
			}
			assert.Equal(t, 30, tokens)
			if include == "true" {
				require.NotNil(t, last.Usage)
				assert.Equal(t, 30, last.Usage.CompletionTokens)
				assert.Empty(t, last.Choices)
			} else {
				assert.Nil(t, last.Usage)
				assert.Equal(t, "length", *last.Choices[0].Finish)
			}
		})
	}
}

func TestRefusalsAreVLLMsAndAreInTheTelemetry(t *testing.T) {
	for _, tt := range []struct {
		name, body, kind, param string
		status                  int
	}{
		{"unknown model", `{"model":"nope","messages":[{"role":"user","content":"x"}]}`, "NotFoundError", "model", 404},
		{"limit", `{"model":"llama-3.1-8b","messages":[{"role":"user","content":"x"}],"max_tokens":100000}`, "BadRequestError", "max_tokens", 400},
		{"temperature", `{"model":"llama-3.1-8b","messages":[{"role":"user","content":"x"}],"temperature":-3}`, "BadRequestError", "temperature", 400},
		{"too long", `{"model":"llama-3.1-8b","messages":[{"role":"user","content":"` + strings.Repeat("long ", 8000) + `"}]}`, "BadRequestError", "input_tokens", 400},
		{"no room", `{"model":"llama-3.1-8b","messages":[{"role":"user","content":"` + strings.Repeat("long ", 4000) + `"}],"max_tokens":8000}`, "BadRequestError", "max_tokens", 400},
		{"no messages", `{"model":"llama-3.1-8b"}`, "BadRequestError", "messages", 400},
		{"n", `{"model":"llama-3.1-8b","messages":[{"role":"user","content":"x"}],"n":0}`, "BadRequestError", "n", 400},
		{"no JSON", `{`, "BadRequestError", "", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var pushed []sim.Export
			inBubble(t, quiet(), Options{Push: func(e []sim.Export) { pushed = append(pushed, e...) }}, func(t *testing.T, l *Live) {
				w := post(t.Context(), l, sim.RouteChat, tt.body)
				assert.Equal(t, tt.status, w.Code)
				var e struct {
					Error struct {
						Message, Type, Param string
						Code                 int
					}
				}
				require.NoError(t, json.Unmarshal(w.Body.Bytes(), &e))
				assert.Equal(t, tt.kind, e.Error.Type)
				assert.Equal(t, tt.param, e.Error.Param)
				assert.Equal(t, tt.status, e.Error.Code)
				assert.Equal(t, sim.StatusRefused, lastTruth(t, l).Status)
			})
			found := false
			for _, e := range pushed {
				found = found || e.Service == "llm-gateway"
			}
			assert.True(t, found, "the gateway has a span of it")
		})
	}
}

func TestAUserWhoLeavesIsCancelled(t *testing.T) {
	inBubble(t, quiet(), Options{}, func(t *testing.T, l *Live) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		post(ctx, l, sim.RouteChat, `{"model":"llama-3.1-8b","messages":[{"role":"user","content":"x"}],"max_tokens":4000,"ignore_eos":true,"stream":true}`)
		time.Sleep(time.Second) // the bubble's clock
		x := lastTruth(t, l)
		assert.Equal(t, sim.StatusCancelled, x.Status)
		assert.Positive(t, x.OutputTokens)
		assert.Empty(t, x.Sequences)
	})
}

func TestAStreamOfADeadEngineIsCut(t *testing.T) {
	crash := sim.Fault{Kind: sim.FaultEngineCrash, At: time.Second, For: time.Second}
	inBubble(t, quiet(crash), Options{}, func(t *testing.T, l *Live) {
		body := `{"model":"llama-3.1-8b","messages":[{"role":"user","content":"x"}],"max_tokens":4000,"ignore_eos":true,"stream":%}`
		assert.PanicsWithError(t, http.ErrAbortHandler.Error(), func() {
			post(t.Context(), l, sim.RouteChat, strings.Replace(body, "%", "true", 1))
		})
		assert.Equal(t, 503, get(l, "/health").Code)
		assert.Equal(t, 503, get(l, "/engines/vllm-chat/metrics").Code)
		assert.Equal(t, 502, post(t.Context(), l, sim.RouteChat, strings.Replace(body, "%", "false", 1)).Code)
		time.Sleep(2 * time.Second)
		assert.Equal(t, 200, get(l, "/health").Code)
	})
}

func TestStoppingEndsOpenCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(quiet(), Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() { defer close(ran); l.Run(ctx) }()
		code := make(chan int)
		go func() {
			code <- post(t.Context(), l, sim.RouteChat, `{"model":"llama-3.1-8b","messages":[{"role":"user","content":"x"}],"max_tokens":4000,"ignore_eos":true}`).Code
		}()
		time.Sleep(time.Second)
		cancel()
		assert.Equal(t, 503, <-code)
		<-ran
	})
}

func TestViews(t *testing.T) {
	inBubble(t, quiet(), Options{KeepTruths: 3}, func(t *testing.T, l *Live) {
		for i := range 5 {
			post(t.Context(), l, sim.RouteCompletions, `{"model":"llama-3.1-8b","prompt":"x","max_tokens":5}`, "X-Request-Id", strconv.Itoa(i))
		}
		var v Truths
		require.NoError(t, json.Unmarshal(get(l, "/sim/truth").Body.Bytes(), &map[string]any{}))
		v = l.truthsAfter(0, 100)
		require.Len(t, v.Requests, 3)
		for i, x := range v.Requests {
			assert.Equal(t, "cmpl-"+strconv.Itoa(i+2), x.RequestID)
		}
		assert.EqualValues(t, 2, v.Missed)
		assert.EqualValues(t, 5, v.Next)
		assert.EqualValues(t, 5, v.Totals.Ended)
		assert.Len(t, l.truthsAfter(4, 100).Requests, 1)
		assert.Equal(t, 400, get(l, "/sim/truth?after=x").Code)

		assert.Equal(t, 404, get(l, "/metrics").Code)
		assert.Contains(t, get(l, "/metrics").Body.String(), "vllm-chat, vllm-reason")
		page := get(l, "/engines/vllm-chat/metrics")
		assert.Equal(t, 200, page.Code)
		assert.Contains(t, page.Body.String(), `vllm:request_success_total{engine="0",finished_reason="stop",model_name="llama-3.1-8b"}`)
		assert.Contains(t, page.Header().Get("Content-Type"), "version=1.0.0")
		assert.Equal(t, 404, get(l, "/engines/none/metrics").Code)

		var models struct {
			Data []struct{ ID string }
		}
		require.NoError(t, json.Unmarshal(get(l, "/v1/models").Body.Bytes(), &models))
		assert.Len(t, models.Data, 2)
		var gpus []sim.GPU
		require.NoError(t, json.Unmarshal(get(l, "/sim/gpu").Body.Bytes(), &gpus))
		assert.Len(t, gpus, 2)
		page = get(l, "/dcgm/metrics")
		assert.Equal(t, 200, page.Code)
		for _, g := range gpus {
			assert.Contains(t, page.Body.String(), `UUID="`+g.UUID+`"`)
		}
		assert.Equal(t, 200, get(l, "/version").Code)
	})
}

func TestArrivalsFollowTheClockAndDrainLosesNothing(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Rate = 20
	spans, ended := 0, 0
	engineSpans := 0
	inBubble(t, cfg, Options{
		ExportEvery: time.Second,
		Push: func(all []sim.Export) {
			for _, e := range all {
				spans += e.Traces.SpanCount()
			}
		},
		Ended: func(x *sim.Truth) { ended++; engineSpans += len(x.Sequences) },
	}, func(t *testing.T, l *Live) {
		time.Sleep(30 * time.Second)
		require.NoError(t, l.Drain(t.Context()))
		total := l.truthsAfter(0, 0).Totals
		assert.InDelta(t, 600, total.Started, 100)
		assert.Equal(t, total.Started, total.Ended)
		assert.EqualValues(t, total.Ended, ended)
		assert.Greater(t, spans, engineSpans)
	})
}

func TestTraceContext(t *testing.T) {
	for _, tt := range []struct {
		name, in         string
		valid, unsampled bool
	}{
		{"sampled", "00-197661629a9f185a32306c6dae4c20a6-0bfc1f481cd41eae-01", true, false},
		{"unsampled", "00-197661629a9f185a32306c6dae4c20a6-0bfc1f481cd41eae-00", true, true},
		{"a later version with more fields", "01-197661629a9f185a32306c6dae4c20a6-0bfc1f481cd41eae-01-x", true, false},
		{"version ff", "ff-197661629a9f185a32306c6dae4c20a6-0bfc1f481cd41eae-01", false, false},
		{"zero trace", "00-00000000000000000000000000000000-0bfc1f481cd41eae-00", false, false},
		{"not hexadecimal", "00-1976z1629a9f185a32306c6dae4c20a6-0bfc1f481cd41eae-00", false, false},
		{"empty", "", false, false},
	} {
		trace, parent, unsampled := traceContext(tt.in)
		assert.Equal(t, tt.valid, !trace.IsEmpty() && !parent.IsEmpty(), tt.name)
		assert.Equal(t, tt.unsampled, unsampled, tt.name)
	}
}
