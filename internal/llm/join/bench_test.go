package join

import (
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// calls are n requests of a client, its gateway and an engine, each in a trace of its own or all in one.
func calls(from, n int, oneTrace bool) []Span {
	src := &request.Source{Service: "svc"}
	out := make([]Span, 0, 3*n)
	for i := from; i < from+n; i++ {
		var trace pcommon.TraceID
		var ids [3]pcommon.SpanID
		binary.BigEndian.PutUint64(trace[8:], uint64(i)+1)
		for k := range ids {
			binary.BigEndian.PutUint64(ids[k][:], uint64(3*i+k)+1)
		}
		if oneTrace {
			trace = pcommon.TraceID{1}
		}
		id := "chatcmpl-" + ids[2].String()
		for k, l := range []request.Layer{client, gateway, engine} {
			r := &request.Request{
				Layer: l, Dialect: "vllm", Source: src, TraceID: trace, SpanID: ids[k], Start: 1, End: 2, Status: request.StatusOK,
				InputTokens: request.Some[int64](10), OutputTokens: request.Some[int64](5),
			}
			if k > 0 {
				r.ParentID = ids[k-1]
			}
			if l == engine {
				r.RequestID = id
			} else {
				r.ResponseID = id
			}
			out = append(out, Span{TraceID: trace, SpanID: ids[k], ParentID: r.ParentID, Request: r})
		}
	}
	return out
}

// One operation is a batch of 100 requests of three layers; each leaves after its window.
func BenchmarkAdd(b *testing.B) {
	for _, c := range []struct {
		name     string
		oneTrace bool
	}{{"a trace a request", false}, {"one long trace", true}} {
		b.Run(c.name, func(b *testing.B) {
			j := New(Config{Window: 10 * time.Second, MaxSpans: 100_000})
			now := time.Unix(1_700_000_000, 0)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				b.StopTimer()
				batch := calls(n, 100, c.oneTrace)
				n += 100
				b.StartTimer()
				now = now.Add(100 * time.Millisecond)
				j.Add(now, batch, false)
				if n%1000 == 0 {
					j.Expire(now, j.Reuse)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/300, "ns/span")
		})
	}
}

// What a remembered request costs in memory, its own struct of each layer included.
func BenchmarkMemory(b *testing.B) {
	const n = 20_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		j := New(Config{Window: 10 * time.Second, MaxSpans: 10 * n})
		for i := 0; i < n; i += 100 {
			j.Add(time.Unix(1_700_000_000, 0), calls(i, 100, false), false)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/request")
		runtime.KeepAlive(j)
	}
}
