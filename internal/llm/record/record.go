// Package record writes a request as a log record: what a bill, a search or a dashboard needs to know of one request, and no text.
package record

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// ScopeName is the instrumentation scope of the records.
const ScopeName = "github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector"

// Writer appends records to logs, one resource for each source.
type Writer struct {
	logs    plog.Logs
	now     pcommon.Timestamp
	sources map[source]plog.LogRecordSlice
	// price is the last one that was written, text what it says.
	price *cost.Price
	text  string
}

// source is what tells the resources of records apart.
type source struct{ service, namespace, environment string }

// NewWriter returns a writer whose records are observed at now.
func NewWriter(logs plog.Logs, now time.Time) *Writer {
	return &Writer{logs: logs, now: pcommon.NewTimestampFromTime(now), sources: map[source]plog.LogRecordSlice{}}
}

// Write appends the record of a request: event name llm.request, timestamp its end, severity ERROR for a failure, WARN for a missed objective.
// A later part of a request that was recorded before has its own record with the tokens it adds, so that sums over records are exact.
func (w *Writer) Write(q *join.Logical) {
	r := &q.Request
	lr := w.slice(r.Source).AppendEmpty()
	lr.SetEventName(names.RecordEvent)
	lr.SetTimestamp(r.End)
	lr.SetObservedTimestamp(w.now)
	lr.SetTraceID(r.TraceID)
	lr.SetSpanID(r.SpanID)
	lr.SetSeverityNumber(plog.SeverityNumberInfo)
	switch {
	case r.Status == request.StatusError:
		lr.SetSeverityNumber(plog.SeverityNumberError)
	case r.Outcome == request.OutcomeMissed:
		lr.SetSeverityNumber(plog.SeverityNumberWarn)
	}
	lr.SetSeverityText(strings.ToUpper(lr.SeverityNumber().String()))
	w.attributes(q, lr.Attributes())
}

func (w *Writer) slice(s *request.Source) plog.LogRecordSlice {
	k := source{s.Service, s.Namespace, s.Environment}
	if l, ok := w.sources[k]; ok {
		return l
	}
	rl := w.logs.ResourceLogs().AppendEmpty()
	for _, a := range [...]struct{ k, v string }{
		{names.ServiceName, s.Service}, {names.ServiceNamespace, s.Namespace}, {names.DeploymentEnvName, s.Environment},
	} {
		if a.v != "" {
			rl.Resource().Attributes().PutStr(a.k, a.v)
		}
	}
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(ScopeName)
	w.sources[k] = sl.LogRecords()
	return sl.LogRecords()
}

// room is for how many attributes a record most likely has: the room of 32 was the larger part of a client's, and growing costs more.
func room(q *join.Logical) int {
	n := 18 + len(q.Dimensions)
	if q.Sequences > 0 {
		n += 8 // the stages of an engine
	}
	if q.Charge.Known {
		n += 5
	}
	return n
}

func (w *Writer) attributes(q *join.Logical, a pcommon.Map) {
	r := &q.Request
	a.EnsureCapacity(room(q))
	for _, f := range [...]struct{ k, v string }{
		{names.RequestModel, r.Model},
		{names.ResponseModel, r.ResponseModel},
		{names.OperationName, r.Operation},
		{names.ProviderName, r.Provider},
		{names.RequestID, id(r)},
		{names.Dialect, r.Dialect},
		{names.Layer, r.Layer.String()},
	} {
		if f.v != "" {
			a.PutStr(f.k, f.v)
		}
	}
	for _, f := range [...]struct {
		k string
		v request.Tokens
	}{
		{names.InputTokens, r.InputTokens},
		{names.OutputTokens, r.OutputTokens},
		{names.CacheReadTokens, r.CachedTokens},
		{names.CacheWriteTokens, r.CacheWriteToken},
		{names.ReasoningTokens, r.ReasoningTokens},
	} {
		if f.v.Known {
			a.PutInt(f.k, f.v.Value)
		}
	}
	if r.InputTokens.Known || r.OutputTokens.Known {
		a.PutInt(names.TotalTokens, r.InputTokens.Or(0)+r.OutputTokens.Or(0))
	}
	e2e := r.E2E
	if !e2e.Known {
		e2e = r.Elapsed()
	}
	for _, f := range [...]struct {
		k string
		v request.Seconds
	}{
		{names.Ingress, r.Ingress},
		{names.Admission, r.Admission},
		{names.Queue, r.Queue},
		{names.KVTransfer, r.KVTransfer},
		{names.Prefill, r.Prefill},
		{names.Decode, r.Decode},
		{names.Return, r.Return},
		{names.TTFT, r.TTFT},
		{names.TPOT, q.TPOT},
		{names.E2E, e2e},
		{names.UserTTFT, r.UserTTFT},
		{names.UserE2E, r.UserE2E},
		{names.UserGapMax, r.UserGapMax},
		{names.ClockSkew, r.ClockSkew},
	} {
		if f.v.Known {
			a.PutDouble(f.k, f.v.Value)
		}
	}
	a.PutStr(names.Status, r.Status.String())
	if r.Status == request.StatusError && r.ErrorType != "" {
		a.PutStr(names.ErrorType, r.ErrorType)
	}
	if r.FinishReason != "" {
		a.PutEmptySlice(names.FinishReasons).AppendEmpty().SetStr(r.FinishReason)
	}
	if r.UserTTFTEstimated {
		a.PutBool(names.UserTTFTEstimated, true)
	}
	if r.Decision != "" {
		a.PutStr(names.SamplingDecision, r.Decision)
		a.PutStr(names.SamplingReason, r.Rule)
	}
	if r.Beam {
		a.PutBool(names.Beam, true)
	}
	if len(r.Invalid) > 0 {
		s := a.PutEmptySlice(names.Invalid)
		for _, n := range r.Invalid {
			s.AppendEmpty().SetStr(n)
		}
	}
	w.business(q, a)
}

// maxID is the longest request id that is recorded; a caller chooses it, so it can be anything.
const maxID = 128

// id is the request's id in the form of an id, "" otherwise.
func id(r *request.Request) string {
	s := r.RequestID
	if s == "" {
		s = r.ResponseID
	}
	if len(s) > maxID {
		return ""
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c > '~' {
			return ""
		}
	}
	return s
}
