package join

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	none    = request.LayerNone
	client  = request.LayerClient
	gateway = request.LayerGateway
	engine  = request.LayerEngine
)

// row is one span as a test draws it. Spans are named by a letter, "" is no parent; -1 tokens are unknown.
type row struct {
	trace        byte
	span, parent string
	layer        request.Layer
	id           string
	in, out      int64
	more         func(*request.Request)
}

func spanID(s string) (id pcommon.SpanID) {
	copy(id[:], s)
	return id
}

func (w row) joined() Span {
	s := Span{TraceID: pcommon.TraceID{w.trace}, SpanID: spanID(w.span), ParentID: spanID(w.parent)}
	if w.layer == none {
		return s
	}
	r := &request.Request{
		Layer: w.layer, Source: &request.Source{Service: "svc"}, TraceID: s.TraceID, SpanID: s.SpanID, ParentID: s.ParentID,
		Start: 1000, End: 2000, Status: request.StatusOK,
	}
	if w.layer == engine {
		r.Dialect, r.RequestID = "vllm", w.id
	} else {
		r.Dialect, r.ResponseID = "semconv", w.id
	}
	if w.in >= 0 {
		r.InputTokens = request.Some(w.in)
	}
	if w.out >= 0 {
		r.OutputTokens = request.Some(w.out)
	}
	if w.more != nil {
		w.more(r)
	}
	s.Request = r
	return s
}

func at(start pcommon.Timestamp) func(*request.Request) {
	return func(r *request.Request) { r.Start = start }
}

func asked(maxTokens int64) func(*request.Request) {
	return func(r *request.Request) { r.MaxTokens = maxTokens }
}
func beam(r *request.Request)   { r.Beam = true }
func silent(r *request.Request) { r.Status = request.StatusUnknown }
func failed(r *request.Request) { r.Status, r.ErrorType = request.StatusError, "500" }
func sglangOf(n int64) func(*request.Request) {
	return func(r *request.Request) { r.Dialect, r.Sequences = "sglang", n }
}

// sums is what a stream of spans came to.
type sums struct {
	requests                               int
	input, output, cached, reasoning       int64
	engines, settled, duplicates, unsolved int
}

func (s *sums) add(res Result) {
	for i := range res.Requests {
		l := &res.Requests[i]
		if l.First {
			s.requests++
		}
		s.input += l.InputTokens.Or(0)
		s.output += l.OutputTokens.Or(0)
		s.cached += l.CachedTokens.Or(0)
		s.reasoning += l.ReasoningTokens.Or(0)
	}
	s.engines += len(res.Engines)
	s.settled += res.Settled
	s.duplicates += res.Duplicates
	s.unsolved += res.Unresolved
}

// runner feeds a joiner and holds it to its balance at every step.
type runner struct {
	t   *testing.T
	j   *Joiner
	now time.Time
	in  int
	got sums
}

func newRunner(t *testing.T, cfg Config) *runner {
	if cfg.Window == 0 {
		cfg.Window = 10 * time.Second
	}
	if cfg.MaxSpans == 0 {
		cfg.MaxSpans = 1 << 20
	}
	return &runner{t: t, j: New(cfg), now: time.Unix(1_700_000_000, 0)}
}

func (r *runner) balance() {
	r.t.Helper()
	require.Equal(r.t, r.in, r.got.settled+r.got.unsolved+r.got.duplicates+r.j.Held(), "in = settled + unresolved + duplicates + held: %+v", r.got)
	held := 0
	for _, t := range r.j.traces {
		held += r.j.slab.at(t).waiting
	}
	require.Equal(r.t, held, r.j.Held(), "what the traces hold")
	require.LessOrEqual(r.t, r.j.Remembered(), r.j.cfg.MaxSpans)
}

// take sums a result up, and gives its memory back as the connector does.
func (r *runner) take(res Result) {
	r.got.add(res)
	r.j.Reuse(res)
}

func (r *runner) add(batch []Span, whole bool) {
	r.t.Helper()
	for i := range batch {
		if q := batch[i].Request; q != nil && !q.LayerOnly {
			r.in++
		}
	}
	r.take(r.j.Add(r.now, batch, whole))
	r.balance()
}

