package content

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestConcurrentUse: one Redactor, many goroutines; each gets what it would have got alone.
func TestConcurrentUse(t *testing.T) {
	for _, mode := range []Mode{ModeStrip, ModeHash, ModeTruncate, ModeKeep} {
		r := redactor(t, Config{Mode: mode})
		make := func() ptrace.Traces {
			td := ptrace.NewTraces()
			spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
			for range 20 {
				clientSpan(spans.AppendEmpty(), 2000)
				engineSpan(spans.AppendEmpty())
			}
			return td
		}
		var want Facts
		alone := make()
		r.Traces(alone, &want)
		expected, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(alone)
		require.NoError(t, err)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 10 {
					var f Facts
					td := make()
					r.Traces(td, &f)
					got, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
					assert.NoError(t, err)
					assert.Equal(t, want, f)
					assert.Equal(t, expected, got)
				}
			})
		}
		wg.Wait()
	}
}
