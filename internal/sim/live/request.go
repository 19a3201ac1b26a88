package live

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

// maxBody bounds what a caller may send.
const maxBody = 4 << 20

// request is what the simulator reads of an OpenAI request; other fields are accepted and ignored, as vLLM does.
type request struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	Prompt              json.RawMessage `json:"prompt"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	N                   *int            `json:"n"`
	Stream              bool            `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Temperature   *float64 `json:"temperature"`
	TopP          *float64 `json:"top_p"`
	UseBeamSearch bool     `json:"use_beam_search"`
	IgnoreEOS     bool     `json:"ignore_eos"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// refusal is an answer of vLLM's front end.
type refusal struct {
	status               int
	message, kind, param string
}

func bad(param, format string, args ...any) *refusal {
	return &refusal{http.StatusBadRequest, fmt.Sprintf(format, args...), "BadRequestError", param}
}

// tokensOf is our tokeniser: four characters a token, and at least one.
func tokensOf(s string) int { return max((utf8.RuneCountInString(s)+3)/4, 1) }

// call turns a request into a Call. The second result is why vLLM would refuse it.
func (q *request) call(route string, e sim.Engine, known bool, models []string) (sim.Call, *refusal) {
	c := sim.Call{Model: q.Model, Route: route, Kind: sim.KindSingle, Stream: q.Stream, Temperature: 1, TopP: 1}
	if !known {
		return c, &refusal{404, fmt.Sprintf("The model `%s` does not exist. Valid aliases: %s.", q.Model, strings.Join(models, ", ")), "NotFoundError", "model"}
	}
	var key string
	if route == sim.RouteChat {
		if len(q.Messages) == 0 {
			return c, bad("messages", "messages must not be empty")
		}
		n := 3
		for _, m := range q.Messages {
			text := contentText(m.Content)
			n += tokensOf(text) + 4
			key += m.Role + "\x00" + text + "\x00"
		}
		c.Prompts = []int{n}
	} else {
		texts, err := promptTexts(q.Prompt)
		if err != nil {
			return c, bad("prompt", "%s", err.Error())
		}
		for _, t := range texts {
			c.Prompts = append(c.Prompts, tokensOf(t))
			key += t + "\x00"
		}
	}
	c.PromptKey = hash(key) | 1<<40
	longest := 0
	for _, p := range c.Prompts {
		longest = max(longest, p)
	}
	if longest >= e.MaxModelLen {
		return c, bad("input_tokens", "This model's maximum context length is %d tokens. However, your prompt contains at least %d input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=%d)", e.MaxModelLen, e.MaxModelLen+1, e.MaxModelLen+1)
	}
	if q.Temperature != nil {
		c.Temperature = *q.Temperature
	}
	if c.Temperature < 0 {
		return c, bad("temperature", "temperature must be non-negative, got %v. (parameter=temperature, value=%v)", c.Temperature, c.Temperature)
	}
	if q.TopP != nil {
		c.TopP = *q.TopP
	}
	return c, q.lengths(&c, e, longest)
}

// lengths sets limits, kinds and how much will be said.
func (q *request) lengths(c *sim.Call, e sim.Engine, longest int) *refusal {
	room := e.MaxModelLen - longest
	c.MaxTokens = room
	given := q.MaxTokens
	if q.MaxCompletionTokens != nil {
		given = q.MaxCompletionTokens
	}
	if given != nil {
		c.MaxTokens = *given
	}
	switch {
	case c.MaxTokens > e.MaxModelLen:
		return bad("max_tokens", "max_tokens=%d cannot be greater than max_model_len=%d. Please request fewer output tokens. (parameter=max_tokens, value=%d)", c.MaxTokens, e.MaxModelLen, c.MaxTokens)
	case c.MaxTokens > room:
		return bad("max_tokens", "This model's maximum context length is %d tokens. However, you requested %d output tokens and your prompt contains %d input tokens. (parameter=max_tokens, value=%d)", e.MaxModelLen, c.MaxTokens, longest, c.MaxTokens)
	case c.MaxTokens < 1:
		return bad("max_tokens", "max_tokens must be at least 1, got %d. (parameter=max_tokens, value=%d)", c.MaxTokens, c.MaxTokens)
	}
	n := 1
	if q.N != nil {
		n = *q.N
	}
	if n < 1 || n > 128 {
		return bad("n", "n must be at least 1 and at most 128, got %d. (parameter=n, value=%d)", n, n)
	}
	sequences := n
	switch {
	case q.UseBeamSearch:
		if q.Stream {
			return bad("stream", "streaming is not supported with beam search")
		}
		if len(c.Prompts) > 1 {
			return bad("prompt", "the simulator's beam search takes one prompt")
		}
		c.Kind, c.Beams, sequences = sim.KindBeam, n, 1
	case len(c.Prompts) > 1:
		if n > 1 {
			return bad("n", "the simulator takes several prompts or n > 1, not both")
		}
		c.Kind, sequences = sim.KindPrompts, len(c.Prompts)
	case n > 1:
		c.Kind = sim.KindChoices
	}
	for range sequences {
		o := c.MaxTokens
		if !q.IgnoreEOS && c.Kind != sim.KindBeam {
			o = min(o, drawn(e.Output))
		}
		c.Outputs = append(c.Outputs, o)
	}
	return nil
}

// drawn is a length of the engine's distribution, by chance that is not part of the seeded world: these callers are real.
func drawn(l sim.Lengths) int {
	v := int(l.Median)
	if l.Sigma > 0 {
		v = int(l.Median * lognormal(l.Sigma))
	}
	return min(max(v, l.Min), l.Max)
}

// contentText joins the text of a message: a string, or a list of parts.
func contentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		s += p.Text
	}
	return s
}

// promptTexts reads a prompt: a string, several, or token ids, which stand for four characters each.
func promptTexts(raw json.RawMessage) ([]string, error) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, nil
	}
	var ids []int
	if json.Unmarshal(raw, &ids) == nil && len(ids) > 0 {
		return []string{idText(ids)}, nil
	}
	var many []string
	if json.Unmarshal(raw, &many) == nil && len(many) > 0 {
		return limited(many)
	}
	var lists [][]int
	if json.Unmarshal(raw, &lists) == nil && len(lists) > 0 {
		many = nil // what a failed decoding has left
		for _, l := range lists {
			many = append(many, idText(l))
		}
		return limited(many)
	}
	return nil, fmt.Errorf("prompt must be a string, strings, or lists of token ids")
}

func limited(many []string) ([]string, error) {
	if len(many) > 128 {
		return nil, fmt.Errorf("the simulator takes at most 128 prompts in a call, got %d", len(many))
	}
	return many, nil
}

func idText(ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, "%04d", uint16(id)%10000)
	}
	return b.String()
}

// traceContext reads a W3C traceparent; a malformed one is no context, as the SDKs treat it.
func traceContext(h string) (trace pcommon.TraceID, parent pcommon.SpanID, unsampled bool) {
	p := strings.Split(strings.TrimSpace(h), "-")
	if len(p) < 4 || len(p[0]) != 2 || p[0] == "ff" || len(p[1]) != 32 || len(p[2]) != 16 || len(p[3]) != 2 {
		return trace, parent, false
	}
	flags := []byte{0}
	_, e1 := hex.Decode(trace[:], []byte(p[1]))
	_, e2 := hex.Decode(parent[:], []byte(p[2]))
	_, e3 := hex.Decode(flags, []byte(p[3]))
	if e1 != nil || e2 != nil || e3 != nil || trace.IsEmpty() || parent.IsEmpty() {
		return pcommon.TraceID{}, pcommon.SpanID{}, false
	}
	return trace, parent, flags[0]&1 == 0
}

func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

func lognormal(sigma float64) float64 { return math.Exp(sigma * rand.NormFloat64()) }
