package live

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

func export(spans int) sim.Export {
	td := ptrace.NewTraces()
	ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for range spans {
		ss.Spans().AppendEmpty().SetName("llm_request")
	}
	return sim.Export{Service: "vllm-chat", Traces: td}
}

// receiver answers with the given statuses in turn, then 200, and counts the spans that it accepted.
func receiver(t *testing.T, statuses ...int) (*httptest.Server, func() int) {
	var mu sync.Mutex
	spans := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		if len(statuses) > 0 {
			status := statuses[0]
			statuses = statuses[1:]
			if status != 200 {
				w.WriteHeader(status)
				return
			}
		}
		req := ptraceotlp.NewExportRequest()
		if !assert.NoError(t, req.UnmarshalProto(body)) {
			return
		}
		spans += req.Traces().SpanCount()
	}))
	t.Cleanup(s.Close)
	return s, func() int { mu.Lock(); defer mu.Unlock(); return spans }
}

func TestPusher(t *testing.T) {
	for _, tt := range []struct {
		name     string
		statuses []int
		accepted int
		tries    []int
		failed   Reason
	}{
		{"accepted at once", nil, 5, []int{1, 1}, ""},
		{"tried again while the receiver is overloaded", []int{503, 429, 502}, 5, []int{4, 1}, ""},
		{"refused for good: dropped, the next is sent", []int{400}, 3, []int{1, 1}, ReasonRefused},
		{"given up after all tries", []int{503, 503, 503, 503, 503, 503, 503}, 3, []int{7, 1}, ReasonUnreachable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, spans := receiver(t, tt.statuses...)
			var mu sync.Mutex
			var sent []Sent
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			p := NewPusher(client, s.URL, 10, func(x Sent) { mu.Lock(); defer mu.Unlock(); sent = append(sent, x) })
			p.backoff = time.Microsecond
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); p.Run(ctx) }()
			p.Push([]sim.Export{export(2), export(3)})
			require.NoError(t, p.Flush(t.Context()))
			cancel()
			<-done
			assert.Equal(t, tt.accepted, spans())
			require.Len(t, sent, 2)
			tries := []int{sent[0].Tries, sent[1].Tries}
			assert.Equal(t, tt.tries, tries)
			assert.Equal(t, []Reason{tt.failed, ""}, []Reason{sent[0].Reason(), sent[1].Reason()})
		})
	}
}

func TestAFullQueueDropsAndSaysSo(t *testing.T) {
	var sent []Sent
	p := NewPusher(http.DefaultClient, "http://127.0.0.1:0", 2, func(x Sent) { sent = append(sent, x) })
	p.Push([]sim.Export{export(1), export(2), export(4)})
	require.Len(t, sent, 1)
	require.ErrorIs(t, sent[0].Err, errQueueFull)
	assert.Equal(t, 4, sent[0].Spans)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Flush(ctx), context.Canceled)
	p.Run(ctx) // ends at once and reports the two that were left, if it does not try one of them
	require.Len(t, sent, 3)
	assert.Equal(t, ReasonShutdown, sent[1].Reason())
	require.NoError(t, p.Flush(t.Context()))
}
