package dialect

import "github.com/otelcol-llm/otelcol-llm/internal/llm/request"

// openinferenceKeys are OpenInference's own keys (Phoenix, Arize, Envoy AI Gateway). Source: recordings of its openai, langchain and
// agents instrumentations.
var openinferenceKeys = map[string]spelling{
	"openinference.span.kind":                      {fieldSpanKind, 0},
	"llm.model_name":                               {fieldRequestModel, 2},
	"embedding.model_name":                         {fieldRequestModel, 3},
	"llm.system":                                   {fieldProvider, 3},
	"llm.provider":                                 {fieldProvider, 2},
	"llm.token_count.prompt":                       {fieldInputTokens, 2},
	"llm.token_count.completion":                   {fieldOutputTokens, 2},
	"llm.token_count.prompt_details.cache_read":    {fieldCachedTokens, 4},
	"llm.token_count.prompt_details.cache_write":   {fieldCacheWriteTokens, 3},
	"llm.token_count.completion_details.reasoning": {fieldReasoningTokens, 4},
	"llm.finish_reason":                            {fieldFinishReasons, 2},
}

// recogniseOpenInference claims LLM, EMBEDDING and RERANKER spans. CHAIN, AGENT, TOOL and the like are not requests.
func recogniseOpenInference(s *source, r *request.Request) verdict {
	var op string
	switch s.text(fieldSpanKind) {
	case "LLM":
		op = "chat"
		if s.span.Name() == "Completion" {
			op = "text_completion"
		}
	case "EMBEDDING":
		op = "embeddings"
	case "RERANKER":
		op = "rerank"
	case "":
		return notMine
	default:
		return noRequest
	}
	r.Layer = request.LayerClient
	s.common(r)
	if known, ok := inferenceOperations[r.Operation]; ok {
		op = known
	}
	r.Operation = op
	s.clientTimes(r)
	return aRequest
}