func (r *runner) rows(rows ...row) *runner {
	r.t.Helper()
	r.add(spansOf(rows), false)
	return r
}

func (r *runner) after(d time.Duration) *runner {
	r.t.Helper()
	r.now = r.now.Add(d)
	r.j.Expire(r.now, r.take)
	r.balance()
	return r
}

// drain settles the rest; nothing is remembered then.
func (r *runner) drain() sums {
	r.t.Helper()
	r.j.Drain(r.take)
	r.balance()
	require.Zero(r.t, r.j.Held())
	require.Zero(r.t, r.j.Remembered())
	require.Empty(r.t, r.j.traces)
	require.Empty(r.t, r.j.byID)
	require.Empty(r.t, r.j.roots)
	require.Zero(r.t, r.j.order)
	for _, used := range []int{r.j.slab.used, r.j.outers.used, r.j.idents.used, r.j.groups.used, r.j.merging.used, r.j.manies.used, r.j.rares.used, r.j.sharing.long.used} {
		require.Zero(r.t, used)
	}
	for k, at := range r.j.sharing.known {
		require.Zero(r.t, r.j.sharing.table.at(at).refs, "%q", k)
	}
	return r.got
}

func spansOf(rows []row) []Span {
	out := make([]Span, len(rows))
	for i, w := range rows {
		out[i] = w.joined()
	}
	return out
}

