package dialect

import "github.com/otelcol-llm/otelcol-llm/internal/llm/request"

// openllmetryKeys are OpenLLMetry's (Traceloop's) own keys. Source: recordings of 0.40 and 0.62.
var openllmetryKeys = map[string]spelling{
	"traceloop.span.kind":                      {fieldFramework, 0},
	"llm.request.type":                         {fieldRequestType, 0},
	"llm.request.model":                        {fieldRequestModel, 4},
	"llm.response.model":                       {fieldResponseModel, 1},
	"llm.usage.prompt_tokens":                  {fieldInputTokens, 3},
	"llm.usage.completion_tokens":              {fieldOutputTokens, 3},
	"llm.usage.input_tokens":                   {fieldInputTokens, 4},
	"llm.usage.output_tokens":                  {fieldOutputTokens, 4},
	"llm.usage.cache_read_input_tokens":        {fieldCachedTokens, 5},
	"llm.usage.cache_creation_input_tokens":    {fieldCacheWriteTokens, 4},
	"llm.usage.reasoning_tokens":               {fieldReasoningTokens, 5},
	"gen_ai.completion.0.finish_reason":        {fieldFinishReasons, 3},
	"llm.response.finish_reason":               {fieldFinishReasons, 4},
	"gen_ai.response.finish_reason":            {fieldFinishReasons, 1},
	"gen_ai.usage.prompt_tokens_details.cache": {fieldCachedTokens, 6},
}

// recogniseOpenLLMetry claims the spans of OpenLLMetry's older form, which names its kind of call in llm.request.type; its newer form
// is the semantic conventions'. Workflow, task, agent and tool spans are not requests.
func recogniseOpenLLMetry(s *source, r *request.Request) verdict {
	switch s.text(fieldFramework) {
	case "workflow", "task", "agent", "tool":
		return noRequest
	}
	if s.has(fieldOperation) {
		return notMine
	}
	op, ok := inferenceOperations[s.text(fieldRequestType)]
	if !ok {
		return notMine
	}
	r.Layer = request.LayerClient
	s.common(r)
	r.Operation = op
	s.clientTimes(r)
	return aRequest
}
