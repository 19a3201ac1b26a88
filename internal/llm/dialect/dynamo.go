package dialect

import (
	"math"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// dynamoKeys are the keys of NVIDIA Dynamo's front end: bare names, every value a string, times in milliseconds.
// Source: recordings of 1.6.1. Words as plain as "model" have fields of their own, which no other dialect reads.
var dynamoKeys = map[string]spelling{
	"input_tokens":    {fieldDynamoInput, 0},
	"output_tokens":   {fieldDynamoOutput, 0},
	"ttft_ms":         {fieldFirstChunkMillis, 20},
	"model":           {fieldDynamoModel, 0},
	"uri":             {fieldHTTPPath, 20},
	"method":          {fieldHTTPMethod, 20},
	"request.outcome": {fieldOutcome, 0},
}

// recogniseDynamo claims the front end's span of a request on an LLM route. Tokens and TTFT are on streamed ones only.
func recogniseDynamo(s *source, r *request.Request) verdict {
	if s.span.Name() != "http-request" || s.text(fieldHTTPMethod) != "POST" {
		return notMine
	}
	op := operationOfPath(s.text(fieldHTTPPath))
	if op == "" {
		return notMine
	}
	r.Layer = request.LayerGateway
	if id := s.text(fieldRequestID); id != "" {
		r.RequestID = id
	}
	r.Model = Model(s.text(fieldDynamoModel))
	r.Operation = op
	r.InputTokens = s.textTokens(r, fieldDynamoInput, "input_tokens")
	r.OutputTokens = s.textTokens(r, fieldDynamoOutput, "output_tokens")
	s.outcome(r)
	switch o := s.text(fieldOutcome); {
	case strings.HasPrefix(o, "cancel"):
		r.Status, r.ErrorType = request.StatusCancelled, ""
	case o == "success" && r.Status == request.StatusUnknown:
		r.Status = request.StatusOK
	}
	s.clientTimes(r)
	return aRequest
}

// textTokens is a token count written as a string or a number.
func (s *source) textTokens(r *request.Request, f field, name string) request.Tokens {
	if !s.has(f) {
		return request.Tokens{}
	}
	d, ok := numberOrText(s.values[f])
	if !ok || d < 0 || d > maxTokens || d != math.Trunc(d) {
		r.Reject(name)
		return request.Tokens{}
	}
	return request.Some(int64(d))
}
