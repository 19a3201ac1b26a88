// Package request holds the vocabulary of the LLM core: what one span says about one LLM request.
//
// Values are plain and carry their unit in the name or docstring. A figure that a source did not state is unknown, never zero:
// see [Opt]. The package imports pdata for identifiers and timestamps only.
package request

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Opt is a value that a source may not have stated.
type Opt[T any] struct {
	Value T
	Known bool
}

// Some is a stated value.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, Known: true} }

// Or is the value, or fallback when unknown.
func (o Opt[T]) Or(fallback T) T {
	if o.Known {
		return o.Value
	}
	return fallback
}

// Seconds is a duration in seconds that may be unknown.
type Seconds = Opt[float64]

// Tokens is a token count that may be unknown.
type Tokens = Opt[int64]

// Layer tells where in the path of a request a span was made.
type Layer uint8

// The layers, from the user inwards. LayerNone is a span that is no layer of an LLM request.
const (
	LayerNone Layer = iota
	LayerClient
	LayerGateway
	LayerEngine
)

var layerNames = [...]string{"", "client", "gateway", "engine"}

func (l Layer) String() string { return layerNames[l] }

// ParseLayer is the inverse of String; an unknown name is LayerNone.
func ParseLayer(s string) Layer {
	for i, n := range layerNames {
		if i > 0 && n == s {
			return Layer(i)
		}
	}
	return LayerNone
}

// Status is the outcome of a request.
type Status uint8

// The outcomes. StatusUnknown means that no layer said; StatusOK that the request ended as asked.
const (
	StatusUnknown Status = iota
	StatusOK
	StatusError
	StatusCancelled
)

var statusNames = [...]string{"unknown", "ok", "error", "cancelled"}

func (s Status) String() string { return statusNames[s] }

// ParseStatus is the inverse of String; an unknown name is StatusUnknown.
func ParseStatus(s string) Status {
	for i, n := range statusNames {
		if n == s {
			return Status(i)
		}
	}
	return StatusUnknown
}

// Worse is the status of a request of which two layers say a and b: an error beats a cancellation, which beats ok.
// An engine that finished its work does not make up for a client that left.
func Worse(a, b Status) Status {
	rank := [...]int{StatusUnknown: 0, StatusOK: 1, StatusCancelled: 2, StatusError: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// Source is what the resource of a span says.
type Source struct {
	Service, Namespace, Environment string
	// Instance is the service.instance.id: one process of the service.
	Instance string
	// Model is the model that the resource names, for engines whose spans name none.
	Model string
}

// Request is what one span says about one LLM request. The zero value knows nothing.
//
// Strings alias the memory of the span they were read from when they are read by package dialect; a holder that outlives the span
// must own them (Go strings do not change, so keeping them keeps only their bytes alive).
type Request struct {
	Layer   Layer
	Dialect string
	// Source is shared by all requests of a resource; never nil on a request that was read from a span.
	Source *Source

	TraceID  pcommon.TraceID
	SpanID   pcommon.SpanID
	ParentID pcommon.SpanID
	// Start and End are the span's own, in Unix nanoseconds.
	Start, End pcommon.Timestamp
	// TraceState is the W3C tracestate of the span; its ot=th member weights the request.
	TraceState string

	// RequestID is the engine's id for the request, ResponseID the id that a client or gateway read from the answer. Either may be
	// chosen by a caller: they join layers and are never a label.
	RequestID, ResponseID string

	// Model is the model that was asked for, ResponseModel the one that answered.
	Model, ResponseModel string
	Operation, Provider  string
	// Sequences is the number of answers asked for (n); 0 when the source does not say.
	Sequences int64
	// MaxTokens is the limit that was asked for; 0 when the source does not say. The prefill side of a disaggregated pair has 1.
	MaxTokens int64

	// Queue, Prefill and Decode are the engine's own durations, Admission is what lies before them and after the arrival.
	// TTFT and E2E count from the arrival at this layer.
	Admission, Queue, Prefill, Decode Seconds
	TTFT, E2E                         Seconds
	// KVTransfer is the wait for a key-value cache from another engine.
	KVTransfer Seconds

	// InputTokens includes CachedTokens, OutputTokens includes ReasoningTokens (GenAI conventions).
	InputTokens, OutputTokens                      Tokens
	CachedTokens, ReasoningTokens, CacheWriteToken Tokens

	Status    Status
	ErrorType string
	// FinishReason is the first finish reason that the source gives.
	FinishReason string
	// HTTPStatus is the HTTP status code of a gateway or client span, 0 when there is none.
	HTTPStatus int64

	// Beam marks one step of a beam search.
	Beam bool
	// NoFirstToken marks an engine span that ended before its first output.
	NoFirstToken bool
	// PrefillHasQueue says that the source's prefill figure includes its queue (SGLang).
	PrefillHasQueue bool
	// OwnStages says that the source makes stage child spans of its own.
	OwnStages bool
	// LayerOnly marks a span that is a layer where it encloses a request and no request by itself.
	LayerOnly bool
	// Tentative marks a LayerOnly span that nothing but its place can tell: it is a layer only when it turns out to enclose one call.
	Tentative bool
	// Processed says that the span has been through llmspan before.
	Processed bool

	// Invalid names the figures of the source that were rejected.
	Invalid []string

	// Ingress, Return, UserTTFT and UserE2E are known once the enclosing layers are.
	Ingress, Return, UserTTFT, UserE2E Seconds
	UserTTFTEstimated                  bool
	ClockSkew                          Seconds

	// UserGapMax is the longest gap between two chunks at the outermost layer; Chunks the number of chunk spans that were folded.
	UserGapMax Seconds
	Chunks     int64

	// Decision is what sampling decided on the span's trace, "" when it did not; Rule the name of the rule.
	Decision, Rule string
	// IncomingWeight is the number of requests that the span stood for when it came in, where a decision has changed its tracestate.
	IncomingWeight Opt[float64]
	// Partial says that the span came after the decision on its trace.
	Partial bool

	Business
}

// TPOT is the mean time per output token after the first, in seconds: (e2e − TTFT) / (output tokens − 1).
// Unknown below two output tokens. Source of the formula: GenAI semantic conventions, gen_ai.server.time_per_output_token.
func (r *Request) TPOT() Seconds {
	if !r.TTFT.Known || !r.E2E.Known || r.OutputTokens.Or(0) < 2 {
		return Seconds{}
	}
	d := r.E2E.Value - r.TTFT.Value
	if d < 0 {
		return Seconds{}
	}
	return Some(d / float64(r.OutputTokens.Value-1))
}

// Duration is the span's own length in seconds; negative when the span ends before it starts.
func (r *Request) Duration() float64 {
	if r.End < r.Start {
		return -float64(r.Start-r.End) / 1e9
	}
	return float64(r.End-r.Start) / 1e9
}

// Elapsed is the span's own length in seconds; unknown when it ends before it starts, or when one of its instants was never set, which
// would make it half a century.
func (r *Request) Elapsed() Seconds {
	if r.Start == 0 || r.End < r.Start {
		return Seconds{}
	}
	return Some(r.Duration())
}

// Reject names a figure of the source that cannot be true.
func (r *Request) Reject(name string) {
	for _, n := range r.Invalid {
		if n == name {
			return
		}
	}
	r.Invalid = append(r.Invalid[:len(r.Invalid):len(r.Invalid)], name) // copies of a request share what is there
}
