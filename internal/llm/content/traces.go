package content

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Traces redacts td in place and adds what it did to f. Nothing is added, dropped or reordered but attributes.
func (r *Redactor) Traces(td ptrace.Traces, f *Facts) {
	w := r.walk(SignalTraces, r.mode, f)
	defer w.done()
	w.traces(td)
}

func (w *walk) traces(td ptrace.Traces) {
	for i := range td.ResourceSpans().Len() {
		rs := td.ResourceSpans().At(i)
		w.mode = w.r.ModeOf(rs.Resource())
		w.resource(rs.Resource())
		rs.SetSchemaUrl(w.schemaURL(rs.SchemaUrl()))
		for j := range rs.ScopeSpans().Len() {
			ss := rs.ScopeSpans().At(j)
			w.scope(ss.Scope())
			ss.SetSchemaUrl(w.schemaURL(ss.SchemaUrl()))
			for k := range ss.Spans().Len() {
				w.span(ss.Spans().At(k))
			}
		}
	}
}

// Span redacts one span in place: the step that Traces takes for every span, for a caller that walks by itself. mode is
// ModeOf the span's resource. The resource and scope stay as they are: see Resource and Scope.
func (r *Redactor) Span(mode Mode, span ptrace.Span, f *Facts) {
	w := r.walk(SignalTraces, mode, f)
	defer w.done()
	w.span(span)
}

// Resource redacts a resource in place, in the mode that ModeOf gives for it.
func (r *Redactor) Resource(mode Mode, res pcommon.Resource, f *Facts) {
	w := r.walk(SignalTraces, mode, f)
	defer w.done()
	w.resource(res)
}

// Scope redacts an instrumentation scope in place.
func (r *Redactor) Scope(mode Mode, scope pcommon.InstrumentationScope, f *Facts) {
	w := r.walk(SignalTraces, mode, f)
	defer w.done()
	w.scope(scope)
}

func (w *walk) resource(res pcommon.Resource) {
	w.place = "resource"
	w.attributes(res.Attributes())
	w.forget()
}

func (w *walk) scope(scope pcommon.InstrumentationScope) {
	w.place = "scope"
	w.attributes(scope.Attributes())
	if s := scope.Name(); s != "" {
		if out := w.placed(placeScope, s); out != s {
			scope.SetName(out)
		}
	}
	if s := scope.Version(); s != "" && w.mode != ModeKeep && !isLabel(s) {
		w.count(ClassName, placeScope)
		scope.SetVersion("")
	}
	w.forget()
}

func (w *walk) schemaURL(s string) string {
	if s == "" || w.mode == ModeKeep {
		return s
	}
	out, ok := stripURL(s)
	if !ok || out != s {
		w.count(ClassURL, "schema_url")
		return ""
	}
	return s
}

func (w *walk) span(span ptrace.Span) {
	w.forget()
	w.place = "span"
	w.attributes(span.Attributes())
	if s := span.Status().Message(); s != "" {
		w.remember(s)
		if out := w.placed(placeStatus, s); out != s {
			span.Status().SetMessage(out)
		}
	}
	w.state(span.TraceState())
	links := span.Links()
	for i := range links.Len() {
		l := links.At(i)
		w.place = "link"
		w.attributes(l.Attributes())
		w.state(l.TraceState())
	}
	events := span.Events()
	for i := range events.Len() {
		w.place = "event"
		w.attributes(events.At(i).Attributes())
	}
	// Names last: by now the texts that they could repeat are known.
	w.place = "span"
	if s := span.Name(); s != "" {
		if out := w.placed(placeSpanName, s); out != s {
			span.SetName(out)
		}
	}
	w.place = "event"
	for i := range events.Len() {
		if s := events.At(i).Name(); s != "" {
			if out := w.placed(placeEventName, s); out != s {
				events.At(i).SetName(out)
			}
		}
	}
}

func (w *walk) state(ts pcommon.TraceState) {
	s := ts.AsRaw()
	if s == "" || w.mode == ModeKeep || w.r.places[placeTraceState].verb == verbAllow {
		return
	}
	if out := traceState(s); out != s {
		w.count(ClassMetadata, placeTraceState)
		ts.FromRaw(out)
	}
}

// placed redacts a text that is no attribute, by the rule of its place, and returns what is to stand there.
func (w *walk) placed(place, s string) string {
	ru := w.r.places[place]
	switch ru.verb {
	case verbAllow:
		out, found := scrubSecrets(s)
		if found {
			w.count(ClassSecret, place)
		}
		return out
	case verbName:
		out := w.name(s)
		if out != s {
			w.count(ClassName, place)
		}
		return out
	}
	mode := w.mode
	if ru.mode != "" {
		mode = ru.mode
	}
	switch mode {
	case ModeKeep:
		out, found := scrubSecrets(s)
		if found {
			w.count(ClassSecret, place)
		}
		return out
	case ModeStrip:
		w.count(ru.class, place)
		return ""
	}
	t := transform{w: w, mode: mode}
	out := t.text(s)
	if t.changed {
		w.count(ru.class, place)
	}
	return out
}
