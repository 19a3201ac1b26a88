package dialect

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// ReadResource reads a resource, once for all spans of it.
func ReadResource(r pcommon.Resource) *request.Source {
	a := r.Attributes()
	get := func(k string) string {
		if v, ok := a.Get(k); ok && v.Type() == pcommon.ValueTypeStr {
			return v.Str()
		}
		return ""
	}
	out := &request.Source{
		Service: get(names.ServiceName), Namespace: get(names.ServiceNamespace), Environment: get(names.DeploymentEnvName), Instance: get(names.ServiceInstanceID),
	}
	for _, k := range [...]string{names.RequestModel, names.ResponseModel, "model_name"} {
		if m := get(k); m != "" {
			out.Model = Model(m)
			break
		}
	}
	return out
}

// verdict is what a dialect says of a span.
type verdict uint8

const (
	// notMine leaves the span to the next dialect.
	notMine verdict = iota
	// aRequest claims it, as a request or as a layer of one.
	aRequest
	// noRequest knows the source, and that the span is no request: a wrapper that repeats totals, a tool, a health check. Its keys would
	// pass for a request's with a dialect that knows the source less well, so that none is asked any more but the one for plain layers.
	noRequest
)

// dialectNames are the dialects in the order in which they are asked: what llmspan itself wrote, engines, gateways, SDKs, and last the
// plain HTTP spans, which are layers only where they enclose a request.
var dialectNames = [...]string{"", "vllm", "sglang", "dynamo", "litellm", "openinference", "openllmetry", "vercel", "semconv", "http"}

// recognise asks dialect i whether a span is its own. If so it completes r, of which the identity is already set; otherwise it leaves r as
// it is. A switch and not a table of functions, because what is called through a variable moves s and r to the heap for every span.
func recognise(i int, s *source, r *request.Request) verdict {
	switch i {
	case 0:
		return recogniseOwn(s, r)
	case 1:
		return recogniseVLLM(s, r)
	case 2:
		return recogniseSGLang(s, r)
	case 3:
		return recogniseDynamo(s, r)
	case 4:
		return recogniseLiteLLM(s, r)
	case 5:
		return recogniseOpenInference(s, r)
	case 6:
		return recogniseOpenLLMetry(s, r)
	case 7:
		return recogniseVercel(s, r)
	case 8:
		return recogniseSemconv(s, r)
	case 9:
		return recogniseHTTP(s, r)
	}
	return notMine
}

// Read reads one span. ok is false when no dialect claims it; r then holds the span's identity and instants alone.
//
// The result aliases strings of the span and no other memory of it.
func Read(span ptrace.Span, res *request.Source) (r request.Request, ok bool) {
	var s source
	s.span, s.res = span, res
	s.walk(span.Attributes())
	r = request.Request{
		Source:  res,
		TraceID: span.TraceID(), SpanID: span.SpanID(), ParentID: span.ParentSpanID(),
		Start: span.StartTimestamp(), End: span.EndTimestamp(),
		TraceState: span.TraceState().AsRaw(),
	}
	s.decision(&r)
	for i := 0; i < len(dialectNames); i++ {
		switch recognise(i, &s, &r) {
		case aRequest:
			if r.Dialect == "" {
				r.Dialect = dialectNames[i]
			}
			return r, true
		case noRequest:
			i = max(i, len(dialectNames)-2) // a server's span may still be a plain layer
		}
	}
	return r, false
}

// common fills what every dialect says in the same fields: identity, model, usage, outcome.
func (s *source) common(r *request.Request) {
	r.RequestID = s.text(fieldRequestID)
	r.ResponseID = s.text(fieldResponseID)
	r.Model = Model(s.text(fieldRequestModel))
	r.ResponseModel = Model(s.text(fieldResponseModel))
	if op := s.text(fieldOperation); isName(op, 64) {
		r.Operation = op
	}
	if p := s.text(fieldProvider); isName(p, 64) {
		r.Provider = provider(p)
	}
	if n, ok := s.tokens(r, fieldSequences, "gen_ai.request.n"); ok {
		r.Sequences = n
	}
	if n, ok := s.tokens(r, fieldMaxTokens, "gen_ai.request.max_tokens"); ok {
		r.MaxTokens = n
	}
	s.usage(r)
	s.reportedCost(r)
	s.outcome(r)
}

