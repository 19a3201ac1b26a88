package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReplayedCallsArriveWhenTheyDid(t *testing.T) {
	calls, err := ReadArrivals(strings.NewReader(`
{"at": 0.5, "model": "llama-3.1-8b", "team": "search", "prompt_tokens": 100, "output_tokens": 20, "stream": true}
{"at": 2,   "model": "qwen3-32b",    "prompt_tokens": 50, "output_tokens": 10, "max_tokens": 64, "n": 2}
{"at": 3,   "model": "qwen3-32b",    "prompt_tokens": 50, "output_tokens": 900, "stream": true, "abort_after": 1}
`))
	require.NoError(t, err)
	cfg := DefaultConfig()
	cfg.Rate, cfg.Replay = 0, calls
	_, o := run(t, cfg, time.Minute)
	require.Len(t, o.Truths, 3)
	for i, want := range []struct {
		at                time.Duration
		status            Status
		in, out, sequence int
	}{
		{500 * time.Millisecond, StatusOK, 100, 20, 1},
		{2 * time.Second, StatusOK, 50, 20, 2},
		{3 * time.Second, StatusCancelled, 50, -1, 0},
	} {
		x := o.Truths[i]
		assert.Equal(t, start.Add(want.at), x.Start)
		assert.Equal(t, want.status, x.Status)
		assert.Equal(t, want.in, x.InputTokens)
		if want.out >= 0 {
			assert.Equal(t, want.out, x.OutputTokens)
		}
		assert.Len(t, x.Sequences, want.sequence)
	}
	assert.Equal(t, time.Second, time.Duration(o.Truths[2].UserE2E))
}

func TestReplayErrorsNameTheLine(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"at":1,"prompt_tokens":1}`, "line 1: prompt_tokens 1 and output_tokens 0 must be at least 1"},
		{"\n" + `{"at":-1}`, "line 2: at -1 and abort_after 0 must be seconds, not negative"},
		{`{"when":1}`, `line 1: json: unknown field "when"`},
		{`{"at":1,"prompt_tokens":1,"output_tokens":9,"max_tokens":3}`, "line 1: max_tokens 3 must be at least output_tokens 9"},
		{`{"at":1,"prompt_tokens":1,"output_tokens":9,"n":1000}`, "line 1: n 1000 is outside 1 to 128"},
	} {
		_, err := ReadArrivals(strings.NewReader(tt.in))
		assert.EqualError(t, err, tt.want)
	}
	cfg := only(nil)
	cfg.Replay = []Arrival{{Call: plain("nope", 1, 1)}}
	_, err := New(cfg, start)
	assert.EqualError(t, err, `replay[0]: no engine serves model "nope"`)
}

// Whatever a file holds, what is read of it can be replayed, or New says why not; nothing panics and every call ends.
func FuzzReadArrivals(f *testing.F) {
	f.Add(`{"at": 0.5, "model": "llama-3.1-8b", "team": "search", "prompt_tokens": 100, "output_tokens": 20, "stream": true}`)
	f.Add(`{"at": 2, "model": "llama-3.1-8b", "prompt_tokens": 50, "output_tokens": 10, "n": 2, "abort_after": 0.1}` + "\n\n{}")
	f.Fuzz(func(t *testing.T, in string) {
		calls, err := ReadArrivals(strings.NewReader(in))
		if err != nil || len(calls) > 5 {
			return
		}
		for i := range calls {
			calls[i].At = min(calls[i].At, time.Minute)
		}
		cfg := only(nil)
		cfg.Replay = calls
		w, err := New(cfg, start)
		if err != nil {
			return
		}
		w.Advance(10 * time.Minute)
		o := w.Drain()
		if w.InFlight() != 0 || len(o.Truths) != len(calls) {
			t.Fatalf("%d calls, %d ended, %d in flight", len(calls), len(o.Truths), w.InFlight())
		}
	})
}
