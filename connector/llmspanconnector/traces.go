package llmspanconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// tracesConnector passes on the traces that are kept. Without a sampling decision on them that is all.
type tracesConnector struct {
	component.StartFunc
	component.ShutdownFunc
	next consumer.Traces
}

func (*tracesConnector) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (c *tracesConnector) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return c.next.ConsumeTraces(ctx, td)
}
