package llmspanconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
)

// tracesConnector passes on the traces that are kept. Without a sampling decision on them that is all.
type tracesConnector struct {
	component.StartFunc
	component.ShutdownFunc
	next consumer.Traces
}

func (*tracesConnector) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeTraces copies what is kept out of a batch in which something is dropped: the batch is shared with the instances that measure
// all of it, and what is kept is the smaller part.
func (c *tracesConnector) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if !anyDropped(td) {
		return c.next.ConsumeTraces(ctx, td)
	}
	kept := keep(td)
	if kept.SpanCount() == 0 {
		return nil
	}
	return c.next.ConsumeTraces(ctx, kept)
}

func dropped(s ptrace.Span) bool {
	v, ok := s.Attributes().Get(names.SamplingDecision)
	return ok && v.Str() == names.DecisionDrop
}

func anyDropped(td ptrace.Traces) bool {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if dropped(s) {
					return true
				}
			}
		}
	}
	return false
}

// keep is a copy of the spans that are not dropped, with their resources and scopes.
func keep(td ptrace.Traces) ptrace.Traces {
	out := ptrace.NewTraces()
	for _, rs := range td.ResourceSpans().All() {
		var toResource ptrace.ResourceSpans
		resource := false
		for _, ss := range rs.ScopeSpans().All() {
			var to ptrace.SpanSlice
			scope := false
			for _, s := range ss.Spans().All() {
				if dropped(s) {
					continue
				}
				if !resource {
					resource = true
					toResource = out.ResourceSpans().AppendEmpty()
					rs.Resource().CopyTo(toResource.Resource())
					toResource.SetSchemaUrl(rs.SchemaUrl())
				}
				if !scope {
					scope = true
					toScope := toResource.ScopeSpans().AppendEmpty()
					ss.Scope().CopyTo(toScope.Scope())
					toScope.SetSchemaUrl(ss.SchemaUrl())
					to = toScope.Spans()
				}
				s.CopyTo(to.AppendEmpty())
			}
		}
	}
	return out
}
