package sim

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Kind tells how the sequences of a call belong together.
type Kind string

// Kinds of calls.
const (
	KindSingle  Kind = "single"
	KindChoices Kind = "choices" // n > 1: one prompt, several answers
	KindPrompts Kind = "prompts" // several prompts in one /v1/completions call
	KindBeam    Kind = "beam"    // beam search
)

// The two generating routes of the OpenAI API.
const (
	RouteChat        = "/v1/chat/completions"
	RouteCompletions = "/v1/completions"
)

// Call is what a user asks for, and how much the model will say.
type Call struct {
	Model, Team string
	Route       string
	Kind        Kind
	// Prompts are token counts: one, or several for KindPrompts.
	Prompts []int
	// Outputs are the tokens that each sequence will make, at most MaxTokens: one for KindSingle, n for KindChoices, one a
	// prompt for KindPrompts, one (the steps) for KindBeam. An output of MaxTokens ends by "length", a shorter one by "stop".
	Outputs   []int
	MaxTokens int
	// Beams is the width of a beam search.
	Beams             int
	Stream            bool
	Temperature, TopP float64
	// SharedPrefix is how many tokens at the start of the prompts are the team's common ones. Prompts of one PromptKey that
	// is not 0 are equal, so that all of them is cached.
	SharedPrefix int
	PromptKey    uint64
	// AbortAfter makes the user leave that long after the call; 0: never.
	AbortAfter time.Duration
	// Refuse is the HTTP status (400, 404) of a call that the engine's front end does not accept; Why its message.
	Refuse int
	Why    string
	// RequestID is the caller's X-Request-Id. TraceID and Parent are the caller's trace context; empty: a new trace.
	RequestID string
	TraceID   pcommon.TraceID
	Parent    pcommon.SpanID
	// Unsampled is a caller's decision that nothing is recorded: no layer emits a span.
	Unsampled bool
	// Client puts a span of an instrumented application in front.
	Client bool
	// Chunks asks for "http send" spans at the gateway.
	Chunks bool
	// Watch asks for deliveries.
	Watch bool
}

// Arrival is a call at an instant.
type Arrival struct {
	At time.Duration
	Call
}

// validate checks what the model relies on.
func (c *Call) validate(e *Engine) error {
	if c.Route != RouteChat && c.Route != RouteCompletions {
		return fmt.Errorf("route %q is not one of %s, %s", c.Route, RouteChat, RouteCompletions)
	}
	if c.Refuse != 0 {
		if c.Refuse < 400 || c.Refuse > 499 {
			return fmt.Errorf("refuse %d is outside 400 to 499", c.Refuse)
		}
		return nil
	}
	if len(c.Prompts) == 0 || len(c.Outputs) == 0 {
		return errors.New("prompts and outputs must not be empty")
	}
	switch c.Kind {
	case KindSingle, KindBeam:
		if len(c.Prompts) != 1 || len(c.Outputs) != 1 {
			return fmt.Errorf("a %s call has one prompt and one output", c.Kind)
		}
	case KindChoices:
		if len(c.Prompts) != 1 {
			return errors.New("a call for several choices has one prompt")
		}
	case KindPrompts:
		if len(c.Prompts) != len(c.Outputs) || c.Route != RouteCompletions {
			return errors.New("a call with several prompts is to /v1/completions, with one output a prompt")
		}
	default:
		return fmt.Errorf("kind %q is not one of single, choices, prompts, beam", c.Kind)
	}
	if c.Kind == KindBeam && (c.Beams < 1 || c.Stream) {
		return errors.New("beam search has at least one beam and does not stream")
	}
	for _, o := range c.Outputs {
		if o < 1 || o > c.MaxTokens {
			return fmt.Errorf("an output of %d tokens is outside 1 to max_tokens %d", o, c.MaxTokens)
		}
	}
	for _, p := range c.Prompts {
		if p < 1 || p+c.MaxTokens > e.MaxModelLen {
			return fmt.Errorf("a prompt of %d and max_tokens %d do not fit max_model_len %d", p, c.MaxTokens, e.MaxModelLen)
		}
	}
	return nil
}

// call is a Call on its way. Instants are offsets from the world's start.
type call struct {
	Call
	id     uint64
	engine *engine
	epoch  uint64 // of the engine when it arrived there
	// arrived says that the engine's front end has it.
	arrived bool
	done    bool
	cut     bool // ended without its proper end

	requestID                                     string
	clientSpan, clientHTTP, gatewaySpan, httpSpan pcommon.SpanID
	network                                       time.Duration // one way between user and gateway
	start, gatewayStart, httpStart, arrival       time.Duration
	headers                                       time.Duration // when the engine's headers reach the gateway (streams)

	open      int // sequences that have not finished
	sequences []*sequence
	beamStep  int

	// What the gateway has sent on so far.
	sends     int
	firstSend time.Duration
	lastSend  time.Duration
	maxGap    time.Duration
	sendTimes []time.Duration
}

// promptKey identifies the text of prompt i for the prefix cache.
func (c *call) promptKey(i int) uint64 {
	if c.PromptKey != 0 {
		return c.PromptKey + uint64(i)
	}
	return c.id<<8 | uint64(i&0xff) | 1<<63
}

// sequence is one request of the engine: one prompt, one answer.
type sequence struct {
	call      *call
	index     int
	id        string // gen_ai.request.id
	prompt    int
	target    int // tokens to make
	maxTokens int

	keys     []uint64 // of the full blocks of the prompt
	held     []*block
	computed int // tokens whose KV is in the cache
	made     int
	cached   int // tokens found in the prefix cache when first scheduled
	preempts int

	arrival, queued, scheduled, first, last time.Duration
	wasScheduled, gone                      bool
	frontFirst, frontLast, spanEnd          time.Duration
	spanID                                  pcommon.SpanID
}

// total is the tokens known so far.
func (s *sequence) total() int { return s.prompt + s.made }

// blockKeys identifies the contents of the full blocks of a prompt: those inside the team's prefix by the team, the others by
// the prompt. (vLLM hashes the tokens, each block with its parent's hash; equal prefixes give equal keys there too.)
func blockKeys(c *call, prompt int, promptKey uint64, blockSize int) []uint64 {
	keys := make([]uint64, prompt/blockSize)
	team := fnv(c.Team)
	for i := range keys {
		if (i+1)*blockSize <= c.SharedPrefix {
			keys[i] = mix(team, uint64(i))
		} else {
			keys[i] = mix(promptKey, uint64(i))
		}
	}
	return keys
}

// fnv is the 64-bit FNV-1a hash of s.
func fnv(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// mix combines two words into a key that is not 0 (the finaliser of SplitMix64).
func mix(a, b uint64) uint64 {
	z := a + (b+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31 | 1
}
