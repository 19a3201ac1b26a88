package join

import (
	"encoding/binary"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// compact is a request as it is remembered. Tens of thousands are, and what the garbage collector has to follow in them would be most of
// what they cost: a request has 17 pointers to objects of its own. This has none: what it says in words it shares with others like it,
// and its ids are in itself.
type compact struct {
	shared ref // of sharing
	long   ref // ids that text has no room for
	// text is the tracestate and the ids, one behind the other, of these lengths.
	text [60]byte
	lens [3]uint8

	layer             request.Layer
	status            request.Status
	outcome           request.Outcome
	violated, quality request.Flags
	reported          bool // its cost
	// knownSeconds, knownTokens and flags have a bit for each of the fields that the functions of these names list.
	knownTokens         uint8
	knownSeconds, flags uint16

	traceID          pcommon.TraceID
	spanID, parentID pcommon.SpanID
	start, end       pcommon.Timestamp

	seconds [numSeconds]float64
	tokens  [numTokens]int64

	sequences, maxTokens, httpStatus, chunks int64
	cost                                     request.Opt[cost.Amount]
}

// ids are what hardly two requests share.
type ids struct{ traceState, requestID, responseID string }

// shared is what requests of the same kind have in common: their source, and what they say in words. But for refs it does not change.
type shared struct {
	key  string
	refs int

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

// pack makes c what is remembered of r, instead of what it was.
func (s *sharing) pack(r *request.Request, c *compact) {
	s.forget(c)
	*c = compact{
		shared:  s.of(r),
		traceID: r.TraceID, spanID: r.SpanID, parentID: r.ParentID, start: r.Start, end: r.End,
		layer: r.Layer, status: r.Status, outcome: r.Outcome, violated: r.Violated, quality: r.Quality, reported: r.Reported,
		sequences: r.Sequences, maxTokens: r.MaxTokens, httpStatus: r.HTTPStatus, chunks: r.Chunks, cost: r.Cost,
	}
	if len(r.TraceState)+len(r.RequestID)+len(r.ResponseID) > len(c.text) {
		var l *ids
		c.long, l = s.long.add()
		*l = ids{r.TraceState, r.RequestID, r.ResponseID}
	} else {
		at := 0
		for i, t := range [...]string{r.TraceState, r.RequestID, r.ResponseID} {
			at += copy(c.text[at:], t)
			c.lens[i] = uint8(len(t))
		}
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

// forget lets go of what c shares.
func (s *sharing) forget(c *compact) {
	if c.shared != 0 {
		s.table.at(c.shared).refs--
		c.shared = 0
	}
	if c.long != 0 {
		s.long.release(c.long)
		c.long = 0
	}
}

// ids are those of c.
func (s *sharing) ids(c *compact) ids {
	if l := s.long.at(c.long); l != nil {
		return *l
	}
	a := int(c.lens[0])
	b := a + int(c.lens[1])
	end := b + int(c.lens[2])
	t := string(c.text[:end])
	return ids{t[:a], t[a:b], t[b:end]}
}

func (s *sharing) service(c *compact) string { return s.table.at(c.shared).source.Service }

func (s *sharing) price(c *compact) *cost.Price { return s.table.at(c.shared).price }

func (s *sharing) currency(c *compact) string { return s.table.at(c.shared).words[wordCurrency] }

// unpack makes r what was packed. Its slices are shared and at their capacity: who adds to one gets one of his own.
func (s *sharing) unpack(c *compact, r *request.Request) {
	sh, id := s.table.at(c.shared), s.ids(c)
	*r = request.Request{
		Source: sh.source, TraceState: id.traceState, RequestID: id.requestID, ResponseID: id.responseID,
		TraceID: c.traceID, SpanID: c.spanID, ParentID: c.parentID, Start: c.start, End: c.end,
		Layer: c.layer, Status: c.status, Sequences: c.sequences, MaxTokens: c.maxTokens, HTTPStatus: c.httpStatus, Chunks: c.chunks,
		Invalid: sh.invalid,
		Business: request.Business{
			Outcome: c.outcome, Violated: c.violated, Quality: c.quality, Reported: c.reported, Cost: c.cost, Price: sh.price,
			Dimensions: sh.dimensions,
		},
	}
	for i, f := range words(r) {
		*f = sh.words[i]
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

// maxShared is how much that nothing shares any more is kept, since the next request may.
const maxShared = 4096

// sharing finds what requests have in common.
type sharing struct {
	table slab[shared]
	known map[string]ref
	long  slab[ids]
	key   []byte

	sources map[request.Source]source
	// last is the source that was asked for last: the requests of a batch have few.
	last     *request.Source
	lastFrom source
	numbered uint64
	sweepAt  int
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

// of is what r shares, the same for all requests that say the same; it is kept until it is forgotten as often.
func (s *sharing) of(r *request.Request) ref {
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
	if at, ok := s.known[string(k)]; ok {
		s.table.at(at).refs++
		return at
	}
	s.sweep()
	at, sh := s.table.add()
	*sh = shared{key: string(k), refs: 1, source: from.Source, price: r.Price, dimensions: slices.Clip(r.Dimensions), invalid: slices.Clip(r.Invalid)}
	for i, w := range words(r) {
		sh.words[i] = *w
	}
	s.known[sh.key] = at
	return at
}

// sweep removes what nothing shares, when there is much. What is shared is bounded by what is remembered.
func (s *sharing) sweep() {
	if s.known == nil {
		s.known, s.sweepAt = map[string]ref{}, maxShared
	}
	if len(s.known) < s.sweepAt {
		return
	}
	for k, at := range s.known {
		if s.table.at(at).refs == 0 {
			delete(s.known, k)
			s.table.release(at)
		}
	}
	s.sweepAt = max(maxShared, 2*len(s.known))
}
