package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

// Handler serves the API of the users and the views of the operator:
//
//	POST /v1/chat/completions, /v1/completions   GET /v1/models, /health, /version
//	GET /metrics (with one engine), /engines/{name}/metrics
//	GET /dcgm/metrics: the GPUs as a page of dcgm-exporter
//	GET /sim/truth?after=N&limit=N, /sim/gpu
func (l *Live) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+sim.RouteChat, l.completions)
	mux.HandleFunc("POST "+sim.RouteCompletions, l.completions)
	mux.HandleFunc("GET /v1/models", l.models)
	mux.HandleFunc("GET /health", l.health)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, map[string]string{"version": "0.32.0"}) })
	mux.HandleFunc("GET /metrics", l.onlyMetrics)
	mux.HandleFunc("GET /engines/{name}/metrics", func(w http.ResponseWriter, r *http.Request) { l.metrics(w, r.PathValue("name")) })
	mux.HandleFunc("GET /dcgm/metrics", l.gpuPage)
	mux.HandleFunc("GET /sim/truth", l.truth)
	mux.HandleFunc("GET /sim/gpu", l.gpu)
	return mux
}

// onlyMetrics is the page of the only engine. Several engines are several processes, so several pages.
func (l *Live) onlyMetrics(w http.ResponseWriter, _ *http.Request) {
	var names []string
	l.with(func(x *sim.World) { _, names = x.Models() })
	if len(names) > 1 {
		http.Error(w, fmt.Sprintf("several engines are simulated; ask for /engines/{name}/metrics with one of: %s", strings.Join(names, ", ")), http.StatusNotFound)
		return
	}
	l.metrics(w, names[0])
}

func (l *Live) metrics(w http.ResponseWriter, name string) {
	var page []byte
	var err error
	l.with(func(x *sim.World) { page, err = x.Page(name) })
	switch {
	case errors.Is(err, sim.ErrDown):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, err.Error(), http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "text/plain; version=1.0.0; charset=utf-8; escaping=underscores")
		_, _ = w.Write(page)
	}
}

func (l *Live) health(w http.ResponseWriter, _ *http.Request) {
	up := false
	l.with(func(x *sim.World) { up = x.Up() })
	if !up {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (l *Live) models(w http.ResponseWriter, _ *http.Request) {
	type item struct {
		ID          string  `json:"id"`
		Object      string  `json:"object"`
		Created     int64   `json:"created"`
		OwnedBy     string  `json:"owned_by"`
		Root        string  `json:"root"`
		Parent      *string `json:"parent"`
		MaxModelLen int     `json:"max_model_len"`
	}
	list := struct {
		Object string `json:"object"`
		Data   []item `json:"data"`
	}{Object: "list"}
	l.with(func(x *sim.World) {
		names, _ := x.Models()
		for _, n := range names {
			e, _ := x.Engine(n)
			list.Data = append(list.Data, item{ID: n, Object: "model", Created: l.started.Unix(), OwnedBy: "vllm", Root: n, MaxModelLen: e.MaxModelLen})
		}
	})
	reply(w, 200, list)
}

// Truths is the answer of /sim/truth.
type Truths struct {
	Totals   sim.Totals `json:"totals"`
	InFlight int        `json:"in_flight"`
	Faults   []string   `json:"active_faults"`
	// Next is the after of the next question; Missed how many calls since after are no longer known.
	Next     int64       `json:"next"`
	Missed   int64       `json:"missed"`
	Requests []sim.Truth `json:"requests"`
}

func (l *Live) truth(w http.ResponseWriter, r *http.Request) {
	after, err1 := number(r, "after", 0)
	limit, err2 := number(r, "limit", 1000)
	if err := errors.Join(err1, err2); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.step()
	reply(w, 200, l.truthsAfter(after, limit))
}

// truthsAfter returns the ended calls from number after on, at most limit.
func (l *Live) truthsAfter(after, limit int64) Truths {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := Truths{Totals: l.world.Totals(), InFlight: l.world.InFlight(), Faults: []string{}, Requests: []sim.Truth{}}
	for _, f := range l.world.ActiveFaults() {
		out.Faults = append(out.Faults, strings.TrimSpace(string(f.Kind)+" "+f.Engine))
	}
	first := max(l.next-int64(len(l.truths)), 0)
	if after < first {
		out.Missed = first - after
		after = first
	}
	for ; after < l.next && limit > 0; after, limit = after+1, limit-1 {
		out.Requests = append(out.Requests, l.truths[after%int64(l.opts.KeepTruths)])
	}
	out.Next = after
	return out
}

func (l *Live) gpu(w http.ResponseWriter, _ *http.Request) {
	var all []sim.GPU
	l.with(func(x *sim.World) { all = x.GPUs() })
	reply(w, 200, all)
}

func (l *Live) gpuPage(w http.ResponseWriter, _ *http.Request) {
	var page []byte
	l.with(func(x *sim.World) { page = x.GPUPage() })
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(page)
}

func number(r *http.Request, key string, missing int64) (int64, error) {
	s := r.URL.Query().Get(key)
	if s == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s must be a number, not negative", key)
	}
	return n, nil
}

func reply(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil { // a bug of this package: all values are plain
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}
