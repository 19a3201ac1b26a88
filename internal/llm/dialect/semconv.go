package dialect

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// semconvKeys are the keys of the GenAI semantic conventions, current ones before deprecated ones.
// Source: semantic-conventions-genai, 2026-05; recordings of openai-v2, genai-openai, Pydantic AI, OpenLIT and AI SDK 7.
var semconvKeys = map[string]spelling{
	"gen_ai.operation.name":                                   {fieldOperation, 0},
	"gen_ai.provider.name":                                    {fieldProvider, 0},
	"gen_ai.system":                                           {fieldProvider, 1},
	"gen_ai.request.model":                                    {fieldRequestModel, 0},
	"gen_ai.response.model":                                   {fieldResponseModel, 0},
	"gen_ai.response.id":                                      {fieldResponseID, 0},
	"gen_ai.response.finish_reasons":                          {fieldFinishReasons, 0},
	"gen_ai.request.choice.count":                             {fieldSequences, 0},
	"gen_ai.usage.input_tokens":                               {fieldInputTokens, 0},
	"gen_ai.usage.output_tokens":                              {fieldOutputTokens, 0},
	"gen_ai.usage.cache_read.input_tokens":                    {fieldCachedTokens, 0},
	"gen_ai.usage.cache_creation.input_tokens":                {fieldCacheWriteTokens, 0},
	"gen_ai.usage.reasoning.output_tokens":                    {fieldReasoningTokens, 0},
	"gen_ai.usage.prompt_tokens":                              {fieldInputTokens, 1},
	"gen_ai.usage.completion_tokens":                          {fieldOutputTokens, 1},
	"gen_ai.usage.cache_read_input_tokens":                    {fieldCachedTokens, 1},
	"gen_ai.usage.cache_creation_input_tokens":                {fieldCacheWriteTokens, 1},
	"gen_ai.usage.cache_write_input_tokens":                   {fieldCacheWriteTokens, 2},
	"gen_ai.usage.reasoning_tokens":                           {fieldReasoningTokens, 1},
	"gen_ai.usage.prompt_tokens_details.cached_tokens":        {fieldCachedTokens, 2},
	"gen_ai.usage.completion_tokens_details.reasoning_tokens": {fieldReasoningTokens, 2},
	"gen_ai.usage.details.reasoning_tokens":                   {fieldReasoningTokens, 3},
	"gen_ai.response.time_to_first_chunk":                     {fieldFirstChunkSeconds, 0},
	"gen_ai.client.operation.time_to_first_chunk":             {fieldFirstChunkSeconds, 1},
	"gen_ai.server.time_to_first_token":                       {fieldServerTTFT, 0},
	"error.type":                                              {fieldErrorType, 0},
}

// inferenceOperations are the operations that call a model once. Every other operation (invoke_agent, execute_tool, create_agent,
// retrieval, …) stands around such calls and may repeat their totals, so it is not a request.
var inferenceOperations = map[string]string{
	"chat":             "chat",
	"text_completion":  "text_completion",
	"generate_content": "generate_content",
	"embeddings":       "embeddings",
	"fetch_response":   "fetch_response",
	"completion":       "text_completion", // old OpenLLMetry, LiteLLM v1
	"embedding":        "embeddings",
	"acompletion":      "chat", // LiteLLM v1: the Python function's name
	"atext_completion": "text_completion",
	"aembedding":       "embeddings",
	"aresponses":       "chat",
	"responses":        "chat",
	"rerank":           "rerank",
	"arerank":          "rerank",
}

// recogniseSemconv claims spans in the GenAI conventions: CLIENT spans of SDKs, and SERVER spans of gateways that carry a model or
// an operation.
func recogniseSemconv(s *source, r *request.Request) verdict {
	op := s.text(fieldOperation)
	known, inference := inferenceOperations[op]
	if op != "" && !inference {
		return notMine
	}
	switch s.span.Kind() {
	case ptrace.SpanKindServer:
		if op == "" && !s.has(fieldRequestModel) {
			return notMine
		}
		r.Layer = request.LayerGateway
	case ptrace.SpanKindClient, ptrace.SpanKindInternal, ptrace.SpanKindUnspecified:
		// A model alone is not a call: agents and tools carry one too.
		if op == "" && (!s.has(fieldRequestModel) || !s.has(fieldInputTokens)) {
			return notMine
		}
		r.Layer = request.LayerClient
	default:
		return notMine
	}
	s.common(r)
	if known != "" {
		r.Operation = known
	}
	s.clientTimes(r)
	return aRequest
}

// clientTimes reads a measured first chunk at a client or gateway. The times of a client are the user's, so they go to UserTTFT; the
// engine's vantage is left to the engine.
func (s *source) clientTimes(r *request.Request) {
	limit := longest(r)
	switch {
	case s.has(fieldFirstChunkSeconds):
		r.UserTTFT = s.seconds(r, fieldFirstChunkSeconds, "user.ttft", limit)
	case s.has(fieldFirstChunkMillis):
		if d, ok := numberOrText(s.values[fieldFirstChunkMillis]); ok && d > 0 && d/1000 <= limit {
			r.UserTTFT = request.Some(d / 1000)
		} else {
			r.Reject("user.ttft")
		}
	case s.has(fieldServerTTFT) && s.values[fieldServerTTFT].Type() == pcommon.ValueTypeInt:
		// Strands writes milliseconds, as an int, under the name of a metric in seconds. OpenLIT writes its end-to-end time there, as
		// a double, also when nothing was streamed; that is not a first token.
		if d := float64(s.values[fieldServerTTFT].Int()) / 1000; d > 0 && d <= limit {
			r.UserTTFT = request.Some(d)
		}
	}
}
