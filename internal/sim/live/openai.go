package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

// completions serves both generating routes. Every request becomes a call of the simulated installation, so that a refused or
// an abandoned one is in the telemetry as well.
func (l *Live) completions(w http.ResponseWriter, r *http.Request) {
	var q request
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			refuse(w, &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", maxBody), "BadRequestError", ""})
		}
		return // the caller has gone
	}
	var no *refusal
	var c sim.Call
	if err := json.Unmarshal(body, &q); err != nil {
		no = bad("", "the body is not a JSON request: %v", err)
		c = sim.Call{Route: r.URL.Path}
	} else {
		var engine sim.Engine
		var known bool
		var models []string
		l.with(func(x *sim.World) {
			engine, known = x.Engine(q.Model)
			models, _ = x.Models()
		})
		c, no = q.call(r.URL.Path, engine, known, models)
	}
	if no != nil {
		c.Refuse, c.Why, c.Outputs = no.status, no.message, nil
	}
	c.Team = r.Header.Get("x-team")
	if len(c.Team) > 128 {
		c.Team = c.Team[:128]
	}
	if c.RequestID = r.Header.Get("X-Request-Id"); c.RequestID == "" {
		c.RequestID = fmt.Sprintf("%016x", rand.Uint64())
	}
	c.Chunks = rand.Float64() < l.chunks
	c.TraceID, c.Parent, c.Unsampled = traceContext(r.Header.Get("traceparent"))
	id, watch, err := l.submit(c)
	if err != nil {
		refuse(w, bad("", "%s", err.Error()))
		return
	}
	a := &answer{w: w, c: c, created: l.started.Unix(), include: q.StreamOptions.IncludeUsage, route: r.URL.Path, id: id}
	for !a.done {
		ds, ok := watch.take(r.Context())
		if !ok {
			l.cancel(id)
			return
		}
		for _, d := range ds {
			a.take(d, no)
		}
		if c.Stream && a.started {
			if err := http.NewResponseController(w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
				l.cancel(id)
				return
			}
		}
	}
	if a.broken {
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way to cut a connection, as a dead engine does
	}
}

// answer writes the response of one call.
type answer struct {
	w       http.ResponseWriter
	c       sim.Call
	id      uint64
	route   string
	created int64
	include bool

	started, done, broken bool
	texts                 []string
	finish                []string
}

type usage struct {
	PromptTokens     int            `json:"prompt_tokens"`
	TotalTokens      int            `json:"total_tokens"`
	CompletionTokens int            `json:"completion_tokens"`
	Details          *promptDetails `json:"prompt_tokens_details"`
}

type promptDetails struct {
	Cached int `json:"cached_tokens"`
}

type choice struct {
	Index   int             `json:"index"`
	Text    *string         `json:"text,omitempty"`
	Message *chatText       `json:"message,omitempty"`
	Delta   json.RawMessage `json:"delta,omitempty"`
	Finish  *string         `json:"finish_reason"`
}

type chatText struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

// take handles a delivery. no is why the front end has refused the call, nil when it has not.
func (a *answer) take(d sim.Delivery, no *refusal) {
	if d.End {
		a.done = true
		a.end(d, no)
		return
	}
	for len(a.texts) <= d.Choice {
		a.texts, a.finish = append(a.texts, ""), append(a.finish, "")
	}
	piece := word(a.id, d.Choice, len(a.texts[d.Choice]))
	a.texts[d.Choice] += piece
	a.finish[d.Choice] = d.Finish
	if !a.c.Stream {
		return
	}
	if !a.started {
		a.started = true
		h := a.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		a.w.WriteHeader(http.StatusOK)
		if a.route == sim.RouteChat {
			for i := range a.c.Outputs {
				a.event(choice{Index: i, Delta: json.RawMessage(`{"role":"assistant","content":""}`)})
			}
		}
	}
	ch := choice{Index: d.Choice}
	if d.Finish != "" {
		ch.Finish = &d.Finish
	}
	if a.route == sim.RouteChat {
		delta, _ := json.Marshal(map[string]string{"content": piece})
		ch.Delta = delta
	} else {
		ch.Text = &piece
	}
	a.event(ch)
}

// requestID is what the response calls itself: vLLM derives it from the caller's X-Request-Id.
func (a *answer) requestID() string {
	if a.route == sim.RouteChat {
		return "chatcmpl-" + a.c.RequestID
	}
	return "cmpl-" + a.c.RequestID
}

func (a *answer) event(choices ...choice) {
	a.write(completion{Choices: choices})
}

func (a *answer) write(m completion) {
	if m.Choices == nil {
		m.Choices = []choice{}
	}
	m.ID, m.Created, m.Model = a.requestID(), a.created, a.c.Model
	m.Object = "text_completion"
	if a.route == sim.RouteChat {
		m.Object = "chat.completion.chunk"
	}
	b, _ := json.Marshal(m)
	_, _ = a.w.Write([]byte("data: " + string(b) + "\n\n"))
}

// end writes the last part of a stream, or the whole of another response.
func (a *answer) end(d sim.Delivery, no *refusal) {
	switch {
	case a.started && (d.Broken || d.Error != ""):
		a.broken = true
		return
	case no != nil:
		refuse(a.w, no)
		return
	case d.Error != "":
		if d.Broken { // a stream's headers had left before its first token
			a.w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(a.w).Flush()
			a.broken = true
			return
		}
		refuse(a.w, &refusal{d.HTTPStatus, d.Error, "InternalServerError", ""})
		return
	}
	t := d.Truth
	u := &usage{
		PromptTokens: t.InputTokens, CompletionTokens: t.OutputTokens, TotalTokens: t.InputTokens + t.OutputTokens,
		Details: &promptDetails{t.CachedTokens},
	}
	if a.c.Stream {
		if a.include {
			a.write(completion{Usage: u})
		}
		_, _ = a.w.Write([]byte("data: [DONE]\n\n"))
		return
	}
	m := completion{ID: a.requestID(), Object: "text_completion", Created: a.created, Model: a.c.Model, Usage: u}
	for i := range t.FinishReasons {
		text := ""
		if i < len(a.texts) {
			text = a.texts[i]
		} else { // beam search: nothing was delivered on the way
			var b strings.Builder
			for range a.c.Outputs[0] {
				b.WriteString(word(a.id, i, b.Len()))
			}
			text = b.String()
		}
		ch := choice{Index: i, Finish: &t.FinishReasons[i]}
		if a.route == sim.RouteChat {
			m.Object = "chat.completion"
			ch.Message = &chatText{"assistant", text}
		} else {
			ch.Text = &text
		}
		m.Choices = append(m.Choices, ch)
	}
	reply(a.w, http.StatusOK, m)
}

// refuse writes vLLM's error body.
func refuse(w http.ResponseWriter, no *refusal) {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	}
	e := inner{Message: no.message, Type: no.kind, Code: no.status}
	if no.param != "" {
		e.Param = &no.param
	}
	reply(w, no.status, map[string]inner{"error": e})
}

var vocabulary = strings.Fields("time queue token batch cache block layer step model head key value page slot graph kernel stream trace span rate")

// word is one token of an answer: the simulator says nothing of sense.
func word(call uint64, choice, position int) string {
	return vocabulary[(call*7+uint64(choice)*3+uint64(position)*11)%uint64(len(vocabulary))] + " "
}
