//go:build e2e

package tiers

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// A request of the traffic is a gateway's SERVER span (the root), an application's CLIENT span and an engine's span below. One in 20
// fails, one in 20 is slow; the others are normal.
const (
	tracesPerExport = 20
	spansPerTrace   = 3
	inputTokens     = 100
	outputTokens    = 21
)

const engineService = "vllm-chat"

type kind int

const (
	normal kind = iota
	failed
	slow
)

func kindOf(i int) kind {
	switch i % tracesPerExport {
	case 3:
		return failed
	case 11:
		return slow
	}
	return normal
}

// canary is in every text; it must not arrive anywhere.
const canary = "CANARY-7b1e"

// shape is what the spans of some traffic are like.
type shape struct {
	prompt, answer int           // bytes of text on every span
	skew           time.Duration // how far the engine's clock is ahead
	// apart: the engines' spans go to the first agent, the outer layers' to the last, this much later; 0: all in one request.
	apart time.Duration
}

// traffic is OTLP requests that are sent again and again under other ids.
type traffic struct {
	templates [][]byte
	ids       [][][2][]int // of each template and trace: where the trace's number stands, and the request's
	next      atomic.Uint64
	bytes     int // of a request
	apart     time.Duration
	engines   []int // where in each template the engines' part begins

	mu sync.Mutex // guards all below
	// sent holds every trace that was acknowledged, in the order of the acknowledgements.
	sent []sentTrace
	// refused counts answers by their status; 0 stands for no answer.
	refused map[int]int
}

type sentTrace struct {
	number uint64
	kind   kind
	at     time.Time
}

// A number makes a trace's ids: the low half of the trace id is spread, since sampling reads its last 56 bits, and span ids have the
// number and the layer.
func traceID(number uint64) (id pcommon.TraceID) {
	binary.BigEndian.PutUint64(id[:8], number)
	binary.BigEndian.PutUint64(id[8:], mix(number))
	return id
}

// mix is the finaliser of SplitMix64: a bijection that spreads.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func spanID(number uint64, layer int) (id pcommon.SpanID) {
	binary.BigEndian.PutUint64(id[:], mix(^number)&^3|uint64(layer+1)) // unlike any half of a trace id
	return id
}

// engineSpan is the id of the span that a request's record is about.
func engineSpan(number uint64) pcommon.SpanID { return spanID(number, 2) }

func newTraffic(t testing.TB, s shape) *traffic {
	t.Helper()
	tr := &traffic{refused: map[int]int{}, apart: s.apart}
	tr.next.Store(uint64(time.Now().UnixNano())) // other numbers than in any run before
	for range 3 {
		first := tr.next.Add(tracesPerExport) - tracesPerExport
		td := export(first, s, time.Now())
		raw, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
		require.NoError(t, err)
		// The resources' spans are repeated fields of the request, one after the other: every part of them is a request.
		td.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
			name, _ := rs.Resource().Attributes().Get("service.name")
			return name.Str() == engineService
		})
		outer, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
		require.NoError(t, err)
		require.Equal(t, outer, raw[:len(outer)])
		tr.engines = append(tr.engines, len(outer))
		tr.templates = append(tr.templates, raw)
		var at [][2][]int
		for i := range uint64(tracesPerExport) {
			id := traceID(first + i)
			spans := [2][]int{places(raw, id[:])}
			for layer := range spansPerTrace {
				id := spanID(first+i, layer)
				for _, p := range places(raw, id[:]) {
					spans[1] = append(spans[1], p<<2|layer)
				}
			}
			require.Len(t, spans[0], spansPerTrace)
			require.Len(t, spans[1], 2*spansPerTrace-1, "every id but the last layer's is a parent's as well")
			at = append(at, spans)
		}
		tr.ids = append(tr.ids, at)
		tr.bytes = len(raw)
	}
	return tr
}

func places(b, part []byte) (all []int) {
	for from := 0; ; {
		i := bytes.Index(b[from:], part)
		if i < 0 {
			return all
		}
		all = append(all, from+i)
		from += i + len(part)
	}
}

