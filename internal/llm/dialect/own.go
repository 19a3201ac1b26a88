package dialect

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// ownKeys are the attributes that Write leaves on a span, so that a second llmspan (the connector, or a gateway behind an agent) reads
// what the first one found instead of finding it again.
var ownKeys = map[string]spelling{
	names.Layer:      {fieldOwnLayer, 0},
	names.Dialect:    {fieldOwnDialect, 0},
	names.Admission:  {fieldOwnAdmission, 0},
	names.Queue:      {fieldOwnQueue, 0},
	names.Prefill:    {fieldOwnPrefill, 0},
	names.Decode:     {fieldOwnDecode, 0},
	names.TTFT:       {fieldOwnTTFT, 0},
	names.E2E:        {fieldOwnE2E, 0},
	names.UserTTFT:   {fieldOwnUserTTFT, 0},
	names.Ingress:    {fieldOwnIngress, 0},
	names.Return:     {fieldOwnReturn, 0},
	names.KVTransfer: {fieldOwnKVTransfer, 0},
	names.ClockSkew:  {fieldOwnClockSkew, 0},
	names.Status:     {fieldOwnStatus, 0},
	names.Beam:       {fieldOwnBeam, 0},
	names.Invalid:    {fieldOwnInvalid, 0},

	names.UserTTFTEstimated: {fieldOwnEstimated, 0},
	names.UserE2E:           {fieldOwnUserE2E, 0},
	names.UserGapMax:        {fieldOwnGapMax, 0},
	names.Chunks:            {fieldOwnChunks, 0},
	names.SamplingDecision:  {fieldOwnDecision, 0},
	names.SamplingReason:    {fieldOwnReason, 0},
	names.SamplingIncoming:  {fieldOwnIncoming, 0},
	names.SamplingPartial:   {fieldOwnPartial, 0},
}

// ownDialect is the name that Write can have left; any other value was not written by us.
func ownDialect(name string) (string, bool) {
	for _, n := range dialectNames[1:] {
		if n == name {
			return n, true
		}
	}
	return "", false
}

// What a span that says that we wrote it is believed: anybody can say so. A figure is no longer than three years, which no request takes
// and which a sum survives; the names of rejected figures become labels, so they have to be names, and few.
const (
	maxSeconds = 1e8
	maxInvalid = 32
)

// recogniseOwn claims a span that Write has been on.
func recogniseOwn(s *source, r *request.Request) verdict {
	layer := request.ParseLayer(s.text(fieldOwnLayer))
	dialect, ok := ownDialect(s.text(fieldOwnDialect))
	if layer == request.LayerNone || !ok {
		return notMine
	}
	r.Layer, r.Dialect, r.Processed = layer, dialect, true
	// A plain HTTP span is a layer only, unless a whole trace has shown that it is all there is of a request; then it has an operation.
	if r.LayerOnly = dialect == "http" && !s.has(fieldOperation); r.LayerOnly {
		// Whatever usage stands on it is an application's.
		r.Operation = s.operationOfRoute()
		s.outcome(r)
	} else {
		s.common(r)
	}
	r.OwnStages = dialect == "sglang"
	r.Status = request.ParseStatus(s.text(fieldOwnStatus))
	if r.Status == request.StatusError && r.ErrorType == "" {
		r.ErrorType = "_OTHER"
	}
	if dialect == "litellm" {
		uncounted(r)
	}
	for _, t := range [...]struct {
		field field
		to    *request.Seconds
	}{
		{fieldOwnAdmission, &r.Admission},
		{fieldOwnQueue, &r.Queue},
		{fieldOwnPrefill, &r.Prefill},
		{fieldOwnDecode, &r.Decode},
		{fieldOwnTTFT, &r.TTFT},
		{fieldOwnE2E, &r.E2E},
		{fieldOwnUserTTFT, &r.UserTTFT},
		{fieldOwnIngress, &r.Ingress},
		{fieldOwnReturn, &r.Return},
		{fieldOwnKVTransfer, &r.KVTransfer},
		{fieldOwnClockSkew, &r.ClockSkew},
		{fieldOwnUserE2E, &r.UserE2E},
		{fieldOwnGapMax, &r.UserGapMax},
		{fieldOwnIncoming, &r.IncomingWeight},
	} {
		if !s.has(t.field) {
			continue
		}
		if d, ok := number(s.values[t.field]); ok && d >= 0 && d <= maxSeconds {
			*t.to = request.Some(d)
		}
	}
	r.Beam, r.UserTTFTEstimated = s.flag(fieldOwnBeam), s.flag(fieldOwnEstimated)
	if n, ok := s.tokens(r, fieldOwnChunks, "chunks"); ok {
		r.Chunks = n
	}
	if s.has(fieldOwnInvalid) && s.values[fieldOwnInvalid].Type() == pcommon.ValueTypeSlice {
		for _, v := range s.values[fieldOwnInvalid].Slice().All() {
			if v.Type() == pcommon.ValueTypeStr && isName(v.Str(), 64) && len(r.Invalid) < maxInvalid {
				r.Reject(v.Str())
			}
		}
	}
	s.business(r)
	return aRequest
}

