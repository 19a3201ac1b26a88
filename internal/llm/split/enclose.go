package split

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/dialect"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/stage"
)

// call is the engine spans in the batch that answer one call, with the layers around them.
type call struct {
	parent    pcommon.SpanID
	base      string
	sequences []*item
	layers    []*item // innermost first
	outer     *item   // the outermost of them that lasts to the end of the response; nil when there is none
}

// enclose finds the layers around each engine's span, hands down what only they know, and places ingress and return.
func (b *batch) enclose(f *Facts) []*call {
	layers := map[id]*item{}
	for _, it := range b.items {
		if it.req.Layer != request.LayerEngine {
			layers[id{it.req.TraceID, it.req.SpanID}] = it
		}
	}
	calls, above := b.calls(b.parents, layers)
	for _, c := range calls {
		outermost := c.outermost(above)
		c.outer = outermost
		for _, it := range c.sequences {
			c.inherit(&it.req, above)
		}
		if outermost == nil {
			continue
		}
		start, end, last := c.hull()
		s := stage.Enclose(stage.Enclosure{Start: outermost.req.Start, End: outermost.req.End}, start, end, last)
		if s.Skew.Known {
			f.Skewed++
		}
		for _, it := range c.sequences {
			it.req.Ingress, it.req.Return, it.req.ClockSkew = s.Ingress, s.Return, s.Skew
		}
		if len(c.sequences) == 1 {
			// One sequence: its return is the layer's, so that the stages partition the outermost span without a gap.
			placed := c.sequences[0].placed.WithSurround(s)
			c.sequences[0].placed = &placed
		}
		if !c.sequences[0].req.OwnStages {
			outermost.surround = append(outermost.surround, s)
		}
	}
	return calls
}

// parentsOf maps every span of the batch to its parent.
func parentsOf(td ptrace.Traces) map[id]pcommon.SpanID {
	m := make(map[id]pcommon.SpanID, td.SpanCount())
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				m[id{s.TraceID(), s.SpanID()}] = s.ParentSpanID()
			}
		}
	}
	return m
}

// calls groups the engine spans and finds their layers. above counts the calls below each layer: one that encloses several calls is an
// application, or an agent, around them and not a layer of any.
func (b *batch) calls(parents map[id]pcommon.SpanID, layers map[id]*item) (calls []*call, above map[*item]int) {
	index := map[callKey]*call{}
	above = map[*item]int{}
	for _, it := range b.items {
		if it.req.Layer != request.LayerEngine || (it.req.Processed && !b.whole) || it.req.ParentID.IsEmpty() {
			continue
		}
		base, _ := dialect.BaseID(it.req.RequestID)
		if it.req.Dialect == "sglang" && it.req.Sequences > 1 {
			base = ""
		}
		k := callKey{id{it.req.TraceID, it.req.ParentID}, base}
		if c, ok := index[k]; ok {
			c.sequences = append(c.sequences, it)
			continue
		}
		c := &call{parent: it.req.ParentID, base: base, sequences: []*item{it}}
		index[k] = c
		calls = append(calls, c)
		at := id{it.req.TraceID, it.req.ParentID}
		for hops := 0; hops < maxDepth; hops++ {
			if l, ok := layers[at]; ok {
				c.layers = append(c.layers, l)
				above[l]++
			}
			p, ok := parents[at]
			if !ok || p.IsEmpty() {
				break
			}
			at.span = p
		}
	}
	return calls, above
}

type callKey struct {
	at   id
	base string
}

// maxDepth ends the walk up a trace that is no tree.
const maxDepth = 256

// outermost is the outermost layer whose span is known to last to the end of the response, nil when there is none: a layer that
// encloses this call alone. A plain HTTP server above a GenAI client is the application that made the call, not a layer of it.
func (c *call) outermost(above map[*item]int) *item {
	var out *item
	client := false
	for _, l := range c.layers {
		if above[l] > 1 || (l.req.Tentative && client) {
			break
		}
		client = client || l.req.Layer == request.LayerClient
		out = l
		l.req.Tentative = false
	}
	return out
}

// inherit gives an engine's request what the layers around it know, innermost first: the model and the operation of any, the outcome of
// those that enclose this call alone.
func (c *call) inherit(r *request.Request, above map[*item]int) {
	for _, l := range c.layers {
		if r.Model == "" {
			r.Model = l.req.Model
		}
		if r.Operation == "" {
			r.Operation = l.req.Operation
		}
		if above[l] > 1 || l.req.Tentative {
			continue
		}
		if r.FinishReason == "" {
			r.FinishReason = l.req.FinishReason
		}
		if s := request.Worse(r.Status, l.req.Status); s != r.Status {
			r.Status, r.ErrorType = s, l.req.ErrorType
		}
		r.Quality |= l.req.Quality
		if l.req.Reported && !r.Reported && r == &c.sequences[0].req {
			r.Cost, r.Currency, r.Reported = l.req.Cost, l.req.Currency, true
		}
	}
}

// hull is the first start, the last end and the last token of the call's sequences.
func (c *call) hull() (start, end, last pcommon.Timestamp) {
	start = c.sequences[0].req.Start
	for _, it := range c.sequences {
		start, end, last = min(start, it.req.Start), max(end, it.req.End), max(last, it.placed.LastToken)
	}
	return start, end, last
}

// outerStages are the ingress and return stages that lie in this layer's span.
func (it *item) outerStages() []stage.Stage {
	var out []stage.Stage
	for _, s := range it.surround {
		if s.Ingress.Known {
			out = append(out, s.IngressStage)
		}
		if s.Return.Known {
			out = append(out, s.ReturnStage)
		}
	}
	return out
}