// Each drawing has the totals that are named, whatever order its spans come in, however they are cut into batches, and when each batch
// comes twice.
func TestTotals(t *testing.T) {
	for _, c := range []struct {
		name                    string
		spans                   []row
		requests                int
		input, output, unsolved int64
	}{
		{"one engine span", []row{
			{1, "e", "", engine, "chatcmpl-1", 10, 5, nil},
		}, 1, 10, 5, 0},
		{"an engine below its layers", []row{
			{1, "c", "", client, "chatcmpl-1", 10, 5, nil},
			{1, "h", "c", none, "", 0, 0, nil},
			{1, "g", "h", gateway, "chatcmpl-1", 11, 6, nil},
			{1, "e", "g", engine, "chatcmpl-1", 10, 5, nil},
		}, 1, 10, 5, 0},
		{"no engine: the innermost layer that reports counts", []row{
			{1, "c", "", client, "", 12, 7, nil},
			{1, "g", "c", gateway, "", 10, 5, nil},
			{1, "h", "g", none, "", 0, 0, nil},
		}, 1, 10, 5, 0},
		{"no engine: the inner layer reports nothing", []row{
			{1, "c", "", client, "", 12, 7, nil},
			{1, "g", "c", gateway, "", -1, -1, nil},
		}, 1, 12, 7, 0},
		{"several calls below a plain span", []row{
			{1, "a", "", none, "", 0, 0, nil},
			{1, "c1", "a", client, "x1", 1, 2, nil},
			{1, "c2", "a", client, "x2", 3, 4, nil},
			{1, "e", "c2", engine, "chatcmpl-9", 30, 40, nil},
		}, 2, 31, 42, 0},
		{"n > 1: input once, output summed", []row{
			{1, "c", "", client, "chatcmpl-1", 10, 9, nil},
			{1, "e0", "c", engine, "chatcmpl-1", 10, 4, nil},
			{1, "e1", "c", engine, "chatcmpl-1", 10, 3, nil},
			{1, "e2", "c", engine, "chatcmpl-1", 10, 2, nil},
		}, 1, 10, 9, 0},
		{"n > 1 before 0.14", []row{
			{1, "e0", "c", engine, "0_chatcmpl-1", 10, 4, nil},
			{1, "e1", "c", engine, "1_chatcmpl-1", 10, 3, nil},
		}, 1, 10, 7, 0},
		{"several prompts: all summed", []row{
			{1, "e0", "c", engine, "cmpl-1-0", 10, 4, nil},
			{1, "e1", "c", engine, "cmpl-1-1", 20, 3, nil},
			{1, "e2", "c", engine, "cmpl-1-2", 30, 2, nil},
		}, 1, 60, 9, 0},
		{"several prompts to embed", []row{
			{1, "e0", "c", engine, "embd-1-0", 10, 0, nil},
			{1, "e1", "c", engine, "embd-1-1", 20, 0, nil},
		}, 1, 30, 0, 0},
		{"n > 1 of several prompts: input once a prompt", []row{
			{1, "e0", "c", engine, "0_cmpl-1-0", 10, 4, nil},
			{1, "e1", "c", engine, "1_cmpl-1-0", 10, 3, nil},
			{1, "e2", "c", engine, "0_cmpl-1-1", 20, 2, nil},
			{1, "e3", "c", engine, "1_cmpl-1-1", 20, 1, nil},
		}, 1, 30, 10, 0},
		{"n > 1 without a caller's trace", []row{
			{1, "e0", "", engine, "chatcmpl-1", 10, 4, nil},
			{2, "e1", "", engine, "chatcmpl-1", 10, 3, nil},
			{3, "e2", "", engine, "chatcmpl-1", 10, 2, nil},
		}, 1, 10, 9, 0},
		{"a constant id without a caller's trace: calls differ in their arrival", []row{
			{1, "e0", "", engine, "chatcmpl-a", 10, 4, at(1)},
			{2, "e1", "", engine, "chatcmpl-a", 10, 3, at(1)},
			{3, "e0", "", engine, "chatcmpl-a", 10, 2, at(5)},
			{4, "e1", "", engine, "chatcmpl-a", 10, 1, at(5)},
		}, 2, 20, 10, 0},
		{"beam search: input of the first step, steps × beams", []row{
			{1, "b0", "c", engine, "chatcmpl-1-a1", 10, 1, beam},
			{1, "b1", "c", engine, "chatcmpl-1-a1", 11, 1, beam},
			{1, "b2", "c", engine, "chatcmpl-1-a1", 11, 1, beam},
			{1, "b3", "c", engine, "chatcmpl-1-a1", 12, 1, beam},
			{1, "b4", "c", engine, "chatcmpl-1-a1", 12, 1, beam},
		}, 1, 10, 6, 0},
		{"SGLang's sequences have ids of their own", []row{
			{1, "e0", "c", engine, "f0", 10, 4, sglangOf(3)},
			{1, "e1", "c", engine, "f1", 10, 3, sglangOf(3)},
			{1, "e2", "c", engine, "f2", 10, 2, sglangOf(3)},
		}, 1, 10, 9, 0},
		{"spans without an id are requests of their own", []row{
			{1, "e0", "c", engine, "", 10, 4, nil},
			{1, "e1", "c", engine, "", 20, 3, nil},
		}, 2, 30, 7, 0},
		{"a client in another trace, by the id", []row{
			{1, "c", "", client, "chatcmpl-1", 10, 5, nil},
			{2, "g", "", gateway, "chatcmpl-1", 10, 5, nil},
			{2, "e", "g", engine, "chatcmpl-1", 10, 5, nil},
		}, 1, 10, 5, 0},
		{"each layer in a trace of its own", []row{
			{1, "c", "", client, "chatcmpl-1", 10, 5, nil},
			{2, "g", "", gateway, "chatcmpl-1", 11, 6, nil},
			{3, "e", "", engine, "chatcmpl-1", 10, 5, nil},
		}, 1, 10, 5, 0},
		{"a client and a gateway in traces of their own, no engine: the gateway is the inner one", []row{
			{1, "c", "", client, "x1", 12, 7, nil},
			{2, "g", "", gateway, "x1", 10, 5, nil},
		}, 1, 10, 5, 0},
		{"a client without a usage and its gateway in another trace", []row{
			{1, "c", "", client, "x1", -1, -1, nil},
			{2, "g", "", gateway, "x1", 10, 5, nil},
		}, 1, 10, 5, 0},
		{"a gateway without a usage and its client in another trace", []row{
			{1, "c", "", client, "x1", 10, 5, nil},
			{2, "g", "", gateway, "x1", -1, -1, nil},
		}, 1, 10, 5, 0},
		{"the gateway's id is not the engine's, which it encloses", []row{
			{1, "c", "", client, "x1", 10, 5, nil},
			{2, "g", "", gateway, "x1", 10, 5, nil},
			{2, "e", "g", engine, "chatcmpl-7", 10, 5, nil},
		}, 1, 10, 5, 0},
		{"LiteLLM's spans stand beside the engine's in one trace", []row{
			{1, "p", "", gateway, "", 10, 5, nil},
			{1, "l", "p", gateway, "chatcmpl-1", 10, 5, nil},
			{1, "r", "l", gateway, "chatcmpl-1", 10, 5, nil},
			{1, "e", "p", engine, "chatcmpl-1", 10, 5, nil},
		}, 1, 10, 5, 0},
		{"LiteLLM's proxy whose engine made no span", []row{
			{1, "p", "", gateway, "", -1, -1, nil},
			{1, "l", "p", gateway, "chatcmpl-1", 10, 5, nil},
			{1, "r", "l", gateway, "chatcmpl-1", 10, 5, nil},
			{1, "s", "p", gateway, "chatcmpl-1", 10, 5, nil},
		}, 1, 10, 5, 0},
		{"a stub's constant id joins nothing across traces", []row{
			{1, "c", "", client, "chatcmpl-stub", 1, 1, nil},
			{2, "c", "", client, "chatcmpl-stub", 2, 2, nil},
			{3, "c", "", client, "chatcmpl-stub", 4, 4, nil},
		}, 3, 7, 7, 0},
		{"a pinned id on both sides joins nothing across traces", []row{
			{1, "c", "", client, "chatcmpl-a", 1, 1, nil},
			{2, "c", "", client, "chatcmpl-a", 2, 2, nil},
			{3, "e", "", engine, "chatcmpl-a", 4, 4, at(1)},
			{4, "e", "", engine, "chatcmpl-a", 8, 8, at(2)},
		}, 4, 15, 15, 0},
		{"a pinned id on one client and two engines joins nothing", []row{
			{1, "c", "", client, "chatcmpl-a", 1, 1, nil},
			{3, "e", "", engine, "chatcmpl-a", 4, 4, at(1)},
			{4, "e", "", engine, "chatcmpl-a", 8, 8, at(2)},
		}, 3, 13, 13, 0},
		{"a pinned id on two clients and one engine joins nothing", []row{
			{1, "c", "", client, "chatcmpl-a", 1, 1, nil},
			{2, "c", "", client, "chatcmpl-a", 2, 2, nil},
			{3, "e", "", engine, "chatcmpl-a", 4, 4, nil},
		}, 3, 7, 7, 0},
		{"a pinned id within each trace still joins what the trace joins", []row{
			{1, "c", "", client, "chatcmpl-a", 1, 1, nil},
			{1, "e", "c", engine, "chatcmpl-a", 1, 1, nil},
			{2, "c", "", client, "chatcmpl-a", 2, 2, nil},
			{2, "e", "c", engine, "chatcmpl-a", 2, 2, nil},
		}, 2, 3, 3, 0},
		{"a retry that failed, then one that reached the engine", []row{
			{1, "g", "", gateway, "", 10, 5, nil},
			{1, "c1", "g", client, "", -1, -1, failed},
			{1, "c2", "g", client, "chatcmpl-1", 10, 5, nil},
			{1, "e", "c2", engine, "chatcmpl-1", 10, 5, nil},
		}, 1, 10, 5, 0},
		{"a span that says nothing of its end, of a service whose engines are seen", []row{
			{1, "c", "", client, "chatcmpl-1", 10, 5, nil},
			{1, "e", "c", engine, "chatcmpl-1", 10, 5, nil},
			{2, "c", "", client, "", -1, -1, silent},
		}, 1, 10, 5, 1},
		{"a span that says nothing of its end, of a service whose engines are never seen", []row{
			{1, "c", "", client, "", -1, -1, silent},
			{2, "c", "", client, "", 1, 2, nil},
		}, 2, 1, 2, 0},
		{"its service is known by an id across traces", []row{
			{1, "c", "", client, "chatcmpl-1", 10, 5, nil},
			{2, "e", "", engine, "chatcmpl-1", 10, 5, nil},
			{3, "c", "", client, "", -1, -1, silent},
		}, 1, 10, 5, 1},
		{"prefilled on one engine, decoded on another", []row{
			{1, "g", "", gateway, "", 10, 5, nil},
			{1, "p", "g", engine, "chatcmpl-1", 10, 1, asked(1)},
			{1, "d", "p", engine, "chatcmpl-1", 10, 5, asked(64)},
		}, 1, 10, 5, 0},
		{"prefilled on one engine, decoded on another, n > 1", []row{
			{1, "p", "g", engine, "chatcmpl-1", 10, 1, asked(1)},
			{1, "d", "p", engine, "chatcmpl-1", 10, 5, asked(64)},
			{1, "e", "p", engine, "chatcmpl-1", 10, 4, asked(64)},
		}, 1, 10, 9, 0},
		{"many calls of two sequences in one trace, each with a sibling that read its id", manyCalls(15), 15, 150, 135, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := sums{requests: c.requests, input: c.input, output: c.output, unsolved: int(c.unsolved)}
			check := func(how string, got sums) {
				t.Helper()
				got = sums{requests: got.requests, input: got.input, output: got.output, unsolved: got.unsolved}
				require.Equal(t, want, got, how)
			}
			check("in one batch", newRunner(t, Config{}).rows(c.spans...).drain())
			one := newRunner(t, Config{})
			for _, w := range c.spans {
				one.rows(w)
			}
			check("span by span", one.drain())
			g := rand.New(rand.NewPCG(7, uint64(len(c.spans))))
			for range 300 {
				r := newRunner(t, Config{})
				spans := spansOf(c.spans)
				g.Shuffle(len(spans), func(i, k int) { spans[i], spans[k] = spans[k], spans[i] })
				twice := g.IntN(2) == 0
				for len(spans) > 0 {
					n := 1 + g.IntN(len(spans))
					r.add(spans[:n], false)
					if twice {
						r.add(spans[:n], false)
					}
					spans = spans[n:]
				}
				check("shuffled and cut", r.drain())
			}
		})
	}
}

