//go:build e2e

package tiers

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The clock of the engines' node is 10 s ahead, then 10 s behind: every request is measured, decisions are as without, the user's time is
// the outer span's own, and the requests say that a clock was off.
func TestClockSkewBetweenNodes(t *testing.T) {
	for _, skew := range []time.Duration{10 * time.Second, -10 * time.Second} {
		t.Run(skew.String(), func(t *testing.T) {
			top := newTopology(t)
			g := top.gateway(t, 0)
			top.resolve(t, 0)
			a := top.agent(t, "node-0")
			tr := newTraffic(t, shape{prompt: 64, answer: 64, skew: skew})
			raw := make([]byte, len(tr.templates[0]))
			const exports = 30
			for range exports {
				tr.send(context.Background(), []string{a.otlp}, 0, raw)
			}
			sender.CloseIdleConnections()
			sent := tr.acknowledged()
			top.settled(t, a)
			skewed := g.metric(t, "otelcol_processor_llmspan_clock_skew")
			g.stop(t)

			got := top.backends.compare(sent)
			b := top.backends
			user, requests := b.counter("llm_user_request_duration_seconds_sum"), b.counter("llm_user_request_duration_seconds_count")
			t.Logf("%s: %d traces, %.0f requests with a clock that is off; mean duration at the user %.3f s; %v", skew, len(sent), skewed, user/requests, got)
			assert.Len(t, sent, exports*tracesPerExport)
			assert.Zero(t, got.missing+got.partial+got.unexpected+got.dishonest, "%v", got)
			assert.InDelta(t, len(sent), b.counter("llm_requests_total"), 0)
			assert.InDelta(t, len(sent), skewed, 0, "they say so")
			assert.InDelta(t, len(sent), requests, 0)
			// 19 of 20 take 1.2 s + 20 ms at the user, one takes 7.5 s + 20 ms.
			assert.InDelta(t, (19*1.22+7.52)/20, user/requests, 1e-3, "the outer span's own length")
			top.clean(t)
		})
	}
}
