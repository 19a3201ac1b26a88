package live

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

// Whatever a caller sends becomes a refusal with a 4xx status, or a call that the world takes.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"model":"llama-3.1-8b","messages":[{"role":"user","content":"hello"}],"max_tokens":20,"n":3}`,
		`{"model":"llama-3.1-8b","prompt":[[1,2,3],[4,5]],"max_tokens":20}`,
		`{"model":"llama-3.1-8b","prompt":"x","use_beam_search":true,"n":2,"max_tokens":8}`,
		`{"model":"llama-3.1-8b","prompt":[],"max_tokens":-1}`,
		`{"model":"","n":0,"temperature":-1}`, `{`,
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	w, err := sim.New(quiet(), time.Unix(1796043312, 0))
	require.NoError(f, err)
	models, _ := w.Models()
	f.Fuzz(func(t *testing.T, body string, chat bool) {
		var q request
		if json.Unmarshal([]byte(body), &q) != nil {
			return
		}
		route := sim.RouteCompletions
		if chat {
			route = sim.RouteChat
		}
		e, known := w.Engine(q.Model)
		c, no := q.call(route, e, known, models)
		if no != nil {
			if no.status < 400 || no.status > 499 || no.message == "" {
				t.Fatalf("refused with %d %q", no.status, no.message)
			}
			return
		}
		id, err := w.Submit(c)
		if err != nil {
			t.Fatalf("accepted, but the world says: %v", err)
		}
		w.Cancel(id)
		w.Advance(w.Now() + time.Second)
		w.Drain()
	})
}
