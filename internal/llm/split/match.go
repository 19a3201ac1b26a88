package split

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
)

// Match is the attribute of one sampling rule: rule i claims a trace when a span, or its resource, has attribute Key with one of Values.
type Match struct {
	Key    string
	Values map[string]struct{}
}

// MaxMatches is the most rules that Matches tells apart.
const MaxMatches = 63

// Matches notes on each span which rules it matches. It runs on arrival, before text is removed: a captured header is text.
func Matches(td ptrace.Traces, rules []Match) {
	if len(rules) == 0 {
		return
	}
	for _, rs := range td.ResourceSpans().All() {
		resource := match(rules, rs.Resource().Attributes())
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if m := resource | match(rules, s.Attributes()); m != 0 {
					s.Attributes().PutInt(names.SamplingMatched, m)
				} else {
					s.Attributes().Remove(names.SamplingMatched)
				}
			}
		}
	}
}

// match is the rules that a map matches, as bits.
func match(rules []Match, a pcommon.Map) (bits int64) {
	for i, m := range rules[:min(len(rules), MaxMatches)] {
		v, ok := a.Get(m.Key)
		if !ok {
			continue
		}
		if v.Type() == pcommon.ValueTypeSlice && v.Slice().Len() == 1 {
			v = v.Slice().At(0) // a header is captured as an array
		}
		if _, ok := m.Values[v.AsString()]; ok {
			bits |= 1 << i
		}
	}
	return bits
}