// manyCalls are more than what a trace looks through without a map.
func manyCalls(n int) (out []row) {
	for i := range n {
		c := string(rune('a' + i))
		out = append(out, row{1, "p" + c, "", none, "", 0, 0, nil},
			row{1, "l" + c, "p" + c, gateway, "chatcmpl-" + c, 10, 9, nil},
			row{1, "e" + c, "p" + c, engine, "chatcmpl-" + c, 10, 5, nil}, row{1, "f" + c, "p" + c, engine, "chatcmpl-" + c, 10, 4, nil})
	}
	return out
}

// A beam search is one request with one record, however many batches its steps come in.
func TestABeamSearchIsCountedWhenItIsOver(t *testing.T) {
	r := newRunner(t, Config{})
	r.rows(row{1, "b3", "c", engine, "chatcmpl-1", 12, 1, beam}).after(4 * time.Second)
	assert.Zero(t, r.got.requests)
	assert.Equal(t, 1, r.j.Held())
	r.rows(row{1, "b1", "c", engine, "chatcmpl-1", 10, 1, beam}, row{1, "b2", "c", engine, "chatcmpl-1", 11, 1, beam}).after(9 * time.Second)
	assert.Zero(t, r.got.requests, "the last step is 9 s old")
	r.after(time.Second)
	assert.Equal(t, sums{requests: 1, input: 10, output: 3, engines: 3, settled: 3}, r.got)
	r.after(time.Minute)
	assert.Zero(t, r.j.Remembered())
}

// A trace that is a circle ends every walk; what the engines in it say is counted.
func TestATraceThatIsACircle(t *testing.T) {
	spans := spansOf([]row{
		{1, "a", "b", client, "x1", 1, 1, nil},
		{1, "b", "a", client, "", -1, -1, nil},
		{1, "c", "b", client, "x1", 1, 1, nil}, // its walk never comes back to it
		{1, "x", "y", none, "", 0, 0, nil},
		{1, "y", "x", none, "", 0, 0, nil},
		{1, "e", "x", engine, "chatcmpl-1", 10, 5, nil},
		{1, "s", "s", engine, "chatcmpl-2", 100, 50, nil},
	})
	g := rand.New(rand.NewPCG(8, 9))
	for range 200 {
		g.Shuffle(len(spans), func(i, k int) { spans[i], spans[k] = spans[k], spans[i] })
		r := newRunner(t, Config{})
		n := g.IntN(len(spans))
		r.add(spans[:n], g.IntN(2) == 0)
		r.add(spans[n:], false)
		got := r.drain()
		require.GreaterOrEqual(t, got.requests, 3)
		require.GreaterOrEqual(t, got.input, int64(110))
	}
}
