package join

import (
	"encoding/binary"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// compact is a request as it is remembered. Tens of thousands are, and what the garbage collector has to follow in them is most of what
// they cost: a request has 17 pointers to objects of its own, this has four, and what it says in words it shares with others like it.
type compact struct {
	shared                            *shared
	traceState, requestID, responseID string

	traceID          pcommon.TraceID
	spanID, parentID pcommon.SpanID
	start, end       pcommon.Timestamp

	seconds [numSeconds]float64
	tokens  [numTokens]int64
	// knownSeconds, knownTokens and flags have a bit for each of the fields that the functions of these names list.
	knownSeconds, flags uint16
	knownTokens         uint8

	layer             request.Layer
	status            request.Status
	outcome           request.Outcome
	violated, quality request.Flags
	reported          bool // its cost

	sequences, maxTokens, httpStatus, chunks int64
	cost                                     request.Opt[cost.Amount]
}

// shared is what requests of the same kind have in common: their source, and what they say in words. It does not change.
type shared struct {
	source     *request.Source
	words      [numWords]string
	price      *cost.Price
	dimensions []request.Dimension
	invalid    []string
}

const (
	numSeconds = 15
	numFlags   = 14
	numWords   = 10

	wordCurrency = numWords - 1
)

// The order of tokens.
const (
	tokensInput = iota
	tokensOutput
	tokensCached
	tokensReasoning
	tokensWritten
	numTokens
)

// seconds, tokens, flags and words are the fields of a request by kind. A test holds that none is forgotten.
func seconds(r *request.Request) [numSeconds]*request.Seconds {
	return [...]*request.Seconds{
		&r.Admission, &r.Queue, &r.Prefill, &r.Decode, &r.TTFT, &r.E2E, &r.KVTransfer, &r.Ingress, &r.Return, &r.UserTTFT, &r.UserE2E,
		&r.ClockSkew, &r.UserGapMax, &r.IncomingWeight, &r.ColdStart,
	}
}

func tokens(r *request.Request) [numTokens]*request.Tokens {
	return [...]*request.Tokens{&r.InputTokens, &r.OutputTokens, &r.CachedTokens, &r.ReasoningTokens, &r.CacheWriteToken}
}

func flags(r *request.Request) [numFlags]*bool {
	return [...]*bool{
		&r.Beam, &r.NoFirstToken, &r.PrefillHasQueue, &r.OwnStages, &r.LayerOnly, &r.Tentative, &r.Processed, &r.UserTTFTEstimated,
		&r.Partial, &r.Unpriced, &r.Warmup, &r.Oversize, &r.Wasted, &r.Part,
	}
}

func words(r *request.Request) [numWords]*string {
	return [...]*string{
		&r.Dialect, &r.Model, &r.ResponseModel, &r.Operation, &r.Provider, &r.ErrorType, &r.FinishReason, &r.Decision, &r.Rule, &r.Currency,
	}
}

// pack makes c what is remembered of r.
func (s *sharing) pack(r *request.Request, c *compact) {
	*c = compact{
		shared: s.of(r), traceState: r.TraceState, requestID: r.RequestID, responseID: r.ResponseID,
		traceID: r.TraceID, spanID: r.SpanID, parentID: r.ParentID, start: r.Start, end: r.End,
		layer: r.Layer, status: r.Status, outcome: r.Outcome, violated: r.Violated, quality: r.Quality, reported: r.Reported,
		sequences: r.Sequences, maxTokens: r.MaxTokens, httpStatus: r.HTTPStatus, chunks: r.Chunks, cost: r.Cost,
	}
	for i, f := range seconds(r) {
		if f.Known {
			c.seconds[i] = f.Value
			c.knownSeconds |= 1 << i
		}
	}
	for i, f := range tokens(r) {
		if f.Known {
			c.tokens[i] = f.Value
			c.knownTokens |= 1 << i
		}
	}
	for i, f := range flags(r) {
		if *f {
			c.flags |= 1 << i
		}
	}
}

// unpack makes r what was packed. Its slices are shared and at their capacity: who adds to one gets one of his own.
func (c *compact) unpack(r *request.Request) {
	*r = request.Request{
		Source: c.shared.source, TraceState: c.traceState, RequestID: c.requestID, ResponseID: c.responseID,
		TraceID: c.traceID, SpanID: c.spanID, ParentID: c.parentID, Start: c.start, End: c.end,
		Layer: c.layer, Status: c.status, Sequences: c.sequences, MaxTokens: c.maxTokens, HTTPStatus: c.httpStatus, Chunks: c.chunks,
		Invalid: c.shared.invalid,
		Business: request.Business{
			Outcome: c.outcome, Violated: c.violated, Quality: c.quality, Reported: c.reported, Cost: c.cost, Price: c.shared.price, Dimensions: c.shared.dimensions,
		},
	}
	for i, f := range words(r) {
		*f = c.shared.words[i]
	}
	for i, f := range seconds(r) {
		*f = request.Seconds{Value: c.seconds[i], Known: c.knownSeconds&(1<<i) != 0}
	}
	for i, f := range tokens(r) {
		*f = request.Tokens{Value: c.tokens[i], Known: c.knownTokens&(1<<i) != 0}
	}
	for i, f := range flags(r) {
		*f = c.flags&(1<<i) != 0
	}
}

// reports tells whether it states a usage.
func (c *compact) reports() bool { return c.knownTokens&(1<<tokensInput|1<<tokensOutput) != 0 }

func (c *compact) currency() string { return c.shared.words[wordCurrency] }

// usage is the tokens as a price needs them; what is unknown is none.
func (c *compact) usage() cost.Usage {
	return cost.Usage{
		Input: c.tokens[tokensInput], Output: c.tokens[tokensOutput], Cached: c.tokens[tokensCached],
		Written: c.tokens[tokensWritten], Reasoning: c.tokens[tokensReasoning],
	}
}

// addTokens adds its tokens to those of a request.
func (c *compact) addTokens(to *request.Request) {
	for i, f := range tokens(to) {
		if c.knownTokens&(1<<i) != 0 {
			*f = request.Some(f.Or(0) + c.tokens[i])
		}
	}
}

// maxShared bounds what is looked for to be shared. A caller who invents names fills it; then it begins anew, and what it had lives as
// long as a request that has it.
const maxShared = 4096

// sharing finds what requests have in common.
type sharing struct {
	sources map[request.Source]source
	known   map[string]*shared
	key     []byte
	// last is the source that was asked for last: the requests of a batch have few.
	last     *request.Source
	lastFrom source
	numbered uint64
}

type source struct {
	*request.Source
	number uint64
}

func (s *sharing) from(r *request.Source) source {
	if r == s.last && r != nil {
		return s.lastFrom
	}
	if r == nil {
		return source{}
	}
	out, ok := s.sources[*r]
	if !ok {
		if s.sources == nil || len(s.sources) >= maxShared {
			s.sources = map[request.Source]source{}
		}
		s.numbered++
		out = source{r, s.numbered}
		s.sources[*r] = out
	}
	s.last, s.lastFrom = r, out
	return out
}

// of is what r shares, the same for all requests that say the same.
func (s *sharing) of(r *request.Request) *shared {
	from := s.from(r.Source)
	// Each text has its length before it: a model can be called anything.
	k := binary.AppendUvarint(s.key[:0], from.number)
	text := func(t string) { k = append(binary.AppendUvarint(k, uint64(len(t))), t...) }
	for _, w := range words(r) {
		text(*w)
	}
	k = binary.AppendUvarint(k, uint64(len(r.Dimensions)))
	for i := range r.Dimensions {
		d := &r.Dimensions[i]
		text(d.Name)
		text(d.Value)
		if d.Default {
			k = append(k, 1)
		} else {
			k = append(k, 0)
		}
	}
	k = binary.AppendUvarint(k, uint64(len(r.Invalid)))
	for _, n := range r.Invalid {
		text(n)
	}
	if r.Price != nil {
		k = r.Price.AppendKey(k)
	}
	s.key = k
	if sh, ok := s.known[string(k)]; ok {
		return sh
	}
	if s.known == nil || len(s.known) >= maxShared {
		s.known = map[string]*shared{}
	}
	sh := &shared{source: from.Source, price: r.Price, dimensions: slices.Clip(r.Dimensions), invalid: slices.Clip(r.Invalid)}
	for i, w := range words(r) {
		sh.words[i] = *w
	}
	s.known[string(k)] = sh
	return sh
}
