package split

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// brokenTraces are a client's trace and the engine's, which a proxy that passes no context on has parted.
func brokenTraces(client, engine byte, id string) (c, e *tree) {
	c, e = newTree(client), newTree(engine)
	c.span("app", "chat m", ptrace.SpanKindClient, 1, 0, 0, 300, map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.response.id": id,
		"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 21,
	})
	e.engine(3, 0, 10, 260, id)
	return c, e
}

func linkedWhole() *Whole {
	return NewWhole(WholeOptions{Tag: true, Links: NewLinks()})
}

func TestLayersInDifferentTracesAreLinkedByTheirID(t *testing.T) {
	w := linkedWhole()
	c, e := brokenTraces(1, 2, "chatcmpl-1")
	whole(w, c, keepAll)
	s, _ := findSpan(c.td, 1)
	assert.Zero(t, s.Links().Len(), "the other side was not known yet")
	whole(w, e, keepAll)
	s, _ = findSpan(e.td, 3)
	require.Equal(t, 1, s.Links().Len())
	assert.Equal(t, c.id, s.Links().At(0).TraceID())
	assert.Equal(t, "client", s.Links().At(0).Attributes().AsRaw()["llmspan.layer"])
	assert.Equal(t, "m", attr(t, e.td, 3, "gen_ai.request.model"), "only the client knew the model")

	w = linkedWhole()
	c, e = brokenTraces(1, 2, "chatcmpl-1")
	whole(w, e, keepAll)
	whole(w, c, keepAll)
	s, _ = findSpan(c.td, 1)
	require.Equal(t, 1, s.Links().Len(), "the later of the two has the link")
	assert.Equal(t, e.id, s.Links().At(0).TraceID())
}

// Decided on together, each of the two has the link, whichever stands first: both are known before either is asked for.
func TestLayersThatAreDecidedTogetherAreBothLinked(t *testing.T) {
	for range 20 { // once it depended on the order of a map
		for _, engineFirst := range []bool{true, false} {
			w := linkedWhole()
			c, e := brokenTraces(1, 2, "chatcmpl-1")
			first, second := c, e
			if engineFirst {
				first, second = e, c
			}
			both := &tree{id: first.id, td: first.td}
			second.td.ResourceSpans().MoveAndAppendTo(both.td.ResourceSpans())
			whole(w, both, keepAll)
			for span, other := range map[byte]pcommon.TraceID{1: e.id, 3: c.id} {
				s, _ := findSpan(both.td, span)
				require.Equal(t, 1, s.Links().Len(), "span %d, engine first %t", span, engineFirst)
				assert.Equal(t, other, s.Links().At(0).TraceID())
			}
			assert.Equal(t, "m", attr(t, both.td, 3, "gen_ai.request.model"))
		}
	}
}

func TestAnIDThatRepeatsLinksNothing(t *testing.T) {
	w := linkedWhole()
	for i := byte(1); i < 6; i += 2 {
		c, e := brokenTraces(i, i+1, "chatcmpl-pinned")
		whole(w, c, keepAll)
		whole(w, e, keepAll)
		if i > 1 {
			s, _ := findSpan(e.td, 3)
			assert.Zero(t, s.Links().Len())
		}
	}
}

func TestAnIDIsForgotten(t *testing.T) {
	w := linkedWhole()
	c, e := brokenTraces(1, 2, "chatcmpl-1")
	Recognise(c.td, w.o.Options)
	w.Traces(time.Unix(1, 0), c.td, nil, keepAll)
	Recognise(e.td, w.o.Options)
	w.Traces(time.Unix(1, 0).Add(6*time.Minute), e.td, nil, keepAll)
	s, _ := findSpan(e.td, 3)
	assert.Zero(t, s.Links().Len())
}
