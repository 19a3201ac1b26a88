package split

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/dimension"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// maxWay bounds the spans above a request in which labels are looked for.
const maxWay = 32

// labels finds the dimensions of each request: on its span, on the layers around it and on the spans above, as each source says. What an
// llmspan before this one has found stays where this one finds nothing.
func (b *batch) labels(td ptrace.Traces, o *Options, f *Facts, kept bool) {
	type place struct {
		span, resource pcommon.Map
		parent         pcommon.SpanID
		item           *item
	}
	places := make(map[id]*place, td.SpanCount())
	for _, rs := range td.ResourceSpans().All() {
		resource := rs.Resource().Attributes()
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				places[id{s.TraceID(), s.SpanID()}] = &place{span: s.Attributes(), resource: resource, parent: s.ParentSpanID()}
			}
		}
	}
	for i := range b.items {
		it := b.items[i]
		if p, ok := places[id{it.req.TraceID, it.req.SpanID}]; ok {
			p.item = it
		}
	}
	var way []dimension.Place
	var layers []*item
	for i := range b.items {
		it := b.items[i]
		if it.req.Tentative {
			continue
		}
		way, layers = way[:0], layers[:0]
		for at := (id{it.req.TraceID, it.req.SpanID}); len(way) < maxWay; {
			p, ok := places[at]
			if !ok {
				break
			}
			layer := p.item != nil && !p.item.req.Tentative
			way = append(way, dimension.Place{Span: p.span, Resource: p.resource, Layer: layer})
			if layer && p.item != it {
				layers = append(layers, p.item)
			}
			if p.parent.IsEmpty() {
				break
			}
			at.span = p.parent
		}
		var found request.Business
		for d := range o.Dimensions.Len() {
			value, ok := o.Dimensions.Find(d, way, kept)
			name := o.Dimensions.Name(d)
			if !ok {
				value, ok = before(it, layers, name)
			}
			if !ok && it.req.LayerOnly {
				continue // it says what it knows; the request that it encloses has a default
			}
			label, overflowed := o.Dimensions.Label(o.Now, d, value, ok)
			if overflowed {
				f.overflowed(name)
			}
			found.Dimensions = append(found.Dimensions, request.Dimension{Name: name, Value: label, Default: !ok})
		}
		found.InheritDimensions(&it.req.Business) // those of other configurations
		it.req.Dimensions = found.Dimensions
	}
	if kept && o.Dimensions.SpanSources {
		for _, p := range places {
			o.Dimensions.Forget(p.span)
		}
	}
}

// before is what an llmspan before this one has found for a request, or for a layer around it.
func before(it *item, layers []*item, name string) (string, bool) {
	for _, d := range it.req.Dimensions {
		if d.Name == name && !d.Default {
			return d.Value, true
		}
	}
	for _, l := range layers {
		for _, d := range l.req.Dimensions {
			if d.Name == name && !d.Default {
				return d.Value, true
			}
		}
	}
	return "", false
}

// keep notes on every span of a batch what it tells of dimensions, for when its trace is whole.
func keep(td ptrace.Traces, r *dimension.Resolver) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				r.Forget(s.Attributes()) // what a stranger wrote under the name
				r.Keep(s.Attributes())
			}
		}
	}
}

func (f *Facts) overflowed(name string) {
	if f.Overflowed == nil {
		f.Overflowed = map[string]int{}
	}
	f.Overflowed[name]++
}
