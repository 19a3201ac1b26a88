package request

import (
	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
)

// Outcome says whether a request met its objectives.
type Outcome uint8

// The outcomes. OutcomeNone is a request that no objective is for, or of which nothing was known that one could be held against.
const (
	OutcomeNone Outcome = iota
	OutcomeMet
	OutcomeMissed
)

var outcomeNames = [...]string{"", "met", "missed"}

func (o Outcome) String() string { return outcomeNames[o] }

// ParseOutcome is the inverse of String; an unknown name is OutcomeNone.
func ParseOutcome(s string) Outcome {
	for i, n := range outcomeNames {
		if n == s {
			return Outcome(i)
		}
	}
	return OutcomeNone
}

// Flags is a set of at most eight names, the first of a list in the lowest bit.
type Flags uint8

// Names are the members of the set in the order of the list.
func (f Flags) Names(list []string) []string {
	var out []string
	for i, n := range list {
		if f&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

// First is the first member of the set, "" when it is empty.
func (f Flags) First(list []string) string {
	for i, n := range list {
		if f&(1<<i) != 0 {
			return n
		}
	}
	return ""
}

// Flag is the set of one name of a list, empty for every other name.
func Flag(name string, list []string) Flags {
	for i, n := range list {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// What a request can violate, the gravest first.
const (
	ViolatedError Flags = 1 << iota
	ViolatedCancelled
	ViolatedTTFT
	ViolatedTPOT
	ViolatedE2E
	ViolatedUserTTFT
)

// Violations are the names of what can be violated.
var Violations = []string{"error", "cancelled", "ttft", "tpot", "e2e", "user_ttft"}

// What can be wrong with an answer.
const (
	IssueTruncated Flags = 1 << iota
	IssueEmpty
	IssueRepetition
	IssueMalformedJSON
	IssueRefusal
	IssueGarbled
)

// Issues are the names of what can be wrong with an answer.
var Issues = []string{"truncated", "empty", "repetition", "malformed_json", "refusal", "garbled"}

// Dimension is a label that the operator asked for.
type Dimension struct {
	Name, Value string
	// Default says that nothing told the value, so that another layer of the request may.
	Default bool
}

// Business is what the business asks of a request beside its times and tokens.
type Business struct {
	Outcome  Outcome
	Violated Flags
	// Price is what the model's tokens cost when the request began, nil when no price is known.
	Price *cost.Price
	// Cost is what the span's own share of the request costs; Reported says that the source said so, and not the price.
	Cost     Opt[cost.Amount]
	Currency string
	Reported bool
	// Unpriced says that prices are known, and none for the model.
	Unpriced bool
	// Quality is what is wrong with the answer.
	Quality Flags
	// Warmup marks one of the first requests of an engine; ColdStart is the time in seconds from the engine's start to its first answer,
	// on that request.
	Warmup    bool
	ColdStart Seconds
	// Oversize marks a request of more tokens than are usual.
	Oversize bool
	// Wasted marks an engine's work whose client had left.
	Wasted bool
	// Part marks a layer of a request that an engine's span stands for, although no parent leads from that to it.
	Part bool
	// Dimensions are the labels, in the order of the configuration.
	Dimensions []Dimension
}

// Inherit takes from another layer or sequence of the same request what b does not know, and the worse of what both say.
func (b *Business) Inherit(o *Business) {
	b.Outcome = max(b.Outcome, o.Outcome)
	b.Violated |= o.Violated
	b.Quality |= o.Quality
	b.Warmup = b.Warmup || o.Warmup
	b.Oversize = b.Oversize || o.Oversize
	b.Wasted = b.Wasted || o.Wasted
	if b.Price == nil {
		b.Price = o.Price
	}
	if !b.ColdStart.Known {
		b.ColdStart = o.ColdStart
	}
	if !b.Reported && o.Reported {
		b.Cost, b.Currency, b.Reported = o.Cost, o.Currency, true
	}
	b.Unpriced = (b.Unpriced || o.Unpriced) && b.Price == nil && !b.Reported
	b.InheritDimensions(o)
}

// InheritDimensions takes the labels that b does not have, or has by default only.
func (b *Business) InheritDimensions(o *Business) {
	shared := true // the slice may be another request's
	for _, d := range o.Dimensions {
		at := -1
		for i := range b.Dimensions {
			if b.Dimensions[i].Name == d.Name {
				at = i
				break
			}
		}
		if at >= 0 && (!b.Dimensions[at].Default || d.Default) {
			continue
		}
		if shared {
			b.Dimensions = append(make([]Dimension, 0, len(b.Dimensions)+len(o.Dimensions)), b.Dimensions...)
			shared = false
		}
		if at >= 0 {
			b.Dimensions[at] = d
		} else {
			b.Dimensions = append(b.Dimensions, d)
		}
	}
}

// Usage is the tokens of the request as a price needs them; what is unknown is none.
func (r *Request) Usage() cost.Usage {
	return cost.Usage{
		Input: r.InputTokens.Or(0), Output: r.OutputTokens.Or(0), Cached: r.CachedTokens.Or(0), Written: r.CacheWriteToken.Or(0),
		Reasoning: r.ReasoningTokens.Or(0),
	}
}