// decision reads what sampling decided on the span's trace, which stands on every span of it.
func (s *source) decision(r *request.Request) {
	switch d := s.text(fieldOwnDecision); d {
	case names.DecisionKeep, names.DecisionDrop:
		r.Decision, r.Partial = d, s.flag(fieldOwnPartial)
		if rule := s.text(fieldOwnReason); isName(rule, 64) {
			r.Rule = rule
		}
	}
}

// Write leaves on a span what was read from it, under the current names. It adds at most what names.SpanAttributes lists, overwrites
// nothing but its own attributes, and leaves the source's spellings where they are. What somebody else wrote under our names goes, so that
// a second reader does not take it for ours.
func Write(r *request.Request, span ptrace.Span) {
	a := span.Attributes()
	a.RemoveIf(func(k string, _ pcommon.Value) bool {
		if !strings.HasPrefix(k, "llmspan.") {
			return false
		}
		_, own := ownKeys[k]
		_, business := businessKeys[k]
		return own || business || k == names.TPOT || // which is not read: it follows from the rest
			strings.HasPrefix(k, names.Dimension)
	})
	times := [...]struct {
		key string
		v   request.Seconds
	}{
		{names.Admission, r.Admission},
		{names.Queue, r.Queue},
		{names.Prefill, r.Prefill},
		{names.Decode, r.Decode},
		{names.KVTransfer, r.KVTransfer},
		{names.Ingress, r.Ingress},
		{names.Return, r.Return},
		{names.TTFT, r.TTFT},
		{names.TPOT, r.TPOT()},
		{names.E2E, r.E2E},
		{names.UserTTFT, r.UserTTFT},
		{names.ClockSkew, r.ClockSkew},
		{names.UserE2E, r.UserE2E},
		{names.UserGapMax, r.UserGapMax},
	}
	// Room for what comes, and no more: a span's attributes seldom fill what they were decoded into, and to move them costs more than to
	// write them.
	room := 3 + len(r.Dimensions)
	for _, f := range times {
		if f.v.Known {
			room++
		}
	}
	if r.Layer == request.LayerEngine {
		room += 4 // tokens and model, which engines spell in their own way
	}
	if r.Cost.Known || r.Price != nil || r.Outcome != request.OutcomeNone {
		room += 4
	}
	a.EnsureCapacity(a.Len() + room)
	a.PutStr(names.Layer, r.Layer.String())
	a.PutStr(names.Dialect, r.Dialect)
	for _, f := range times {
		if f.v.Known {
			a.PutDouble(f.key, f.v.Value)
		}
	}
	if !r.LayerOnly {
		writeRequest(r, a)
	}
	a.PutStr(names.Status, r.Status.String())
	if r.Beam {
		a.PutBool(names.Beam, true)
	}
	if r.UserTTFTEstimated {
		a.PutBool(names.UserTTFTEstimated, true)
	}
	if r.Chunks > 0 {
		a.PutInt(names.Chunks, r.Chunks)
	}
	if len(r.Invalid) > 0 {
		s := a.PutEmptySlice(names.Invalid)
		for _, n := range r.Invalid {
			s.AppendEmpty().SetStr(n)
		}
	}
	WriteBusiness(r, a)
}

