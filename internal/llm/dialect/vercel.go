package dialect

import (
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// vercelKeys are the keys of Vercel's AI SDK up to 6; 7 uses the semantic conventions. Source: recordings of ai 6 and 7.
var vercelKeys = map[string]spelling{
	"ai.operationId":             {fieldAIOperation, 0},
	"ai.model.id":                {fieldRequestModel, 5},
	"ai.model.provider":          {fieldProvider, 4},
	"ai.response.model":          {fieldResponseModel, 2},
	"ai.response.id":             {fieldResponseID, 1},
	"ai.response.finishReason":   {fieldFinishReasons, 5},
	"ai.response.msToFirstChunk": {fieldFirstChunkMillis, 0},
	"ai.usage.inputTokens":       {fieldInputTokens, 5},
	"ai.usage.promptTokens":      {fieldInputTokens, 6},
	"ai.usage.tokens":            {fieldInputTokens, 7},
	"ai.usage.outputTokens":      {fieldOutputTokens, 5},
	"ai.usage.completionTokens":  {fieldOutputTokens, 6},
	"ai.usage.cachedInputTokens": {fieldCachedTokens, 7},
	"ai.usage.reasoningTokens":   {fieldReasoningTokens, 6},
}

// recogniseVercel claims the spans of one call to a provider (….doGenerate, .doStream, .doEmbed). The spans around them repeat the
// totals of all their steps and are not requests.
func recogniseVercel(s *source, r *request.Request) verdict {
	id := s.text(fieldAIOperation)
	var op string
	switch {
	case strings.HasSuffix(id, ".doGenerate"), strings.HasSuffix(id, ".doStream"):
		op = "chat"
	case strings.HasSuffix(id, ".doEmbed"):
		op = "embeddings"
	case strings.HasSuffix(id, ".doRerank"):
		op = "rerank"
	case id == "":
		return notMine
	default:
		return noRequest
	}
	r.Layer = request.LayerClient
	s.common(r)
	r.Operation = op
	s.clientTimes(r)
	return aRequest
}
