package join

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// The window is 10 s in these tests.

func TestAnOuterLayerWaitsForTheWindow(t *testing.T) {
	r := newRunner(t, Config{})
	r.rows(row{1, "c", "", client, "x1", 10, 5, nil}).after(9 * time.Second)
	assert.Zero(t, r.got.requests)
	assert.Equal(t, 1, r.j.Held())
	r.after(time.Second)
	assert.Equal(t, sums{requests: 1, input: 10, output: 5, settled: 1}, r.got)
	assert.Equal(t, 1, r.j.Remembered(), "for a retry, and for what comes late")
	r.rows(row{1, "c", "", client, "x1", 10, 5, nil})
	assert.Equal(t, 1, r.got.duplicates)
	r.after(19 * time.Second)
	assert.Equal(t, 1, r.j.Remembered(), "its sender was at it")
	r.after(time.Second)
	assert.Zero(t, r.j.Remembered())
	r.drain()
}

// OTLP senders retry for minutes: long after a trace was forgotten its request spans are told from new ones.
func TestALateRetryIsNoNewRequest(t *testing.T) {
	r := newRunner(t, Config{Remember: 5 * time.Minute})
	call := row{1, "e", "", engine, "chatcmpl-x", 10, 5, nil}
	r.rows(call, row{2, "c", "", client, "y", 10, 5, nil}).after(4 * time.Minute)
	assert.Zero(t, r.j.Remembered())
	assert.Equal(t, 2, r.got.requests)
	r.rows(call, row{2, "c", "", client, "y", 10, 5, nil})
	assert.Equal(t, 2, r.got.requests)
	assert.Equal(t, 2, r.got.duplicates)
	r.after(6 * time.Minute).after(6 * time.Minute).rows(call)
	assert.Equal(t, 3, r.got.requests, "it is not remembered for ever")
	r.drain()
}

func TestWhatIsRememberedOfForgottenTracesIsBounded(t *testing.T) {
	s := newSeen(time.Hour, 100)
	for i := range 1000 {
		s.add(time.Unix(int64(i), 0), pcommon.TraceID{byte(i / 10)}, []pcommon.SpanID{{byte(i), byte(i >> 8)}})
		require.LessOrEqual(t, s.recent.spans+s.older.spans, 200)
	}
	for i := 900; i < 1000; i++ { // of a trace some have room beside its id, and some have not
		assert.True(t, s.has(key{pcommon.TraceID{byte(i / 10)}, pcommon.SpanID{byte(i), byte(i >> 8)}}))
		assert.False(t, s.has(key{pcommon.TraceID{byte(i/10 - 1)}, pcommon.SpanID{byte(i), byte(i >> 8)}}))
	}
	assert.False(t, s.any(pcommon.TraceID{0}))
	assert.False(t, s.has(key{span: pcommon.SpanID{1, 0}}))
}

// A span is exported after the ones below it, which may be an export apart.
func TestALayerThatComesAfterTheOneBelowItIsTheSameRequest(t *testing.T) {
	for _, c := range []struct {
		name  string
		apart time.Duration
		outer row
	}{
		{"while it waits", 5 * time.Second, row{1, "p", "", gateway, "", 10, 5, nil}},
		{"while it waits, with its id", 5 * time.Second, row{1, "p", "", gateway, "x1", 10, 5, nil}},
		{"after it was counted", 15 * time.Second, row{1, "p", "", gateway, "", 10, 5, nil}},
		{"after it was counted, with its id", 15 * time.Second, row{1, "p", "", gateway, "x1", 10, 5, nil}},
		{"after it was counted, with an id of its own", 15 * time.Second, row{1, "p", "", gateway, "x2", 10, 5, nil}},
		{"after it was counted, without a usage", 15 * time.Second, row{1, "p", "", gateway, "", -1, -1, nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRunner(t, Config{}).rows(row{1, "c", "p", client, "x1", 10, 5, nil})
			for d := c.apart; d > 0; d -= time.Second {
				r.after(time.Second)
			}
			r.rows(c.outer)
			for range 40 {
				r.after(time.Second)
			}
			assert.Equal(t, sums{requests: 1, input: 10, output: 5, settled: 2}, r.got)
			r.drain()
		})
	}
	t.Run("below one that was counted with its own usage", func(t *testing.T) {
		r := newRunner(t, Config{}).rows(row{1, "p", "", gateway, "", 10, 5, nil}).after(15 * time.Second)
		r.rows(row{1, "c", "p", client, "x1", 10, 5, nil})
		assert.Equal(t, sums{requests: 1, input: 10, output: 5, settled: 2}, r.drain())
	})
	t.Run("its usage is news where the one below had none", func(t *testing.T) {
		r := newRunner(t, Config{}).rows(row{1, "c", "p", client, "x1", -1, -1, nil}).after(15 * time.Second)
		r.rows(row{1, "p", "", gateway, "x1", 10, 5, nil})
		assert.Equal(t, sums{requests: 1, input: 10, output: 5, settled: 2}, r.drain())
	})
}

