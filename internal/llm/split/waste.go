package split

import "github.com/otelcol-llm/otelcol-llm/internal/llm/request"

// runaway finds the engine's work for clients that had left. A proxy that does not hang up on the engine when its own client leaves
// (LiteLLM) never exports the span that stands between them, so that the trace has a client that failed or left, and an engine's span
// whose parent is missing, which began while the client waited and ended after it had gone. The two are one request: the engine's span
// stands for it, cancelled, and its work is wasted. Only a whole trace that was not cut shows it.
func (t *view) runaway() {
	for _, e := range t.items {
		if e.req.Layer != request.LayerEngine || e.req.ParentID.IsEmpty() || t.spans[e.req.ParentID] != nil {
			continue
		}
		var client *item
		for _, l := range t.items {
			r := &l.req
			gone := r.Status == request.StatusCancelled || r.Status == request.StatusError
			if r.Layer == request.LayerEngine || r.LayerOnly || r.Tentative || !gone || r.OutputTokens.Known ||
				e.req.Start < r.Start || e.req.Start > r.End || e.req.End <= r.End || t.answered(l) {
				continue
			}
			if client == nil || r.Start > client.req.Start {
				client = l // the innermost of those that stand above each other begins last
			}
		}
		if client == nil {
			continue
		}
		e.req.Wasted, e.req.Status, e.req.ErrorType = true, request.StatusCancelled, ""
		if e.req.Model == "" {
			e.req.Model = client.req.Model
		}
		e.req.InheritDimensions(&client.req.Business)
		for _, l := range t.items {
			if l == client || (l.req.Layer != request.LayerEngine && t.below(client, l) && !l.req.Tentative) {
				l.req.Part, l.req.LayerOnly = true, true
			}
		}
	}
}
