//go:build e2e

package e2e

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

// stageNames in the order in which they partition a request.
var stageNames = []string{"llm.ingress", "llm.admission", "llm.queue", "llm.prefill", "llm.decode", "llm.return"}

// stages compares the traces that came out with the truth: every engine span is there once, and its stages partition it (with the
// outermost span around it, in whole traces) to the nanosecond, at the boundaries that the truth has.
func stages(r *report, m mode, spans []span, truths []sim.Truth) {
	byID := map[pcommon.SpanID][]span{}
	children := map[pcommon.SpanID][]span{}
	for _, s := range spans {
		byID[s.SpanID()] = append(byID[s.SpanID()], s)
		if slices.Contains(stageNames, s.Name()) {
			children[s.ParentSpanID()] = append(children[s.ParentSpanID()], s)
		}
	}
	checked := 0
	for i := range truths {
		x := &truths[i]
		for _, q := range x.Sequences {
			got := byID[q.Span]
			if len(got) != 1 {
				r.add("engine span %s of trace %s came %d times", q.Span, x.Trace, len(got))
				continue
			}
			parts := slices.Clone(children[q.Span])
			from, to := got[0].StartTimestamp(), got[0].EndTimestamp()
			if m.whole && len(x.Sequences) == 1 {
				// One sequence: ingress and return belong to the outermost span.
				parts = append(parts, children[x.Outer.Span]...)
				if outer := byID[x.Outer.Span]; len(outer) == 1 {
					from, to = outer[0].StartTimestamp(), outer[0].EndTimestamp()
				}
			}
			partition(r, x, q, parts, from, to)
			checked++
		}
	}
	if checked == 0 {
		r.add("no engine span was checked")
	}
}

func partition(r *report, x *sim.Truth, q sim.SequenceTruth, parts []span, from, to pcommon.Timestamp) {
	slices.SortFunc(parts, func(a, b span) int {
		if c := cmp.Compare(a.StartTimestamp(), b.StartTimestamp()); c != 0 {
			return c
		}
		return cmp.Compare(slices.Index(stageNames, a.Name()), slices.Index(stageNames, b.Name()))
	})
	at := from
	seen := map[string]span{}
	for _, p := range parts {
		if p.StartTimestamp() != at {
			r.add("trace %s: %s begins %v after the stage before it has ended", x.Trace, p.Name(), time.Duration(p.StartTimestamp())-time.Duration(at))
			return
		}
		if _, twice := seen[p.Name()]; twice {
			r.add("trace %s: %s is there twice", x.Trace, p.Name())
			return
		}
		at = p.EndTimestamp()
		seen[p.Name()] = p
	}
	if at != to {
		r.add("trace %s: the stages of %s end %v before the span", x.Trace, q.Span, time.Duration(to)-time.Duration(at))
		return
	}
	// The boundaries, by the truth: all follow from the first token. Half a microsecond is vLLM's clock.
	first := q.Start.Add(time.Duration(q.TTFT))
	for _, b := range []struct {
		stage string
		begin bool
		want  time.Time
	}{
		{"llm.queue", true, first.Add(-time.Duration(q.Prefill + q.Queue))},
		{"llm.prefill", true, first.Add(-time.Duration(q.Prefill))},
		{"llm.prefill", false, first},
	} {
		s, ok := seen[b.stage]
		if !ok {
			r.add("trace %s: %s has no %s", x.Trace, q.Span, b.stage)
			return
		}
		got := s.EndTimestamp().AsTime()
		if b.begin {
			got = s.StartTimestamp().AsTime()
		}
		if d := got.Sub(b.want); d < -2*time.Microsecond || d > 2*time.Microsecond {
			r.add("trace %s: a boundary of %s is off by %v", x.Trace, b.stage, d)
			return
		}
	}
}