// A stream of further layers does not put a count off for ever.
func TestAComponentWaitsTwiceTheWindowAtMost(t *testing.T) {
	r := newRunner(t, Config{}).rows(row{1, "p", "", gateway, "", -1, -1, nil})
	for i := range 19 {
		r.rows(row{1, "c" + string(rune('a'+i)), "p", client, "x" + string(rune('a'+i)), 1, 1, nil}).after(time.Second)
	}
	assert.Zero(t, r.got.requests)
	r.after(time.Second)
	assert.Equal(t, 1, r.got.requests)
	assert.Zero(t, r.j.Held())
	assert.Equal(t, int64(19), r.drain().input)
}

func TestAnEngineThatComesLate(t *testing.T) {
	late := row{1, "e", "c", engine, "chatcmpl-1", 11, 6, nil}
	wait := func(t *testing.T, w row) *runner { return newRunner(t, Config{}).rows(w).after(15 * time.Second) }
	t.Run("its request was counted with the client's usage", func(t *testing.T) {
		r := wait(t, row{1, "c", "", client, "chatcmpl-1", 10, 5, nil}).rows(late)
		assert.Equal(t, sums{requests: 1, input: 10, output: 5, engines: 1, settled: 2}, r.drain())
	})
	t.Run("its request was counted without a usage", func(t *testing.T) {
		r := wait(t, row{1, "c", "", client, "chatcmpl-1", -1, -1, nil}).rows(late)
		assert.Equal(t, sums{requests: 1, input: 11, output: 6, engines: 1, settled: 2}, r.drain())
	})
	t.Run("its request was counted in another trace", func(t *testing.T) {
		r := wait(t, row{2, "x", "", client, "chatcmpl-1", 10, 5, nil}).rows(late)
		assert.Equal(t, sums{requests: 1, input: 10, output: 5, engines: 1, settled: 2}, r.drain())
	})
	t.Run("its request was left unresolved: now it is one", func(t *testing.T) {
		r := newRunner(t, Config{}).rows(
			row{3, "c", "", client, "chatcmpl-0", 1, 1, nil}, row{3, "e", "c", engine, "chatcmpl-0", 1, 1, nil},
			row{1, "c", "", client, "", -1, -1, silent},
		).after(15 * time.Second)
		require.Equal(t, sums{requests: 1, input: 1, output: 1, engines: 1, settled: 2, unsolved: 1}, r.got)
		r.rows(late)
		assert.Equal(t, sums{requests: 2, input: 12, output: 7, engines: 2, settled: 3, unsolved: 1}, r.drain())
	})
	t.Run("its service's engines have long stopped tracing: it is one", func(t *testing.T) {
		r := newRunner(t, Config{}).rows(
			row{3, "c", "", client, "chatcmpl-0", 1, 1, nil}, row{3, "e", "c", engine, "chatcmpl-0", 1, 1, nil},
		).after(15 * time.Second).after(time.Hour).rows(row{1, "c", "", client, "", -1, -1, silent})
		assert.Equal(t, sums{requests: 2, input: 1, output: 1, engines: 1, settled: 3}, r.drain())
	})
	t.Run("a refused request is one and waits for no engine", func(t *testing.T) {
		refused := func(r *request.Request) { r.Status, r.HTTPStatus = request.StatusUnknown, 429 }
		r := newRunner(t, Config{}).rows(
			row{3, "c", "", client, "chatcmpl-0", 1, 1, nil}, row{3, "e", "c", engine, "chatcmpl-0", 1, 1, nil},
			row{1, "c", "", client, "", -1, -1, refused},
		)
		assert.Equal(t, sums{requests: 2, input: 1, output: 1, engines: 1, settled: 3}, r.drain())
	})
	t.Run("after its request was forgotten it is a request again", func(t *testing.T) {
		r := wait(t, row{1, "c", "", client, "chatcmpl-1", 10, 5, nil}).after(10 * time.Second).rows(late)
		assert.Equal(t, sums{requests: 2, input: 21, output: 11, engines: 1, settled: 2}, r.drain())
	})
	t.Run("a second sequence adds its output", func(t *testing.T) {
		r := wait(t, late).rows(row{1, "f", "c", engine, "chatcmpl-1", 11, 3, nil})
		assert.Equal(t, sums{requests: 1, input: 11, output: 9, engines: 2, settled: 2}, r.drain())
	})
}

