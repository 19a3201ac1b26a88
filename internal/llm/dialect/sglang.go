package dialect

import (
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// sglangKeys are the keys of SGLang's request span beside the ones it shares with vLLM. Source: recordings of 0.5.23.
var sglangKeys = map[string]spelling{
	"rid":                        {fieldRID, 0},
	"gen_ai.usage.cached_tokens": {fieldCachedTokens, 3},
}

// recogniseSGLang claims SGLang's request span: "<role> Req <first 8 of rid>", of a unified engine with a leading space.
//
// Not requests: health checks (id HEALTH_CHECK_…), the warm-up that n > 1 runs first (no output), and spans that were closed half
// open (no usage).
func recogniseSGLang(s *source, r *request.Request) verdict {
	if !s.has(fieldRID) || !strings.Contains(s.span.Name(), " Req ") {
		return notMine
	}
	if !s.has(fieldE2E) || !s.has(fieldInputTokens) {
		return noRequest
	}
	if strings.HasPrefix(s.text(fieldRID), "HEALTH_CHECK") || strings.HasPrefix(s.text(fieldRequestID), "HEALTH_CHECK") {
		return noRequest
	}
	if s.atLeast(fieldSequences, 2) && s.has(fieldOutputTokens) && !s.atLeast(fieldOutputTokens, 1) {
		return noRequest // the warm-up
	}
	r.Layer = request.LayerEngine
	s.common(r)
	r.Provider = "sglang"
	// The prefill figure runs from the dispatch, so it has the queue inside; the queue is a child span of the source's own.
	r.PrefillHasQueue = true
	r.OwnStages = true
	s.engineTimes(r)
	Complete(r)
	if r.Model == "" {
		r.Model = r.ResponseModel
	}
	if r.Model == "" {
		r.Model = s.res.Model
	}
	return aRequest
}

// atLeast tells whether a field is a count of n or more.
func (s *slots) atLeast(f field, n int64) bool {
	if !s.has(f) {
		return false
	}
	v, ok := count(s.values[f])
	return ok && v >= n
}
