package join

import (
	"container/list"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Config bounds a Joiner.
type Config struct {
	// Window is how long a client's or gateway's span waits for an engine's, and how long a span is remembered after it.
	Window time.Duration
	// Remember is how long a request span is told from a retry after that; a key of it is all that is kept.
	Remember time.Duration
	// MaxSpans is the most spans that are remembered at a time; beyond it the oldest trace is settled early.
	MaxSpans int
}

// Span is one span of a batch as the joiner needs it. Request is nil for a span that is no layer of a request; its place in the tree
// still matters.
type Span struct {
	TraceID          pcommon.TraceID
	SpanID, ParentID pcommon.SpanID
	Request          *request.Request
}

// Logical is one request as it is counted, or a later part of one.
type Logical struct {
	// Request is the merged view. Its token counts are what this part adds to the totals.
	request.Request
	// Sequences is the number of engine spans in this part; 0 for a request that no engine reported.
	Sequences int
	// TPOT is the time per output token of the first sequence that has one; a sum of sequences has none.
	TPOT request.Seconds
	// First is false for a later part of a request that was counted before.
	First bool
	// Charge is what this part costs; the costs of the spans are shares of it.
	Charge Charge
}

// Result is what one call settled.
type Result struct {
	// Engines are the engine spans that were new, for the figures that engines count per sequence.
	Engines []*request.Request
	// Requests are the requests, and parts of requests, that are settled.
	Requests []Logical
	// Notes are what layers that came later know of requests that were counted before: quality, and no tokens or times.
	Notes []Logical
	// Settled is the number of request spans that do not wait any more: each is part of a request.
	Settled int
	// Duplicates is the number of request spans that had been seen before.
	Duplicates int
	// Unresolved is the number of spans that ended without a request: see Joiner.unresolved.
	Unresolved int
	// Early is the number of held spans that were settled before their window, to make room.
	Early int
}

// Joiner joins spans to requests. It is not safe for concurrent use.
type Joiner struct {
	cfg    Config
	nodes  map[key]*node
	traces map[pcommon.TraceID]*trace
	order  *list.List // of *trace, least recently touched first
	held   int
	batch  uint64 // the number of the batch that is being added
	now    time.Time
	seen   seen
	// byID finds requests by response id across traces.
	byID map[string]*identity
	// notes are what layers told of requests that were counted before, since the last batch.
	notes []Logical

	// roots are the calls that have no parent.
	roots map[rootKey]*group
	// joined are the services whose requests were seen to reach an engine, the most recent of them, and when that was last seen.
	joined *simplelru.LRU[string, time.Time]
}

// maxServices bounds Joiner.joined.
const maxServices = 10_000

// joinedLately is how long a service's last request that reached an engine says that its others should: engines stop tracing, too.
const joinedLately = time.Hour

type key struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// node is a remembered span.
type node struct {
	key
	parent pcommon.SpanID
	outer  *outer // a client's or gateway's request span
	// request: it reported a request.
	request bool
	call    bool // a layer that stands around one call, request span or plain
	// answered: an engine's call below it was counted for it.
	answered bool
}

// New returns an empty joiner.
func New(cfg Config) *Joiner {
	joined, _ := simplelru.NewLRU[string, time.Time](maxServices, nil) // the only error is a size below one
	return &Joiner{
		cfg: cfg, nodes: map[key]*node{}, traces: map[pcommon.TraceID]*trace{}, order: list.New(), byID: map[string]*identity{},
		roots: map[rootKey]*group{}, joined: joined, seen: newSeen(cfg.Remember, 4*cfg.MaxSpans),
	}
}

// Held is the number of request spans that wait.
func (j *Joiner) Held() int { return j.held }

// Remembered is the number of spans that are remembered, waiting or not.
func (j *Joiner) Remembered() int { return len(j.nodes) }

// Add takes one batch. With whole set, every trace in it is complete, and its requests are settled before Add returns.
// The joiner keeps the requests of the batch; the caller must not change them.
func (j *Joiner) Add(now time.Time, batch []Span, whole bool) Result {
	var res Result
	j.batch++
	j.now = now
	var dirty []*group
	var touched []*trace
	for i := range batch {
		s := &batch[i]
		k := key{s.TraceID, s.SpanID}
		reports := s.Request != nil && !s.Request.LayerOnly
		if _, dup := j.nodes[k]; dup || reports && j.seen.has(k) {
			if reports {
				res.Duplicates++
			}
			if t, ok := j.traces[s.TraceID]; ok {
				t.touched = now // its sender is at it still
				j.order.MoveToBack(t.elem)
			}
			continue
		}
		t := j.touch(now, s.TraceID, &touched)
		n := &node{key: k, parent: s.ParentID, request: reports, call: s.Request != nil && s.Request.Layer != request.LayerEngine}
		j.nodes[k] = n
		t.nodes = append(t.nodes, n)
		switch r := s.Request; {
		case r == nil || r.LayerOnly:
		case r.Layer == request.LayerEngine:
			res.Engines = append(res.Engines, r)
			g := j.group(t, r)
			g.add(r)
			g.touched = now
			if g.beam {
				// What a search was asked and what it answered is known when it is over.
				g.waiting++
				t.waiting++
				j.held++
				continue
			}
			res.Settled++
			if !g.dirty {
				g.dirty = true
				dirty = append(dirty, g)
			}
		default:
			j.hold(now, t, n, r)
		}
	}
	for _, g := range dirty {
		j.take(g)
		if whole {
			g.retry = g.retry || !g.settled && j.attempted(g)
		}
		res.Requests = append(res.Requests, j.settleGroup(g))
	}
	if whole {
		for _, t := range touched {
			j.settleOuters(now, t, true, &res)
			j.settleBeams(now, t, true, &res)
		}
	}
	for len(j.nodes) > j.cfg.MaxSpans && j.order.Len() > 0 {
		t := j.order.Front().Value.(*trace)
		res.Early += t.waiting
		j.drop(t, &res)
	}
	return j.noted(res)
}

// noted adds to a result what was noted meanwhile.
func (j *Joiner) noted(res Result) Result {
	res.Notes, j.notes = j.notes, nil
	return res
}

// attempted tells whether another call of an engine was counted for the call that stands around this one: a gateway that retried, or fell
// back. The outermost layer around a call decides. Only a whole trace shows it.
func (j *Joiner) attempted(g *group) bool {
	var top *node
	k := key{g.trace.id, g.parent}
	for start, hops := k, 0; hops < maxDepth && (hops == 0 || k != start); hops++ {
		n, ok := j.nodes[k]
		if !ok {
			break
		}
		if n.call {
			top = n
		}
		k.span = n.parent
	}
	if top == nil {
		return false
	}
	was := top.answered
	top.answered = true
	return was
}

// Expire settles what has waited long enough at now, and forgets what is older.
func (j *Joiner) Expire(now time.Time) Result {
	var res Result
	j.now = now
	j.seen.rotate(now)
	for e := j.order.Front(); e != nil; {
		t := e.Value.(*trace)
		e = e.Next()
		switch age := now.Sub(t.touched); {
		case age >= 2*j.cfg.Window:
			j.drop(t, &res)
		default:
			j.settleOuters(now, t, false, &res)
			j.settleBeams(now, t, false, &res)
		}
	}
	return j.noted(res)
}

// Drain settles everything and forgets it.
func (j *Joiner) Drain() Result {
	var res Result
	for _, t := range j.traces {
		j.mark(t)
	}
	for j.order.Len() > 0 {
		j.drop(j.order.Front().Value.(*trace), &res)
	}
	return j.noted(res)
}

func (j *Joiner) touch(now time.Time, id pcommon.TraceID, touched *[]*trace) *trace {
	t, ok := j.traces[id]
	if !ok {
		t = &trace{id: id}
		j.traces[id] = t
		t.elem = j.order.PushBack(t)
	}
	if t.batch != j.batch {
		t.batch = j.batch
		*touched = append(*touched, t)
		j.order.MoveToBack(t.elem)
	}
	t.touched = now
	return t
}
