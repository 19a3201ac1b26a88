package split

import (
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/dialect"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Links joins the layers of a request that came in different traces: proxies and SDKs that do not pass the context on are common. They
// meet by the id that the engine gave and the client read, when it is seen once on each side within the window. The trace that is
// decided on later gets a span link to the other, and what only the other knew; traces are never merged.
//
// It is safe for concurrent use: traces of one request may lie in different shards.
type Links struct {
	mu   sync.Mutex
	seen *simplelru.LRU[string, *meeting]
}

// Bounds of what is remembered.
const (
	maxMeetings   = 50_000
	meetingWindow = 5 * time.Minute
)

// meeting is what is known under one id.
type meeting struct {
	at     time.Time
	engine party
	outer  party
}

// party is one side of a meeting.
type party struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
	layer request.Layer
	model string
	set   bool
	many  bool // the id was seen in several traces: it says nothing
}

// NewLinks returns an empty memory.
func NewLinks() *Links {
	l, _ := simplelru.NewLRU[string, *meeting](maxMeetings, nil) // the only error is a size below one
	return &Links{seen: l}
}

// meet remembers a layer under the id that it shares with its other side.
func (l *Links) meet(now time.Time, id string, r *request.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.seen.Get(id)
	if !ok || now.Sub(m.at) > meetingWindow {
		m = &meeting{at: now}
		l.seen.Add(strings.Clone(id), m) // what is remembered does not keep the span's other texts
	}
	mine := &m.outer
	if r.Layer == request.LayerEngine {
		mine = &m.engine
	}
	switch {
	case !mine.set:
		*mine = party{trace: r.TraceID, span: r.SpanID, layer: r.Layer, model: strings.Clone(r.Model), set: true}
	case mine.trace != r.TraceID:
		mine.many = true
	}
}

// other is the other side of a request that meet remembers, when it is known and both are unique.
func (l *Links) other(id string, r *request.Request) (party, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.seen.Peek(id)
	if !ok {
		return party{}, false
	}
	mine, other := m.outer, m.engine
	if r.Layer == request.LayerEngine {
		mine, other = m.engine, m.outer
	}
	if !other.set || other.many || mine.many || other.trace == r.TraceID {
		return party{}, false
	}
	return other, true
}

// meet is a request whose other layer may be in another trace, and the id that both have.
type meet struct {
	item *item
	id   string
}

// meet adds those of a trace to a list, and has them meet.
func (w *Whole) meet(now time.Time, t *view, list []meet) []meet {
	if w.o.Links == nil {
		return list
	}
	for _, it := range t.items {
		r := &it.req
		if r.LayerOnly || r.Tentative {
			continue
		}
		id := r.ResponseID
		if r.Layer == request.LayerEngine {
			if t.enclosed(it) {
				continue
			}
			id, _ = dialect.BaseID(r.RequestID)
		} else if t.answered(it) || t.hasRequestBelow(it) {
			continue
		}
		if id == "" {
			continue
		}
		w.o.Links.meet(now, id, r)
		list = append(list, meet{it, id})
	}
	return list
}

// link joins a request to its other layer in another trace.
func (w *Whole) link(m meet) {
	r := &m.item.req
	other, ok := w.o.Links.other(m.id, r)
	if !ok {
		return
	}
	addLink(m.item.span, other)
	if r.Model == "" {
		r.Model = other.model
	}
}

// enclosed tells whether another layer of an engine's request is in its own trace.
func (t *view) enclosed(it *item) bool {
	for _, o := range t.items {
		if o.req.Layer != request.LayerEngine && !o.req.LayerOnly && !o.req.Tentative && t.below(it, o) {
			return true
		}
	}
	return false
}

func addLink(s ptrace.Span, p party) {
	for _, l := range s.Links().All() {
		if l.TraceID() == p.trace && l.SpanID() == p.span {
			return
		}
	}
	l := s.Links().AppendEmpty()
	l.SetTraceID(p.trace)
	l.SetSpanID(p.span)
	l.Attributes().PutStr(names.Layer, p.layer.String())
}
