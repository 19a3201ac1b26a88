package dialect

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// engineKeys are the gen_ai.latency.* and request keys that vLLM (0.5 to 0.32) and SGLang share.
// Source: vllm/tracing/utils.py; recordings of 0.9.2, 0.10.2, 0.20.2 and 0.32.0.
var engineKeys = map[string]spelling{
	"gen_ai.latency.time_in_queue":           {fieldQueue, 0},
	"gen_ai.latency.time_in_model_prefill":   {fieldPrefill, 0},
	"gen_ai.latency.time_in_model_decode":    {fieldDecode, 0},
	"gen_ai.latency.time_in_model_inference": {fieldInference, 0},
	"gen_ai.latency.time_to_first_token":     {fieldTTFT, 0},
	"gen_ai.latency.e2e":                     {fieldE2E, 0},
	"gen_ai.request.id":                      {fieldRequestID, 0},
	"gen_ai.request.n":                       {fieldSequences, 1},
	"gen_ai.request.max_tokens":              {fieldMaxTokens, 0},
}

// recogniseVLLM claims the span that vLLM makes for one finished sequence. Neither name nor scope is enough alone: the name is
// reused by clients, and the scope changed between versions. A span of the name with status ERROR and no attribute is a request that
// crashed the engine (V0 with n > 1). Start-up spans have neither.
func recogniseVLLM(s *source, r *request.Request) verdict {
	if s.span.Name() != "llm_request" {
		return notMine
	}
	latency := s.has(fieldE2E) || s.has(fieldTTFT) || s.has(fieldQueue)
	crashed := s.span.Status().Code() == ptrace.StatusCodeError && s.span.Attributes().Len() == 0
	if !latency && !crashed {
		return notMine
	}
	r.Layer = request.LayerEngine
	s.common(r)
	s.engineTimes(r)
	fillEngine(r)
	r.Provider = "vllm"
	r.Beam = strings.Contains(r.RequestID, beamMark)
	if r.Operation == "" {
		r.Operation = operationOfID(r.RequestID)
	}
	// V0 writes the path of the weights where the name of the model belongs; V1 names none.
	if r.Model == "" {
		r.Model = s.res.Model
	}
	// The span exists because the request finished, so it is ok unless it says otherwise.
	if r.Status == request.StatusUnknown {
		r.Status = request.StatusOK
	}
	if r.NoFirstToken && r.OutputTokens.Or(0) == 0 {
		// Failed before its first output: V1 leaves the instants at 0 (grammar error, failed transfer of the cache).
		r.Status = request.StatusError
		if r.ErrorType == "" {
			r.ErrorType = "_OTHER"
		}
	}
	return aRequest
}

// beamMark stands in the request id of every step of a beam search.
const beamMark = "-beam-"

// operationOfID is the operation that vLLM's id prefix tells, "" when it tells none.
func operationOfID(id string) string {
	id = stripSequence(id)
	switch {
	case strings.HasPrefix(id, "chatcmpl-"), strings.HasPrefix(id, "resp_"):
		return "chat"
	case strings.HasPrefix(id, "cmpl-"):
		return "text_completion"
	case strings.HasPrefix(id, "embd-"):
		return "embeddings"
	}
	return ""
}

// stripSequence removes the "0_", "1_" … that vLLM before 0.14 puts before the id of each of n sequences.
func stripSequence(id string) string {
	i := 0
	for i < len(id) && id[i] >= '0' && id[i] <= '9' {
		i++
	}
	if i > 0 && i < len(id) && id[i] == '_' {
		return id[i+1:]
	}
	return id
}

// BaseID is the id of the call that an engine's sequence belongs to: without vLLM's sequence number ("0_X"), the number of the
// prompt in a call with several ("cmpl-X-0", "embd-X-1"), and the hash and number of a beam ("X-<hash>-beam-1").
// PromptID is the same with the number of the prompt kept: sequences of one prompt share it.
func BaseID(id string) (base, promptID string) {
	id = stripSequence(id)
	if i := strings.Index(id, beamMark); i >= 0 {
		base = id[:i]
		if j := strings.LastIndexByte(base, '-'); j >= 0 {
			base = base[:j]
		}
		return base, base
	}
	for _, p := range [...]string{"cmpl-", "embd-"} {
		if !strings.HasPrefix(id, p) {
			continue
		}
		j := strings.LastIndexByte(id, '-')
		if j <= len(p) || j == len(id)-1 {
			break
		}
		for _, c := range id[j+1:] {
			if c < '0' || c > '9' {
				return id, id
			}
		}
		return id[:j], id
	}
	return id, id
}
