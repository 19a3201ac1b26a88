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
	Complete(r)
	r.Provider = "vllm"
	if _, ok := stripBeam(stripSequence(r.RequestID)); ok {
		r.Beam = r.OutputTokens.Or(1) <= 1 // a step generates one token
	}
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

// stripBeam removes what vLLM puts behind the id of a call for each beam and step: a hash in hexadecimal digits, the mark, the number of
// the beam. An id that a caller has chosen may well have "beam" in it, and is no beam for that.
func stripBeam(id string) (call string, ok bool) {
	i := strings.LastIndex(id, beamMark)
	if i < 0 || !all(id[i+len(beamMark):], "0123456789", 1) {
		return id, false
	}
	j := strings.LastIndexByte(id[:i], '-')
	if j <= 0 || !all(id[j+1:i], "0123456789abcdef", 8) {
		return id, false
	}
	return id[:j], true
}

// all tells whether s has at least n characters, each of them in set.
func all(s, set string, n int) bool {
	return len(s) >= n && strings.Trim(s, set) == ""
}

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
	if call, ok := stripBeam(id); ok {
		return call, call
	}
	for _, p := range [...]string{"cmpl-", "embd-"} {
		if !strings.HasPrefix(id, p) {
			continue
		}
		if j := strings.LastIndexByte(id, '-'); j > len(p) && all(id[j+1:], "0123456789", 1) {
			return id[:j], id
		}
	}
	return id, id
}
