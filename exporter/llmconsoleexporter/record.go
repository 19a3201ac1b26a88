package llmconsoleexporter

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-llm/otelcol-llm/exporter/llmconsoleexporter/internal/line"
)

// eventName marks the log records that are about one request.
const eventName = "llm.request"

// stages are the parts of a request in order of time; llmspan.<stage>.duration holds each, in seconds.
var stages = []string{"ingress", "admission", "queue", "prefill", "kv_transfer", "decode", "return"}

// requestOf reads a record. An attribute of another type than it should have counts as not told.
// Only named attributes are read, never the body, so that no text of a prompt can reach the terminal.
func requestOf(rec plog.LogRecord, resource pcommon.Map, zone *time.Location) line.Request {
	attrs := rec.Attributes()
	r := line.Request{
		End:       endOf(rec, zone),
		Model:     modelOf(attrs, resource),
		Status:    text(attrs, "llmspan.status"),
		ErrorType: text(attrs, "error.type"),
		TTFT:      number(attrs, "llmspan.ttft"),
		TPOT:      number(attrs, "llmspan.tpot"),
		E2E:       number(attrs, "llmspan.e2e"),
		UserTTFT:  number(attrs, "llmspan.user.ttft"),
		UserE2E:   number(attrs, "llmspan.user.e2e"),
		Input:     count(attrs, "gen_ai.usage.input_tokens"),
		Output:    count(attrs, "gen_ai.usage.output_tokens"),
		Cached:    count(attrs, "gen_ai.usage.cache_read.input_tokens"),
		Cost:      number(attrs, "llmspan.cost"),
		Currency:  text(attrs, "llmspan.cost.currency"),
		Missed:    texts(attrs, "llmspan.slo.violated"),
		Quality:   texts(attrs, "llmspan.quality"),
		Stages:    make([]line.Stage, 0, len(stages)),
	}
	for _, s := range stages {
		if v := number(attrs, "llmspan."+s+".duration"); v.Known {
			r.Stages = append(r.Stages, line.Stage{Name: s, Seconds: v})
		}
	}
	return r
}

// modelOf is the model, or the service in brackets: vLLM's spans do not say which model they are about.
func modelOf(attrs, resource pcommon.Map) string {
	if m := text(attrs, "gen_ai.request.model"); m != "" {
		return m
	}
	if s := text(resource, "service.name"); s != "" {
		return "(" + s + ")"
	}
	return ""
}

func endOf(rec plog.LogRecord, zone *time.Location) time.Time {
	ts := rec.Timestamp()
	if ts == 0 {
		ts = rec.ObservedTimestamp()
	}
	if ts == 0 {
		return time.Time{}
	}
	return ts.AsTime().In(zone)
}

func number(attrs pcommon.Map, key string) line.Opt[float64] {
	v, ok := attrs.Get(key)
	switch {
	case ok && v.Type() == pcommon.ValueTypeDouble:
		return line.Some(v.Double())
	case ok && v.Type() == pcommon.ValueTypeInt:
		return line.Some(float64(v.Int()))
	}
	return line.Opt[float64]{}
}

func count(attrs pcommon.Map, key string) line.Opt[int64] {
	if v, ok := attrs.Get(key); ok && v.Type() == pcommon.ValueTypeInt {
		return line.Some(v.Int())
	}
	return line.Opt[int64]{}
}

func text(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok && v.Type() == pcommon.ValueTypeStr {
		return v.Str()
	}
	return ""
}

func texts(attrs pcommon.Map, key string) []string {
	v, ok := attrs.Get(key)
	if !ok || v.Type() != pcommon.ValueTypeSlice {
		return nil
	}
	var out []string
	for _, e := range v.Slice().All() {
		if e.Type() == pcommon.ValueTypeStr {
			out = append(out, e.Str())
		}
	}
	return out
}
