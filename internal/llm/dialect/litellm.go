package dialect

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// litellmKeys are the keys of LiteLLM's proxy that tell it from an SDK. Source: recordings of 1.81.16 and 1.98.1.
var litellmKeys = map[string]spelling{
	"litellm.provider.model": {fieldLiteLLM, 0}, // on v2's CLIENT spans only; its value is not read
}

// litellmSpans are v1's spans for one call. All of them carry the whole usage, and the deeper ones repeat it.
var litellmSpans = map[string]bool{
	"litellm_request": true, "raw_gen_ai_request": true, "Received Proxy Server Request": true,
}

// recogniseLiteLLM claims the spans of LiteLLM's proxy, which is a gateway even where its spans look like an SDK's: v1's by name,
// v2's CLIENT spans by a key of its own. v2's SERVER span is the semantic conventions'.
func recogniseLiteLLM(s *source, r *request.Request) verdict {
	v1 := litellmSpans[s.span.Name()]
	v2 := s.span.Kind() == ptrace.SpanKindClient && s.has(fieldLiteLLM)
	if !v1 && !v2 {
		return notMine
	}
	op, ok := inferenceOperations[s.text(fieldOperation)]
	if !ok && (!v1 || !s.has(fieldRequestModel)) {
		return notMine
	}
	r.Layer = request.LayerGateway
	s.common(r)
	r.Operation = op
	if r.Operation == "" {
		r.Operation = "chat"
	}
	uncounted(r)
	s.clientTimes(r)
	return aRequest
}

// uncounted forgets the usage of zeros with which LiteLLM writes a failed call: nobody counted.
func uncounted(r *request.Request) {
	if r.Status == request.StatusError && r.InputTokens.Or(0) == 0 && r.OutputTokens.Or(0) == 0 {
		r.InputTokens, r.OutputTokens = request.Tokens{}, request.Tokens{}
	}
}
