package doctest

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Spans shows what became of spans, as a unified diff shows what became of a file: one line a span, one line an attribute, in the order
// in which they stand. Attributes that stay as they were are shown when all is set.
//
//	  llm_request  Server 145 ms
//	      gen_ai.usage.prompt_tokens: 65
//	+     llmspan.ttft: 0.0807948
//	+ llm.queue  Internal 0.05 ms, child of llm_request
func Spans(in, out ptrace.Traces, all bool) string {
	before, names := map[pcommon.SpanID]ptrace.Span{}, map[pcommon.SpanID]string{}
	for s := range each(in) {
		before[s.SpanID()] = s
	}
	for s := range each(out) {
		names[s.SpanID()] = s.Name()
	}
	var b strings.Builder
	for s := range each(out) {
		old, ok := before[s.SpanID()]
		mark, attrs := " ", pcommon.NewMap()
		if ok {
			attrs = old.Attributes()
		} else {
			mark = "+"
		}
		fmt.Fprintf(&b, "%s %s  %s %s", mark, s.Name(), s.Kind(), millis(s))
		if p, ok := names[s.ParentSpanID()]; ok {
			fmt.Fprintf(&b, ", child of %s", p)
		}
		b.WriteByte('\n')
		if !ok {
			continue // its one attribute says what its name says
		}
		for k, v := range attrs.All() {
			now, kept := s.Attributes().Get(k)
			switch same := kept && now.Equal(v); {
			case same && all:
				fmt.Fprintf(&b, "      %s: %s\n", k, value(v))
			case !same:
				fmt.Fprintf(&b, "-     %s: %s\n", k, value(v))
			}
		}
		for k, v := range s.Attributes().All() {
			if old, had := attrs.Get(k); !had || !old.Equal(v) {
				fmt.Fprintf(&b, "+     %s: %s\n", k, value(v))
			}
		}
	}
	return b.String()
}

func each(td ptrace.Traces) func(func(ptrace.Span) bool) {
	return func(yield func(ptrace.Span) bool) {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}

func millis(s ptrace.Span) string {
	return fmt.Sprintf("%.4g ms", float64(s.EndTimestamp()-s.StartTimestamp())/1e6)
}

// value is an attribute's value, numbers to six digits; a long text is cut.
func value(v pcommon.Value) string {
	if v.Type() == pcommon.ValueTypeDouble {
		return fmt.Sprintf("%.6g", v.Double())
	}
	const most = 60
	s := []rune(v.AsString())
	if len(s) > most {
		return string(s[:most]) + "…"
	}
	return string(s)
}