// export builds one OTLP request.
func export(first uint64, s shape, now time.Time) ptrace.Traces {
	td := ptrace.NewTraces()
	prompt, answer := text(s.prompt), text(s.answer)
	var spans [spansPerTrace]ptrace.SpanSlice
	for i, name := range [...]string{"llm-gateway", "chat-api", engineService} {
		rs := td.ResourceSpans().AppendEmpty()
		a := rs.Resource().Attributes()
		a.PutStr("service.name", name)
		a.PutStr("service.namespace", "llm")
		a.PutStr("deployment.environment.name", "prod")
		a.PutStr("telemetry.sdk.language", "python")
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName([...]string{"opentelemetry.instrumentation.fastapi", "opentelemetry.instrumentation.openai_v2", "vllm.llm_engine"}[i])
		spans[i] = ss.Spans()
	}
	for i := range tracesPerExport {
		number, k := first+uint64(i), kindOf(i)
		e2e, ttft := 1.2, 0.2
		if k == slow {
			e2e, ttft = 7.5, 6.5
		}
		end := now.Add(-20 * time.Millisecond)
		for layer := range spansPerTrace {
			sp := spans[layer].AppendEmpty()
			sp.SetTraceID(traceID(number))
			sp.SetSpanID(spanID(number, layer))
			if layer > 0 {
				sp.SetParentSpanID(spanID(number, layer-1))
			}
			outer := time.Duration(spansPerTrace-1-layer) * 5 * time.Millisecond
			from, to := end.Add(-time.Duration(e2e*1e9)).Add(-outer), end.Add(outer)
			a := sp.Attributes()
			a.EnsureCapacity(26)
			switch layer {
			case 0:
				sp.SetName("POST /v1/{path:path}")
				sp.SetKind(ptrace.SpanKindServer)
				a.PutStr("http.request.method", "POST")
				a.PutStr("url.path", "/v1/chat/completions")
				a.PutStr("http.route", "/v1/{path:path}")
				a.PutInt("http.response.status_code", 200)
				if k == failed {
					a.PutInt("http.response.status_code", 500)
					sp.Status().SetCode(ptrace.StatusCodeError)
				}
				a.PutStr("team", "search")
			case 1:
				sp.SetName("chat llama-3.1-70b-instruct")
				sp.SetKind(ptrace.SpanKindClient)
				a.PutStr("gen_ai.operation.name", "chat")
				a.PutStr("gen_ai.provider.name", "vllm")
				a.PutStr("gen_ai.request.model", "llama-3.1-70b-instruct")
				a.PutStr("gen_ai.response.model", "llama-3.1-70b-instruct")
				a.PutStr("gen_ai.conversation.id", "conv-1")
				a.PutInt("gen_ai.usage.input_tokens", inputTokens)
				a.PutInt("gen_ai.usage.output_tokens", outputTokens)
			case 2:
				sp.SetName("llm_request")
				sp.SetKind(ptrace.SpanKindServer)
				from, to = from.Add(s.skew), to.Add(s.skew)
				a.PutStr("gen_ai.request.id", fmt.Sprintf("chatcmpl-%d", number))
				a.PutInt("gen_ai.usage.prompt_tokens", inputTokens)
				a.PutInt("gen_ai.usage.completion_tokens", outputTokens)
				a.PutDouble("gen_ai.latency.time_to_first_token", ttft)
				a.PutDouble("gen_ai.latency.e2e", e2e)
				a.PutDouble("gen_ai.latency.time_in_queue", 0.05)
				a.PutDouble("gen_ai.latency.time_in_model_prefill", 0.1)
				a.PutDouble("gen_ai.latency.time_in_model_decode", e2e-ttft)
				a.PutDouble("gen_ai.latency.time_in_model_inference", e2e-ttft+0.1)
			}
			a.PutDouble("gen_ai.request.temperature", 0.7)
			a.PutDouble("gen_ai.request.top_p", 0.95)
			a.PutInt("gen_ai.request.max_tokens", 1024)
			a.PutStr("server.address", "vllm.llm.svc.cluster.local")
			a.PutInt("server.port", 8000)
			for i := range 6 {
				a.PutStr(fmt.Sprintf("app.field_%d", i), "some value of an application")
			}
			if s.prompt > 0 {
				a.PutStr("gen_ai.input.messages", prompt)
				a.PutStr("gen_ai.output.messages", answer)
			}
			sp.SetStartTimestamp(pcommon.NewTimestampFromTime(from))
			sp.SetEndTimestamp(pcommon.NewTimestampFromTime(to))
		}
	}
	return td
}

