package chains

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor"
)

// cpu is what this process has used so far, of all its threads: it is not disturbed by what else runs on the machine as wall time is.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// feeder decodes a request again and again, under other trace ids.
type feeder struct {
	raw   []byte
	in    input
	count uint64
}

func newFeeder(tb testing.TB, in input) *feeder {
	tb.Helper()
	raw, err := ptraceotlp.NewExportRequestFromTraces(in.batch(rand.New(rand.NewPCG(1, 2)))).MarshalProto()
	if err != nil {
		tb.Fatal(err)
	}
	return &feeder{raw: raw, in: in, count: uint64(time.Now().UnixNano())}
}

func (f *feeder) feed(tb testing.TB, c *chain) {
	r := ptraceotlp.NewExportRequest()
	if err := r.UnmarshalProto(f.raw); err != nil {
		tb.Fatal(err)
	}
	td := r.Traces()
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	for i := range spans.Len() {
		if i%f.in.spans == 0 {
			f.count++
		}
		var id pcommon.TraceID
		binary.BigEndian.PutUint64(id[:], f.count*0x9e3779b97f4a7c15)
		binary.BigEndian.PutUint64(id[8:], f.count*0xd6e8feb86659fd93)
		spans.At(i).SetTraceID(id)
	}
	if err := c.head.ConsumeTraces(context.Background(), td); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkPipe is for profiles: go test -bench 'Pipe/.*/ours,_strip$' -cpuprofile …
func BenchmarkPipe(b *testing.B) {
	for _, in := range inputs {
		for _, name := range chains {
			b.Run(in.name+"/"+name, func(b *testing.B) {
				f := newFeeder(b, in)
				c, err := build(name)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				begin := cpu()
				for b.Loop() {
					f.feed(b, c)
				}
				if err := c.shutdown(); err != nil {
					b.Fatal(err)
				}
				spans := float64(b.N * in.traces * in.spans)
				b.ReportMetric(float64(cpu()-begin)/spans, "cpu-ns/span")
				b.ReportMetric(float64(c.end.spans.Load())/spans, "spans-out/span")
			})
		}
	}
}

// figure is what one run of a chain cost, for each span that came in.
type figure struct{ ns, allocs, bytes, out float64 }

func measure(t *testing.T, in input, name string, spans int) figure {
	f := newFeeder(t, in)
	c, err := build(name)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := cpu()
	batches := spans / (in.traces * in.spans)
	for range batches {
		f.feed(t, c)
	}
	if err := c.shutdown(); err != nil {
		t.Fatal(err)
	}
	used := cpu() - begin
	runtime.ReadMemStats(&after)
	n := float64(batches * in.traces * in.spans)
	return figure{
		float64(used) / n, float64(after.Mallocs-before.Mallocs) / n, float64(after.TotalAlloc-before.TotalAlloc) / n, float64(c.end.spans.Load()) / n,
	}
}

func rounds(t *testing.T) int {
	t.Helper()
	v := os.Getenv("OTELCOL_LLM_BENCH_ROUNDS")
	if v == "" {
		t.Skip("OTELCOL_LLM_BENCH_ROUNDS is not set; make bench sets it")
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("OTELCOL_LLM_BENCH_ROUNDS must be a positive number, got %q", v)
	}
	return n
}

// The chains take turns, so that what else happens on the machine happens to all of them; the medians are compared.
func TestCompareCPU(t *testing.T) {
	compare(t, chains)
}

// Where our CPU goes.
func TestCompareParts(t *testing.T) { compare(t, parts) }

// started is the heap of a collector that has been started and holds nothing. Beside next to none, as in a test, garbage is collected some
// ten times as often as in a collector, and least in the chains that hold the most.
const started = 64 << 20

func compare(t *testing.T, names []string) {
	t.Helper()
	n := rounds(t)
	beside := make([]byte, started)
	defer runtime.KeepAlive(beside)
	const spans = 60_000
	for _, in := range inputs {
		got := map[string][]figure{}
		for range n {
			for _, name := range names {
				s := spans
				if name == "stock, redaction" {
					s /= 10
				}
				got[name] = append(got[name], measure(t, in, name, s))
			}
		}
		var b strings.Builder
		fmt.Fprintf(&b, "\n%s\n\n| chain | µs of CPU a span | × pass | allocations a span | KB allocated a span | spans out a span |\n|---|---:|---:|---:|---:|---:|\n", in.name)
		median := func(name string, of func(figure) float64) float64 {
			var v []float64
			for _, f := range got[name] {
				v = append(v, of(f))
			}
			slices.Sort(v)
			return v[len(v)/2]
		}
		pass := median("pass", func(f figure) float64 { return f.ns })
		for _, name := range names {
			ns := median(name, func(f figure) float64 { return f.ns })
			fmt.Fprintf(&b, "| %s | %.1f | %.2f | %.0f | %.1f | %.2f |\n", name, ns/1e3, ns/pass, median(name, func(f figure) float64 { return f.allocs }),
				median(name, func(f figure) float64 { return f.bytes })/1e3, median(name, func(f figure) float64 { return f.out }))
		}
		t.Log(b.String())
	}
}

// What a trace costs in memory while it waits for its decision.
func TestCompareHeldBytes(t *testing.T) {
	rounds(t)
	const traces = 12_000
	var b strings.Builder
	b.WriteString("\n| input | bytes on the wire a trace | tail_sampling | llmspan, strip | llmspan, hash | llmspan, keep |\n|---|---:|---:|---:|---:|---:|\n")
	for _, in := range inputs {
		n := traces
		if in.spans > 3 {
			n /= 6
		}
		fmt.Fprintf(&b, "| %s | %d |", in.name, len(newFeeder(t, in).raw)/in.traces)
		for _, p := range []struct {
			f processor.Factory
			m object
		}{
			{tailsamplingprocessor.NewFactory(), tailSampling("1h")},
			{llmspanprocessor.NewFactory(), held("strip")},
			{llmspanprocessor.NewFactory(), held("hash")},
			{llmspanprocessor.NewFactory(), held("keep")},
		} {
			fmt.Fprintf(&b, " %d |", heldBytes(t, in, p.f, p.m, n))
		}
		b.WriteString("\n")
	}
	t.Log(b.String())
}

func held(mode string) object {
	m := llmspan(mode, true, "1h")
	m["sampling"].(object)["idle_timeout"] = "1h"
	m["sampling"].(object)["trace_timeout"] = "1h"
	m["sampling"].(object)["max_bytes"] = "4GiB"
	return m
}

// heldBytes is the live heap that n held traces make, for each of them.
func heldBytes(t *testing.T, in input, factory processor.Factory, m object, n int) int64 {
	t.Helper()
	f := newFeeder(t, in)
	c := &chain{end: &encoder{}}
	var err error
	if c.head, err = c.processor(factory, m, c.end); err != nil {
		t.Fatal(err)
	}
	live := func() uint64 {
		runtime.GC()
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := live()
	for range n / in.traces {
		f.feed(t, c)
	}
	time.Sleep(200 * time.Millisecond) // tail_sampling takes them in on a goroutine of its own
	after := live()
	if out := c.end.spans.Load(); out != 0 {
		t.Fatalf("%d spans were passed on, so not all were held", out)
	}
	if err := c.shutdown(); err != nil {
		t.Fatal(err)
	}
	return (int64(after) - int64(before)) / int64(n/in.traces*in.traces)
}
