package join_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/dialect"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
)

// read are the spans of a recording as a joiner takes them, and its batches by their lengths.
func read(t testing.TB, name string) (spans []join.Span, batches []int, requests int) {
	t.Helper()
	recorded, err := recordings.Traces(name)
	require.NoError(t, err)
	for _, td := range recorded {
		n := 0
		for _, rs := range td.ResourceSpans().All() {
			res := dialect.ReadResource(rs.Resource())
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					s := join.Span{TraceID: span.TraceID(), SpanID: span.SpanID(), ParentID: span.ParentSpanID()}
					if r, ok := dialect.Read(span, res); ok {
						s.Request = &r
						if !r.LayerOnly {
							requests++
						}
					}
					spans = append(spans, s)
					n++
				}
			}
		}
		batches = append(batches, n)
	}
	return spans, batches, requests
}

// total is what a recording came to, over all labels.
type total struct {
	requests, sequences, unresolved          int
	input, output, cached, reasoning, writes int64
}

// feed sends spans in batches of the lengths that cut gives, each twice when twice is set, and holds the joiner to its balance.
func feed(t *testing.T, spans []join.Span, cut func(left int) int, twice bool) total {
	t.Helper()
	j := join.New(join.Config{Window: 10 * time.Second, MaxSpans: 1 << 20})
	now := time.Unix(1_700_000_000, 0)
	var out total
	in, settled, duplicates := 0, 0, 0
	take := func(res join.Result) {
		for i := range res.Requests {
			l := &res.Requests[i]
			if l.First {
				out.requests++
			}
			out.input += l.InputTokens.Or(0)
			out.output += l.OutputTokens.Or(0)
			out.cached += l.CachedTokens.Or(0)
			out.reasoning += l.ReasoningTokens.Or(0)
			out.writes += l.CacheWriteToken.Or(0)
		}
		out.sequences += len(res.Engines)
		out.unresolved += res.Unresolved
		settled += res.Settled
		duplicates += res.Duplicates
		require.Equal(t, in, settled+out.unresolved+duplicates+j.Held(), "in = settled + unresolved + duplicates + held")
	}
	for len(spans) > 0 {
		n := cut(len(spans))
		for range 1 + map[bool]int{true: 1}[twice] {
			for _, s := range spans[:n] {
				if s.Request != nil && !s.Request.LayerOnly {
					in++
				}
			}
			take(j.Add(now, spans[:n], false))
		}
		spans = spans[n:]
	}
	j.Drain(take)
	require.Zero(t, j.Held())
	require.Zero(t, j.Remembered())
	if twice {
		require.Equal(t, in, 2*duplicates, "each request span came twice")
	}
	return out
}

// The totals of every recording are the same whatever order its spans come in, however they are cut into batches, and when each batch
// comes twice.
func TestTotalsOfRecordingsDoNotDependOnOrderOrBatches(t *testing.T) {
	all := 0
	for _, name := range recordings.Names() {
		t.Run(name, func(t *testing.T) {
			spans, batches, requests := read(t, name)
			all += requests
			kept := make([]request.Request, 0, requests)
			for _, s := range spans {
				if s.Request != nil {
					kept = append(kept, *s.Request)
				}
			}
			sent := slices.Clone(batches)
			want := feed(t, spans, func(int) int { n := sent[0]; sent = sent[1:]; return n }, false)
			g := rand.New(rand.NewPCG(11, uint64(len(spans))))
			for round := range 24 {
				shuffled := slices.Clone(spans)
				if round%3 != 0 { // the rest only cut otherwise
					g.Shuffle(len(shuffled), func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
				}
				got := feed(t, shuffled, func(left int) int { return 1 + g.IntN(min(left, 1+round*round)) }, round%2 == 0)
				require.Equal(t, want, got, "round %d", round)
			}
			for _, s := range spans {
				if s.Request != nil {
					require.Equal(t, kept[0], *s.Request, "the joiner changes nothing that it was given")
					kept = kept[1:]
				}
			}
		})
	}
	assert.Greater(t, all, 500)
}