// text is n bytes that compress about as English does, with the canary in them.
func text(n int) string {
	var b strings.Builder
	b.WriteString(`[{"role":"user","parts":[{"type":"text","content":"` + canary + ` `)
	for x := uint64(n); b.Len() < n-8; {
		x = mix(x)
		for range 2 + x%8 {
			x = x>>1 ^ x<<13
			b.WriteByte("etaoinshrdlucmfwypvbgk"[x%22])
		}
		b.WriteByte(' ')
	}
	b.WriteString(`"}]}]`)
	return b.String()
}

// fill puts new ids into a copy of a template.
func (tr *traffic) fill(template int, raw []byte) (first uint64) {
	first = tr.next.Add(tracesPerExport) - tracesPerExport
	copy(raw, tr.templates[template])
	for i, at := range tr.ids[template] {
		number := first + uint64(i)
		id := traceID(number)
		for _, p := range at[0] {
			copy(raw[p:], id[:])
		}
		for _, p := range at[1] {
			id := spanID(number, p&3)
			copy(raw[p>>2:], id[:])
		}
	}
	return first
}

// send sends one export and notes what was acknowledged. It repeats what was refused, as an SDK does, until ctx ends.
func (tr *traffic) send(ctx context.Context, urls []string, template int, raw []byte) {
	first := tr.fill(template, raw)
	var ok bool
	if tr.apart == 0 {
		ok = tr.deliver(ctx, urls[int(first/tracesPerExport)%len(urls)], raw)
	} else {
		cut := tr.engines[template]
		ok = tr.deliver(ctx, urls[0], raw[cut:])
		time.Sleep(tr.apart)
		ok = tr.deliver(context.WithoutCancel(ctx), urls[len(urls)-1], raw[:cut]) && ok
	}
	if !ok {
		return
	}
	now := time.Now()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for i := range tracesPerExport {
		tr.sent = append(tr.sent, sentTrace{first + uint64(i), kindOf(i), now})
	}
}

// deliver sends until it is acknowledged or ctx ends; what is on its way then is waited for, so that it is known what was acknowledged.
func (tr *traffic) deliver(ctx context.Context, url string, raw []byte) bool {
	for {
		code := post(url, raw)
		if code == http.StatusOK {
			return true
		}
		tr.mu.Lock()
		tr.refused[code]++
		tr.mu.Unlock()
		select {
		case <-ctx.Done():
			return false
		case <-time.After(200 * time.Millisecond):
		}
	}
}

var sender = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: 30 * time.Second}

func post(url string, raw []byte) int {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"/v1/traces", bytes.NewReader(raw))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := sender.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// run sends at a rate of spans a second (0: as fast as it goes) from some senders until ctx ends, and returns when all have ended.
func (tr *traffic) run(ctx context.Context, urls []string, spansPerSecond float64, senders int) {
	defer sender.CloseIdleConnections()
	begin := time.Now()
	var turn atomic.Int64
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			raws := make([][]byte, len(tr.templates))
			for j := range raws {
				raws[j] = make([]byte, len(tr.templates[j]))
			}
			for ctx.Err() == nil {
				n := turn.Add(1)
				if spansPerSecond > 0 {
					due := time.Duration(float64(n-1) * tracesPerExport * spansPerTrace / spansPerSecond * 1e9)
					select {
					case <-ctx.Done():
						return
					case <-time.After(due - time.Since(begin)):
					}
				}
				template := int(n) % len(tr.templates)
				tr.send(ctx, urls, template, raws[template])
			}
		})
	}
	wg.Wait()
}

// acknowledged is a copy of what was acknowledged.
func (tr *traffic) acknowledged() []sentTrace {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return append([]sentTrace(nil), tr.sent...)
}
