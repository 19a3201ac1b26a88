package join

import (
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
	cfg        Config
	traces     map[pcommon.TraceID]ref
	remembered int // spans
	// slab has the traces, outers and groups their layers and calls, idents what is known under ids.
	slab   slab[trace]
	outers slab[outer]
	idents slab[identity]
	groups slab[group]
	manies manies
	rares  slab[rare]
	// merging has what the groups say together in which there is something to settle.
	merging slab[request.Request]
	order   queue // least recently touched first
	held    int
	batch   uint64 // the number of the batch that is being added
	pass    uint64 // the number of the look at the layers that wait
	now     time.Time
	began   time.Time // times are remembered from here
	seen    seen
	// byID finds requests by response id across traces.
	byID map[idHash]ref
	// notes are what layers told of requests that were counted before, since the last batch.
	notes []Logical

	// roots are the calls that have no parent.
	roots map[rootKey]ref
	// joined are the services whose requests were seen to reach an engine, the most recent of them, and when that was last seen.
	joined *simplelru.LRU[string, time.Time]

	sharing sharing
	// What is used again; it is empty between calls.
	logicals []Logical
	engines  []*request.Request
	dirty    []*group
	touched  []*trace
	members  component
	reported []pcommon.SpanID
}

// maxServices bounds Joiner.joined.
const maxServices = 10_000

// joinedLately is how long a service's last request that reached an engine says that its others should: engines stop tracing, too.
const joinedLately = time.Hour

type key struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// New returns an empty joiner.
func New(cfg Config) *Joiner {
	joined, _ := simplelru.NewLRU[string, time.Time](maxServices, nil) // the only error is a size below one
	return &Joiner{
		cfg: cfg, traces: map[pcommon.TraceID]ref{}, byID: map[idHash]ref{},
		roots: map[rootKey]ref{}, joined: joined, seen: newSeen(cfg.Remember, 4*cfg.MaxSpans),
	}
}

// Held is the number of request spans that wait.
func (j *Joiner) Held() int { return j.held }

// Remembered is the number of spans that are remembered, waiting or not.
func (j *Joiner) Remembered() int { return j.remembered }

// maxReused is up to how many elements memory is kept for the next call. What is settled without a batch comes in parts of as many: at once
// it would be tens of megabytes of requests, and for those who take them as much again.
const maxReused = 1024

// Reuse gives back the memory of a result that is used up.
func (j *Joiner) Reuse(res Result) {
	if cap(res.Requests) <= maxReused {
		clear(res.Requests)
		j.logicals = res.Requests[:0]
	}
	if cap(res.Engines) <= maxReused {
		clear(res.Engines)
		j.engines = res.Engines[:0]
	}
}

// result is an empty result, in the memory that was given back.
func (j *Joiner) result() Result {
	res := Result{Requests: j.logicals, Engines: j.engines}
	j.logicals, j.engines = nil, nil
	return res
}

// Add takes one batch. With whole set, every trace in it is complete, and its requests are settled before Add returns.
// The result has the engines' requests of the batch itself; the joiner keeps none of them.
func (j *Joiner) Add(at time.Time, batch []Span, whole bool) Result {
	res := j.result()
	j.batch++
	now := j.tell(at)
	dirty, touched := j.dirty[:0], j.touched[:0]
	var t *trace
	seen := false // something of the trace, before it was forgotten
	for i := range batch {
		s := &batch[i]
		k := key{s.TraceID, s.SpanID}
		reports := s.Request != nil && !s.Request.LayerOnly
		if i == 0 || s.TraceID != batch[i-1].TraceID {
			t = j.slab.at(j.traces[s.TraceID])
			seen = j.seen.any(s.TraceID)
		}
		if t != nil && j.node(t, s.SpanID) != nil || reports && seen && j.seen.has(k) {
			if reports {
				res.Duplicates++
			}
			if t != nil {
				t.touched = now // its sender is at it still
				j.moveToBack(t)
			}
			continue
		}
		if t == nil {
			t = j.begin(s.TraceID)
		}
		j.touch(now, t, &touched)
		n := node{id: s.SpanID, parent: s.ParentID, reports: reports, call: s.Request != nil && s.Request.Layer != request.LayerEngine}
		r := s.Request
		if reports && r.Layer != request.LayerEngine {
			n.outer = j.hold(now, t, k, s.ParentID, r)
		}
		j.addNode(t, n)
		if !reports || r.Layer != request.LayerEngine {
			continue
		}
		res.Engines = append(res.Engines, r)
		g := j.group(t, r)
		j.manies.take(g, j.open(g), r)
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
	}
	for _, g := range dirty {
		j.take(g)
		if whole {
			g.retry = g.retry || !g.settled && j.attempted(g)
		}
		j.settleGroup(g, &res)
	}
	if whole {
		for _, t := range touched {
			j.settleOuters(now, t, true, &res)
			j.settleBeams(now, t, true, &res)
		}
	}
	clear(dirty)
	clear(touched)
	j.dirty, j.touched = dirty, touched
	for j.remembered > j.cfg.MaxSpans && j.order.front != 0 {
		t := j.slab.at(j.order.front)
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
	if g.parent.IsEmpty() {
		return false
	}
	j.up(j.slab.at(g.trace), g.parent, func(n *node) {
		if n.call {
			top = n
		}
	})
	if top == nil {
		return false
	}
	was := top.answered
	top.answered = true
	return was
}

// Expire settles what has waited long enough at now, and forgets what is older. It gives what it settled to take, in parts.
func (j *Joiner) Expire(at time.Time, take func(Result)) {
	res := j.result()
	now := j.tell(at)
	j.seen.rotate(at)
	for t := j.slab.at(j.order.front); t != nil; {
		next := t.next
		switch age := now - t.touched; {
		case age >= 2*j.cfg.Window:
			j.drop(t, &res)
		default:
			j.settleOuters(now, t, false, &res)
			j.settleBeams(now, t, false, &res)
		}
		t = j.slab.at(next)
		j.part(&res, take)
	}
	take(j.noted(res))
}

// Drain settles everything and forgets it. It gives what it settled to take, in parts.
func (j *Joiner) Drain(take func(Result)) {
	res := j.result()
	for _, t := range j.traces {
		j.mark(j.slab.at(t))
	}
	for j.order.front != 0 {
		j.drop(j.slab.at(j.order.front), &res)
		j.part(&res, take)
	}
	take(j.noted(res))
}

// part gives a result away when another trace may not have room in it.
func (j *Joiner) part(res *Result, take func(Result)) {
	if len(res.Requests) >= maxReused/2 {
		take(j.noted(*res))
		*res = j.result()
	}
}

// tell sets the time of a call, and returns it as it is remembered.
func (j *Joiner) tell(now time.Time) time.Duration {
	if j.began.IsZero() {
		j.began = now
	}
	j.now = now
	return now.Sub(j.began)
}

// begin makes a trace.
func (j *Joiner) begin(id pcommon.TraceID) *trace {
	self, t := j.slab.add()
	t.self, t.id = self, id
	j.traces[id] = self
	j.pushBack(t)
	return t
}

func (j *Joiner) touch(now time.Duration, t *trace, touched *[]*trace) {
	if t.batch != j.batch {
		t.batch = j.batch
		*touched = append(*touched, t)
		j.moveToBack(t)
	}
	t.touched = now
}
