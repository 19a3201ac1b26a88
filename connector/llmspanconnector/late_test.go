package llmspanconnector

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// below puts the engine's span of one batch under the client's of another.
func below(engine, client ptrace.Traces) ptrace.Traces {
	c := client.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	e := engine.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	e.SetTraceID(c.TraceID())
	e.SetParentSpanID(c.SpanID())
	return engine
}

// A client's span and the engine's below it are one request whichever comes first, until the first is forgotten.
func TestLayersOfOneRequestInBatchesOfTheirOwn(t *testing.T) {
	for name, tt := range map[string]struct {
		engineFirst bool
		after       time.Duration
		requests    float64
	}{
		"engine first":                  {true, 5 * time.Second, 1},
		"client first":                  {false, 5 * time.Second, 1},
		"engine after the window":       {false, 15 * time.Second, 1},
		"engine after it was forgotten": {false, 25 * time.Second, 2},
		"client after the window":       {true, 15 * time.Second, 1},
		"client after it was forgotten": {true, 25 * time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := new(consumertest.MetricsSink)
				h := newMetrics(t, defaults(), sink)
				client := clientSpan("app", 1)
				first, second := client, below(engineSpan("vllm", 2), client)
				if tt.engineFirst {
					first, second = second, first
				}
				require.NoError(t, h.ConsumeTraces(t.Context(), first))
				time.Sleep(tt.after)
				synctest.Wait()
				require.NoError(t, h.ConsumeTraces(t.Context(), second))
				require.NoError(t, h.Shutdown(context.Background()))
				requests, _ := counter(last(sink), "llm.requests")
				tokens, _ := counter(last(sink), "llm.output_tokens")
				assert.InDelta(t, tt.requests, requests, 0)
				assert.InDelta(t, 5*tt.requests, tokens, 0)
				h.assertAccounted(t)
			})
		})
	}
}
