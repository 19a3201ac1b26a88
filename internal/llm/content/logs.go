package content

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// Logs redacts ld in place and adds what it did to f. A body is text whatever its type and wherever it comes from: an engine
// that logs its requests logs their prompts. Of a body that is a map the skeleton of a message stays.
func (r *Redactor) Logs(ld plog.Logs, f *Facts) {
	w := r.walk(SignalLogs, r.mode, f)
	defer w.done()
	w.logs(ld)
}

func (w *walk) logs(ld plog.Logs) {
	for i := range ld.ResourceLogs().Len() {
		rl := ld.ResourceLogs().At(i)
		w.mode = w.r.ModeOf(rl.Resource())
		w.resource(rl.Resource())
		rl.SetSchemaUrl(w.schemaURL(rl.SchemaUrl()))
		for j := range rl.ScopeLogs().Len() {
			sl := rl.ScopeLogs().At(j)
			w.scope(sl.Scope())
			sl.SetSchemaUrl(w.schemaURL(sl.SchemaUrl()))
			for k := range sl.LogRecords().Len() {
				w.record(sl.LogRecords().At(k))
			}
		}
	}
}

func (w *walk) record(lr plog.LogRecord) {
	w.forget()
	w.place = "body"
	w.body(lr.Body())
	w.place = "log"
	w.attributes(lr.Attributes())
	if len(w.measures) > 0 { // the body's, when there is no attribute
		w.flush(lr.Attributes())
	}
	if s := lr.EventName(); s != "" {
		if out := w.placed(placeLogEvent, s); out != s {
			lr.SetEventName(out)
		}
	}
	if s := lr.SeverityText(); s != "" && w.mode != ModeKeep && (len(s) > 24 || !isLabel(s)) {
		w.count(ClassName, "log.severity_text")
		lr.SetSeverityText("")
	}
}

// body redacts a log body. The skeleton of a message stays in every mode; what is measured lands on the record's attributes.
func (w *walk) body(v pcommon.Value) {
	ru := w.r.places[placeBody]
	switch v.Type() {
	case pcommon.ValueTypeEmpty:
		return
	case pcommon.ValueTypeStr:
		if v.Str() == "" {
			return
		}
	case pcommon.ValueTypeMap:
		if v.Map().Len() == 0 {
			return
		}
	case pcommon.ValueTypeSlice:
		if v.Slice().Len() == 0 {
			return
		}
	case pcommon.ValueTypeBytes:
		if v.Bytes().Len() == 0 {
			return
		}
	}
	if ru.verb == verbAllow {
		w.scrub(placeBody, v, 0)
		return
	}
	mode := w.mode
	if ru.mode != "" {
		mode = ru.mode
	}
	if mode == ModeStrip && isSkeleton(v, false, 0) {
		return // nothing but a skeleton: a second pass has nothing to do
	}
	if w.redact(&ru, placeBody, v) {
		stripBody(v)
	}
}

// stripBody leaves the skeleton of a message and nothing else: an empty value when there is none.
func stripBody(v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeMap:
		stripMap(v.Map(), false, 0)
	case pcommon.ValueTypeSlice:
		stripSlice(v.Slice(), false, 0)
	default:
		pcommon.NewValueEmpty().CopyTo(v)
	}
}

func stripMap(m pcommon.Map, ofTool bool, depth int) {
	t := transform{mode: ModeStrip}
	m.RemoveIf(func(k string, v pcommon.Value) bool {
		if t.skeleton(k, v, ofTool) {
			return false
		}
		if depth >= maxDepth || in(opaqueWords, k) || !in(structuralKeys, k) {
			return true
		}
		switch v.Type() {
		case pcommon.ValueTypeMap:
			stripMap(v.Map(), in(toolWords, k), depth+1)
			return v.Map().Len() == 0
		case pcommon.ValueTypeSlice:
			stripSlice(v.Slice(), in(toolWords, k), depth+1)
			return v.Slice().Len() == 0
		}
		return true
	})
}

func stripSlice(s pcommon.Slice, ofTool bool, depth int) {
	s.RemoveIf(func(v pcommon.Value) bool {
		if depth >= maxDepth {
			return true
		}
		switch v.Type() {
		case pcommon.ValueTypeMap:
			stripMap(v.Map(), ofTool, depth+1)
			return v.Map().Len() == 0
		case pcommon.ValueTypeSlice:
			stripSlice(v.Slice(), ofTool, depth+1)
			return v.Slice().Len() == 0
		}
		return true
	})
}

// isSkeleton reports whether stripBody would leave v as it is.
func isSkeleton(v pcommon.Value, ofTool bool, depth int) bool {
	if depth > maxDepth {
		return false
	}
	t := transform{mode: ModeStrip}
	switch v.Type() {
	case pcommon.ValueTypeMap:
		for k, e := range v.Map().All() {
			if t.skeleton(k, e, ofTool) {
				continue
			}
			if in(opaqueWords, k) || !in(structuralKeys, k) || !isSkeleton(e, in(toolWords, k), depth+1) {
				return false
			}
		}
		return v.Map().Len() > 0
	case pcommon.ValueTypeSlice:
		for i := range v.Slice().Len() {
			if !isSkeleton(v.Slice().At(i), ofTool, depth+1) {
				return false
			}
		}
		return v.Slice().Len() > 0
	}
	return false
}