// figure is a field with the name under which it is rejected.
type figure struct {
	field field
	name  string
}

var usageFigures = [...]figure{
	{fieldInputTokens, "input_tokens"},
	{fieldOutputTokens, "output_tokens"},
	{fieldCachedTokens, "cache_read.input_tokens"},
	{fieldCacheWriteTokens, "cache_creation.input_tokens"},
	{fieldReasoningTokens, "reasoning.output_tokens"},
}

// usage reads the token counts.
func (s *source) usage(r *request.Request) {
	// Apart from the names, which a rejection keeps: together they would move r to the heap.
	to := [len(usageFigures)]*request.Tokens{&r.InputTokens, &r.OutputTokens, &r.CachedTokens, &r.CacheWriteToken, &r.ReasoningTokens}
	for i, f := range usageFigures {
		if n, ok := s.tokens(r, f.field, f.name); ok {
			*to[i] = request.Some(n)
		}
	}
	// A part larger than its whole says that one of the two is wrong; the whole is what is billed, so the part goes.
	if r.CachedTokens.Known && r.InputTokens.Known && r.CachedTokens.Value > r.InputTokens.Value {
		r.CachedTokens = request.Tokens{}
		r.Reject("cache_read.input_tokens")
	}
	if r.ReasoningTokens.Known && r.OutputTokens.Known && r.ReasoningTokens.Value > r.OutputTokens.Value {
		r.ReasoningTokens = request.Tokens{}
		r.Reject("reasoning.output_tokens")
	}
}

func (s *source) tokens(r *request.Request, f field, name string) (int64, bool) {
	if !s.has(f) {
		return 0, false
	}
	n, ok := count(s.values[f])
	if !ok {
		r.Reject(name)
	}
	return n, ok
}

// outcome reads status, error type and finish reason. A span without any of them did not say: StatusUnknown.
func (s *source) outcome(r *request.Request) {
	r.FinishReason = s.finishReason()
	if e := s.text(fieldErrorType); isName(e, 128) {
		r.ErrorType = e
	}
	r.HTTPStatus = s.httpStatus()
	switch {
	case r.FinishReason == "abort" || r.FinishReason == "cancelled" || r.HTTPStatus == 499:
		r.Status = request.StatusCancelled
	case s.span.Status().Code() == ptrace.StatusCodeError, r.HTTPStatus >= 500, r.FinishReason == "error", s.has(fieldErrorType):
		r.Status = request.StatusError
	case s.span.Status().Code() == ptrace.StatusCodeOk, r.FinishReason != "", r.OutputTokens.Or(0) > 0, r.InputTokens.Or(0) > 0:
		r.Status = request.StatusOK
	case r.HTTPStatus >= 200 && r.HTTPStatus < 400:
		r.Status = request.StatusOK
	}
	if r.Status != request.StatusError {
		return
	}
	if r.ErrorType == "" && r.HTTPStatus >= 400 {
		r.ErrorType = httpCodes[r.HTTPStatus]
	}
	if r.ErrorType == "" {
		r.ErrorType = "_OTHER"
	}
}

// provider folds deprecated provider values to the current ones (GenAI semantic conventions, deprecated registry).
func provider(p string) string {
	switch p {
	case "az.ai.openai":
		return "azure.ai.openai"
	case "az.ai.inference":
		return "azure.ai.inference"
	case "vertex_ai":
		return "gcp.vertex_ai"
	case "gemini":
		return "gcp.gemini"
	case "xai":
		return "x_ai"
	}
	return p
}
