//go:build engine

package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// kind says what a request is for.
type kind string

const (
	kindAnswer    kind = "answer"    // answered to its end
	kindRefused   kind = "refused"   // the engine answers 4xx
	kindCancelled kind = "cancelled" // the client leaves in the middle of a stream
)

// truth is what the client knows about one request.
type truth struct {
	kind             kind
	trace            string // the id of its trace, as the gateway names it
	stream           bool
	sequences        int // answers
	prompts          int // prompts in the call
	status           int
	prompt, output   float64 // tokens, as the response states them
	cached           float64 // prompt tokens from the prefix cache, likewise
	ttft, e2e        time.Duration
	finish           []string
	err              error
	completionsRoute bool
}

// client sends requests to the gateway and keeps their truth.
type client struct {
	base string
	http *http.Client
	mu   sync.Mutex
	all  []truth
}

type object = map[string]any

// chat is the body of a chat completion.
func chat(words int, more object) object {
	b := object{
		"model":    model,
		"messages": []object{{"role": "system", "content": "You are terse."}, {"role": "user", "content": text(words)}},
	}
	for k, v := range more {
		b[k] = v
	}
	return b
}

var vocabulary = strings.Fields("the program license copy work source code distribute terms conditions user software library version covered notice object form convey patent party rights use")

func text(words int) string {
	var b strings.Builder
	for range words {
		b.WriteString(vocabulary[rand.IntN(len(vocabulary))])
		b.WriteByte(' ')
	}
	return b.String()
}

// response is a whole answer or one event of a stream.
type response struct {
	Choices []struct {
		Text    string `json:"text"`
		Message struct {
			Content string `json:"content"`
		} `json:"message"`
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     float64 `json:"prompt_tokens"`
		Completion float64 `json:"completion_tokens"`
		Details    *struct {
			Cached float64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// send sends one request. One that is to be cancelled is left after three events with text.
func (c *client) send(k kind, route string, body object) {
	t := truth{kind: k, sequences: 1, prompts: 1, completionsRoute: route == "/v1/completions"}
	t.stream, _ = body["stream"].(bool)
	if t.stream {
		body["stream_options"] = object{"include_usage": true}
	}
	if n, ok := body["n"].(int); ok {
		t.sequences = n
	}
	if p, ok := body["prompt"].([]string); ok {
		t.prompts, t.sequences = len(p), len(p)
	}
	begin := time.Now()
	t.err = c.exchange(&t, route, body, begin)
	t.e2e = time.Since(begin)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, t)
}

func (c *client) exchange(t *truth, route string, body object, begin time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+route, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	r, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	t.status, t.trace = r.StatusCode, r.Header.Get("X-Trace-Id")
	if t.status != http.StatusOK {
		_, err := io.Copy(io.Discard, r.Body)
		return err
	}
	if !t.stream {
		var a response
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			return err
		}
		return t.take(a)
	}
	texts := 0
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var a response
		if err := json.Unmarshal([]byte(data), &a); err != nil {
			return err
		}
		for _, ch := range a.Choices {
			if ch.Delta.Content == "" && ch.Text == "" {
				continue
			}
			if texts++; texts == 1 {
				t.ttft = time.Since(begin)
			}
		}
		if err := t.take(a); err != nil {
			return err
		}
		if t.kind == kindCancelled && texts >= 3 {
			cancel()
			return nil
		}
	}
	if t.kind == kindCancelled {
		return errors.New("the answer ended before it could be cancelled")
	}
	return lines.Err()
}

// take adds what a response says of itself.
func (t *truth) take(a response) error {
	for _, ch := range a.Choices {
		if ch.Finish != "" {
			t.finish = append(t.finish, ch.Finish)
		}
	}
	if u := a.Usage; u != nil {
		t.prompt, t.output = u.Prompt, u.Completion
		if u.Details != nil {
			t.cached = u.Details.Cached
		}
	}
	if t.kind == kindCancelled && len(t.finish) > 0 {
		return fmt.Errorf("finished (%v) before it could be cancelled", t.finish)
	}
	return nil
}

// together runs n calls of send at a time, until all are done.
func together(atOnce, n int, send func(i int)) {
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			send(i)
			<-slots
		})
	}
	wg.Wait()
}

// answered sends everything that the engine answers to its end, and what it refuses.
func (c *client) answered(scale float64) {
	many := func(n int) int { return max(int(scale*float64(n)), 1) }
	const chats = "/v1/chat/completions"
	for range many(40) {
		c.send(kindAnswer, chats, chat(20+rand.IntN(60), object{"max_tokens": 16}))
	}
	together(4, many(60), func(int) {
		c.send(kindAnswer, chats, chat(20+rand.IntN(60), object{"max_tokens": 40, "stream": true}))
	})
	together(4, many(20), func(i int) {
		c.send(kindAnswer, chats, chat(30, object{"max_tokens": 20, "n": 2 + i%2, "stream": i%3 == 0}))
	})
	together(2, many(10), func(int) {
		c.send(kindAnswer, "/v1/completions", object{"model": model, "prompt": []string{text(10), text(20), text(30)}, "max_tokens": 12})
	})
	for range many(3) { // four times as many as it batches
		together(32, 32, func(i int) {
			c.send(kindAnswer, chats, chat(40+rand.IntN(100), object{"max_tokens": 30, "stream": i%2 == 0}))
		})
	}
	long := chat(500, object{"max_tokens": 8})
	c.send(kindAnswer, chats, long)
	c.send(kindAnswer, chats, long)
	together(6, many(60), func(i int) {
		c.send(kindAnswer, chats, chat(10+rand.IntN(200), object{"max_tokens": 5 + rand.IntN(60), "stream": i%2 == 0}))
	})
	for i := range many(25) {
		switch i % 3 {
		case 0:
			c.send(kindRefused, chats, chat(5, object{"model": "no-such-model"}))
		case 1:
			c.send(kindRefused, chats, chat(5, object{"max_tokens": 100_000}))
		default:
			c.send(kindRefused, chats, chat(5, object{"temperature": -1}))
		}
	}
}

// cancelled sends streams that the client leaves.
func (c *client) cancelled(scale float64) {
	together(3, max(int(scale*25), 2), func(int) {
		c.send(kindCancelled, "/v1/chat/completions", chat(30, object{"max_tokens": 1500, "ignore_eos": true, "stream": true}))
	})
}
