package sim

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

var engineScope = scope{name: "vllm.tracing.otel"}

// engineSpan emits the span of a finished sequence. Attributes, types and order are those of vllm/v1/engine/output_processor.py,
// do_tracing; see the package text for what is missing on purpose.
func (w *World) engineSpan(s *sequence, out *process) {
	c := s.call
	if c.Unsampled {
		return
	}
	sp := out.span(engineScope)
	sp.SetTraceID(c.TraceID)
	sp.SetSpanID(s.spanID)
	sp.SetName("llm_request")
	sp.SetKind(ptrace.SpanKindServer)
	sp.SetFlags(flagsRemote)
	switch {
	case w.cfg.Gateway.Enabled:
		sp.SetParentSpanID(c.httpSpan)
	case c.Client:
		sp.SetParentSpanID(c.clientHTTP)
	case !c.Parent.IsEmpty():
		sp.SetParentSpanID(c.Parent)
	default:
		sp.SetFlags(flagsLocal)
	}
	// The wall clock of the front end is a double of seconds.
	arrival := w.unix(s.arrival)
	sp.SetStartTimestamp(pcommon.Timestamp(int64(arrival * 1e9)))
	sp.SetEndTimestamp(pcommon.NewTimestampFromTime(w.at(s.spanEnd)))
	a := sp.Attributes()
	a.EnsureCapacity(13)
	a.PutDouble("gen_ai.latency.time_to_first_token", w.unix(s.frontFirst)-arrival)
	a.PutDouble("gen_ai.latency.e2e", w.unix(s.frontLast)-arrival)
	a.PutDouble("gen_ai.latency.time_in_queue", (s.scheduled - s.queued).Seconds())
	a.PutInt("gen_ai.usage.prompt_tokens", int64(s.prompt))
	a.PutInt("gen_ai.usage.completion_tokens", int64(s.made))
	a.PutDouble("gen_ai.latency.time_in_model_prefill", (s.first - s.scheduled).Seconds())
	a.PutDouble("gen_ai.latency.time_in_model_decode", (s.last - s.first).Seconds())
	a.PutDouble("gen_ai.latency.time_in_model_inference", (s.last - s.scheduled).Seconds())
	a.PutStr("gen_ai.request.id", s.id)
	if c.TopP != 0 {
		a.PutDouble("gen_ai.request.top_p", c.TopP)
	}
	a.PutInt("gen_ai.request.max_tokens", int64(s.maxTokens))
	if c.Temperature != 0 {
		a.PutDouble("gen_ai.request.temperature", c.Temperature)
	}
	a.PutInt("gen_ai.request.n", 1)
}

// startSpan is one step of a vLLM start, its parent by index (-1: root), and which part of the start it takes.
type startSpan struct {
	name, scope, function, line string
	parent                      int
	from, to                    float64
}

// startSteps is the order that a start of 0.32.0 was recorded with, with the GPU's names for what a CPU calls (CPU).
var startSteps = []startSpan{
	{"Overall Loading", "vllm.v1.engine.core_client", "EngineCoreClient.make_async_mp_client", "135", -1, 0, 1},
	{"AsyncMPClient init", "vllm.v1.engine.core_client", "AsyncMPClient.__init__", "1109", 0, 0.001, 0.999},
	{"EngineCoreProc init", "vllm.v1.engine.core", "EngineCoreProc.__init__", "1134", 1, 0.22, 0.99},
	{"Executor init", "vllm.v1.executor.abstract", "Executor.__init__", "111", 2, 0.221, 0.50},
	{"Worker init", "vllm.v1.executor.multiproc_executor", "WorkerProc.__init__", "646", 3, 0.25, 0.49},
	{"Worker init", "vllm.v1.worker.worker_base", "WorkerWrapperBase.init_worker", "259", 4, 0.251, 0.28},
	{"Load model", "vllm.model_executor.model_loader.base_loader", "BaseModelLoader.load_model", "62", 4, 0.28, 0.48},
	{"Initialize model", "vllm.model_executor.model_loader.utils", "initialize_model", "73", 6, 0.281, 0.30},
	{"Prepare model", "vllm.v1.engine.core", "EngineCore._initialize_kv_caches", "260", 2, 0.50, 0.98},
	{"Warmup (GPU)", "vllm.v1.worker.gpu_worker", "Worker.compile_or_warm_up_model", "580", 3, 0.51, 0.95},
	{"Allocate KV cache", "vllm.v1.worker.gpu_worker", "Worker.initialize_from_config", "852", 3, 0.95, 0.979},
}

// startupSpans emits the trace of a start, as vLLM does since about 0.16: INTERNAL spans that are no requests.
func (w *World) startupSpans(e *engine, from, to time.Duration) {
	if to <= from {
		return
	}
	trace := w.random.traceID()
	ids := make([]pcommon.SpanID, len(startSteps))
	for i, st := range startSteps {
		ids[i] = w.random.spanID()
		sp := e.out.span(scope{name: st.scope})
		sp.SetTraceID(trace)
		sp.SetSpanID(ids[i])
		sp.SetFlags(flagsLocal)
		if st.parent >= 0 {
			sp.SetParentSpanID(ids[st.parent])
		}
		sp.SetName(st.name)
		sp.SetKind(ptrace.SpanKindInternal)
		at := func(x float64) pcommon.Timestamp {
			return pcommon.NewTimestampFromTime(w.at(from + time.Duration(x*float64(to-from))))
		}
		sp.SetStartTimestamp(at(st.from))
		sp.SetEndTimestamp(at(st.to))
		a := sp.Attributes()
		a.PutStr("code.function", st.function)
		a.PutStr("code.namespace", st.scope)
		a.PutStr("code.filepath", "/opt/vllm/"+strings.ReplaceAll(st.scope, ".", "/")+".py")
		a.PutStr("code.lineno", st.line)
	}
}