// writeRequest folds usage and identity to the current names.
func writeRequest(r *request.Request, a pcommon.Map) {
	for _, f := range [...]struct {
		key string
		v   request.Tokens
	}{
		{names.InputTokens, r.InputTokens},
		{names.OutputTokens, r.OutputTokens},
		{names.CacheReadTokens, r.CachedTokens},
		{names.CacheWriteTokens, r.CacheWriteToken},
		{names.ReasoningTokens, r.ReasoningTokens},
	} {
		if f.v.Known {
			a.PutInt(f.key, f.v.Value)
		}
	}
	for _, f := range [...]struct{ key, v string }{
		{names.RequestModel, r.Model}, {names.OperationName, r.Operation}, {names.ProviderName, r.Provider}, {names.ResponseID, r.ResponseID},
	} {
		if f.v == "" || f.v == OtherModel {
			continue
		}
		if old, ok := a.Get(f.key); !ok {
			a.PutStr(f.key, f.v)
		} else if old.Type() == pcommon.ValueTypeStr && old.Str() != f.v {
			old.SetStr(f.v)
		}
	}
	if r.FinishReason != "" {
		if _, ok := a.Get(names.FinishReasons); !ok {
			a.PutEmptySlice(names.FinishReasons).AppendEmpty().SetStr(r.FinishReason)
		}
	}
}

// DropSource removes the spellings of the source that Write has folded to current names: usage, provider and model keys of a rank
// other than the first, and the engine's latency keys. A figure that was rejected, or is not read, stays: it is nowhere else.
func DropSource(r *request.Request, a pcommon.Map) {
	engine := r.Layer == request.LayerEngine
	a.RemoveIf(func(k string, _ pcommon.Value) bool {
		sp, ok := spellings[k]
		if !ok {
			return false
		}
		switch sp.field {
		case fieldQueue:
			return engine && r.Queue.Known
		case fieldPrefill:
			return engine && r.Prefill.Known
		case fieldDecode:
			return engine && r.Decode.Known
		case fieldInference: // prefill and decode
			return engine && r.Prefill.Known && r.Decode.Known
		case fieldTTFT:
			return engine && r.TTFT.Known
		case fieldE2E:
			return engine && r.E2E.Known
		case fieldInputTokens:
			return sp.rank > 0 && r.InputTokens.Known
		case fieldOutputTokens:
			return sp.rank > 0 && r.OutputTokens.Known
		case fieldCachedTokens:
			return sp.rank > 0 && r.CachedTokens.Known
		case fieldCacheWriteTokens:
			return sp.rank > 0 && r.CacheWriteToken.Known
		case fieldReasoningTokens:
			return sp.rank > 0 && r.ReasoningTokens.Known
		case fieldRequestModel:
			return sp.rank > 0 && r.Model != "" && r.Model != OtherModel
		case fieldProvider:
			return sp.rank > 0 && r.Provider != ""
		case fieldDynamoInput:
			return r.Dialect == "dynamo" && r.InputTokens.Known
		case fieldDynamoOutput:
			return r.Dialect == "dynamo" && r.OutputTokens.Known
		case fieldDynamoModel:
			return r.Dialect == "dynamo" && r.Model != "" && r.Model != OtherModel
		}
		return false
	})
}
