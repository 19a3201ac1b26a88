package sim

import (
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Status of a call.
type Status string

// Outcomes of a call.
const (
	StatusOK        Status = "ok"
	StatusError     Status = "error"
	StatusCancelled Status = "cancelled"
	// StatusRefused is a 4xx.
	StatusRefused Status = "refused"
	// StatusUnknown is used in Seen only: nothing tells.
	StatusUnknown Status = "unknown"
)

// Truth is what happened to one call. Figures are exact, to the nanosecond; those in spans have the resolution of vLLM's own
// (its wall clock is a double of seconds, so about 0.25 µs). Durations in JSON are seconds.
type Truth struct {
	TraceID   pcommon.TraceID `json:"-"`
	Trace     string          `json:"trace_id"`
	RequestID string          `json:"request_id,omitempty"`
	Model     string          `json:"model"`
	Team      string          `json:"team"`
	Engine    string          `json:"engine"`
	Route     string          `json:"route"`
	Kind      Kind            `json:"kind"`
	Stream    bool            `json:"stream"`
	Beams     int             `json:"beams,omitempty"`
	Client    bool            `json:"client_span"`
	Chunks    bool            `json:"chunk_spans"`

	// Status is the user's; HTTPStatus what the user's socket saw, 0 when it left before an answer.
	Status     Status `json:"status"`
	HTTPStatus int    `json:"http_status"`
	Error      string `json:"error,omitempty"`
	// FinishReasons, one a sequence (beam search: one a beam), of an answer that was completed.
	FinishReasons []string `json:"finish_reasons,omitempty"`
	// InputTokens and OutputTokens are the usage that the user is told (and billed); Cached is part of the input. An answer
	// that broke off has the tokens that were made until then.
	InputTokens  int `json:"input_tokens"`
	CachedTokens int `json:"cached_tokens"`
	OutputTokens int `json:"output_tokens"`

	// Start and End are the user's: sending the request, and the last byte. FirstToken is 0 without a stream.
	Start      time.Time `json:"start"`
	End        time.Time `json:"end"`
	UserTTFT   Seconds   `json:"user_ttft,omitempty"`
	UserE2E    Seconds   `json:"user_e2e"`
	UserGapMax Seconds   `json:"user_gap_max,omitempty"`

	// Outer is the outermost span that was emitted for it, and Seen what all spans together can tell.
	Outer Outermost `json:"outermost"`
	Seen  Seen      `json:"seen"`
	// Sequences that have an engine span, in order of their end. Beam search has one for each beam and step.
	Sequences []SequenceTruth `json:"sequences,omitempty"`
}

// Outermost is the span that the user's wait is measured by.
type Outermost struct {
	Layer string         `json:"layer"` // client, gateway, engine; empty: no span at all
	Span  pcommon.SpanID `json:"-"`
	Start time.Time      `json:"start"`
	End   time.Time      `json:"end"`
	// TTFT as that layer measured it (chunk spans, or the client's time_to_first_chunk); 0: it did not.
	TTFT Seconds `json:"ttft,omitempty"`
}

// Seen is what the spans of a call can tell a perfect reader. It differs from the truth where vLLM is silent: tokens of
// aborted calls, and a stream that broke off because its engine died, which looks like one that its user left.
type Seen struct {
	Spans        int    `json:"spans"`
	Status       Status `json:"status"`
	InputTokens  int    `json:"input_tokens"`
	OutputTokens int    `json:"output_tokens"`
}

// SequenceTruth is one engine span.
type SequenceTruth struct {
	Span         pcommon.SpanID `json:"-"`
	ID           string         `json:"request_id"`
	Start        time.Time      `json:"start"`
	End          time.Time      `json:"end"`
	InputTokens  int            `json:"input_tokens"`
	CachedTokens int            `json:"cached_tokens"`
	OutputTokens int            `json:"output_tokens"`
	Preemptions  int            `json:"preemptions"`
	// TTFT and E2E are the front end's, from the arrival. Queue, Prefill and Decode are the core's; Admission is what is
	// left of TTFT.
	TTFT      Seconds `json:"ttft"`
	E2E       Seconds `json:"e2e"`
	Admission Seconds `json:"admission"`
	Queue     Seconds `json:"queue"`
	Prefill   Seconds `json:"prefill"`
	Decode    Seconds `json:"decode"`
}

// Seconds is a duration that JSON shows as a number of seconds.
type Seconds time.Duration

// MarshalJSON writes seconds.
func (s Seconds) MarshalJSON() ([]byte, error) { return appendSeconds(nil, time.Duration(s)), nil }

// Float is the duration in seconds.
func (s Seconds) Float() float64 { return time.Duration(s).Seconds() }

// Totals counts calls that have ended, since the world began.
type Totals struct {
	Started      int64            `json:"started"`
	Ended        int64            `json:"ended"`
	Status       map[Status]int64 `json:"status"`
	InputTokens  int64            `json:"input_tokens"`
	OutputTokens int64            `json:"output_tokens"`
	Seen         SeenTotals       `json:"seen"`
	EngineSpans  int64            `json:"engine_spans"`
	Preemptions  int64            `json:"preemptions"`
	// Overflow counts calls answered 503 because max_in_flight was reached.
	Overflow int64 `json:"overflow"`
}

// SeenTotals sums Seen.
type SeenTotals struct {
	Calls        int64            `json:"calls"` // with at least one span
	Status       map[Status]int64 `json:"status"`
	InputTokens  int64            `json:"input_tokens"`
	OutputTokens int64            `json:"output_tokens"`
}

func newTotals() Totals {
	return Totals{Status: map[Status]int64{}, Seen: SeenTotals{Status: map[Status]int64{}}}
}

func (t *Totals) add(x *Truth) {
	t.Ended++
	t.Status[x.Status]++
	t.InputTokens += int64(x.InputTokens)
	t.OutputTokens += int64(x.OutputTokens)
	t.EngineSpans += int64(len(x.Sequences))
	if x.Seen.Spans > 0 {
		t.Seen.Calls++
		t.Seen.Status[x.Seen.Status]++
		t.Seen.InputTokens += int64(x.Seen.InputTokens)
		t.Seen.OutputTokens += int64(x.Seen.OutputTokens)
	}
}

// clone is a copy whose maps are its own.
func (t *Totals) clone() Totals {
	c := *t
	c.Status, c.Seen.Status = map[Status]int64{}, map[Status]int64{}
	for k, v := range t.Status {
		c.Status[k] = v
	}
	for k, v := range t.Seen.Status {
		c.Seen.Status[k] = v
	}
	return c
}

func appendSeconds(b []byte, d time.Duration) []byte {
	return strconv.AppendFloat(b, d.Seconds(), 'g', -1, 64)
}