func TestAnIDIsJudgedAtTheEndOfTheWait(t *testing.T) {
	t.Run("joined while it is alone", func(t *testing.T) {
		r := newRunner(t, Config{}).rows(row{1, "e", "", engine, "chatcmpl-a", 1, 1, nil}).rows(row{2, "c", "", client, "chatcmpl-a", 1, 1, nil})
		assert.Equal(t, 1, r.drain().requests)
	})
	t.Run("the engine's trace may be forgotten before", func(t *testing.T) {
		r := newRunner(t, Config{}).rows(row{1, "e", "", engine, "chatcmpl-a", 1, 1, nil}).after(15 * time.Second)
		r.rows(row{2, "c", "", client, "chatcmpl-a", 1, 1, nil}).after(5 * time.Second)
		assert.Equal(t, 1, r.j.Remembered(), "the client")
		assert.Equal(t, sums{requests: 1, input: 1, output: 1, engines: 1, settled: 2}, r.drain())
	})
	t.Run("not any more once another call has it", func(t *testing.T) {
		r := newRunner(t, Config{}).rows(row{1, "e", "", engine, "chatcmpl-a", 1, 1, nil}).rows(row{2, "c", "", client, "chatcmpl-a", 2, 2, nil})
		r.after(9 * time.Second).rows(row{3, "e", "", engine, "chatcmpl-a", 4, 4, at(7)})
		assert.Equal(t, sums{requests: 3, input: 7, output: 7, engines: 2, settled: 3}, r.drain())
	})
}

func TestWholeTracesAreSettledAtOnce(t *testing.T) {
	r := newRunner(t, Config{})
	r.add(spansOf([]row{
		{1, "c", "", client, "chatcmpl-1", 10, 5, nil},
		{1, "e", "c", engine, "chatcmpl-1", 10, 5, nil},
		{2, "c", "", client, "x", 1, 2, nil},
		{3, "b", "c", engine, "chatcmpl-9", 3, 1, beam},
	}), true)
	assert.Equal(t, sums{requests: 3, input: 14, output: 8, engines: 2, settled: 4}, r.got)
	assert.Zero(t, r.j.Held())
	r.drain()
}

// Beyond MaxSpans the oldest trace is settled early; nothing is lost.
func TestMaxSpansBounds(t *testing.T) {
	r := newRunner(t, Config{MaxSpans: 10})
	early := 0
	for i := range 100 {
		r.now = r.now.Add(time.Millisecond)
		span := row{byte(1 + i), "c", "", client, "", 1, 1, nil}.joined()
		r.in++
		res := r.j.Add(r.now, []Span{span}, false)
		early += res.Early
		r.got.add(res)
		r.balance()
	}
	assert.Equal(t, 90, early)
	assert.Equal(t, sums{requests: 100, input: 100, output: 100, settled: 100}, r.drain())

	// One trace larger than the bound, and plain spans, which are remembered for their place alone.
	r = newRunner(t, Config{MaxSpans: 10})
	var spans []Span
	for i := range 50 {
		spans = append(spans, row{1, "h" + string(rune('a'+i)), "", none, "", 0, 0, nil}.joined(), row{1, "c" + string(rune('a'+i)), "", client, "", 1, 1, nil}.joined())
	}
	r.add(spans, false)
	assert.Zero(t, r.j.Remembered())
	assert.Equal(t, sums{requests: 50, input: 50, output: 50, settled: 50}, r.drain())
}

// What a forgotten trace had under an id that another one still has is let go of; that it was counted stays known.
func TestAForgottenTraceIsLetGoOf(t *testing.T) {
	r := newRunner(t, Config{}).rows(row{1, "c", "", client, "x1", 10, 5, nil}).after(15 * time.Second)
	r.rows(row{2, "g", "", gateway, "x1", 10, 5, nil}).after(5 * time.Second)
	require.Equal(t, 1, r.j.Remembered())
	for _, s := range r.j.idents.at(r.j.byID[hashID("x1")]).sides {
		for o := r.j.outers.at(s.first); o != nil; o = r.j.outers.at(o.beside) {
			assert.Equal(t, pcommon.TraceID{2}, o.trace)
		}
	}
	assert.Equal(t, sums{requests: 1, input: 10, output: 5, settled: 2}, r.drain())
}

// A constant id that never pauses is not what grows: nothing of a trace that is forgotten is kept under it.
func TestAConstantIDDoesNotGrow(t *testing.T) {
	r := newRunner(t, Config{MaxSpans: 100})
	for i := range 5_000 {
		r.now = r.now.Add(10 * time.Millisecond)
		trace := pcommon.TraceID{1, byte(i), byte(i >> 8)}
		batch := []Span{
			row{0, "c", "", client, "chatcmpl-stub", 1, 1, nil}.joined(), row{0, "e", "", engine, "chatcmpl-stub", 1, 1, at(pcommon.Timestamp(i))}.joined(),
		}
		batch[0].TraceID, batch[0].Request.TraceID = trace, trace
		trace[15] = 1
		batch[1].TraceID, batch[1].Request.TraceID = trace, trace
		r.add(batch, false)
		require.LessOrEqual(t, len(r.j.roots), 100)
		for _, i := range r.j.byID {
			for _, s := range r.j.idents.at(i).sides {
				require.Equal(t, s.first, s.last)
			}
		}
	}
	require.LessOrEqual(t, len(r.j.byID), 1)
	got := r.drain()
	assert.Equal(t, 10_000, got.requests, "it joins nothing")
}
