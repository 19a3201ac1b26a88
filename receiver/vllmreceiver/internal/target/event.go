package target

import (
	"maps"
	"slices"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/engine"
)

// Event is a change that is told once.
type Event struct {
	// Name is EventState or EventAdvice.
	Name string
	// Warn tells a change an operator should look at.
	Warn bool
	// Text is for people; Attrs carry the same for machines.
	Text  string
	Attrs []engine.Attr
}

// Names of the events and the keys of their attributes.
const (
	EventState  = "llm.engine.state"
	EventAdvice = "llm.engine.advice"

	KeyPrevious = "llm.engine.state.previous"
	KeyReason   = "llm.engine.state.reason"
	KeyAdvice   = "llm.advice"
	KeyFlag     = "llm.advice.flag"
	KeyResolved = "llm.advice.resolved"
)

// splitMemory is how many scrapes after the last jump backwards the answers are still taken to come from several processes: by chance the same one
// may answer a few times in a row.
const splitMemory = 30

func (t *Target) events(s *seen, backward bool) []Event {
	var out []Event
	if s.state != t.state {
		out = append(out, t.stateEvent(s))
		t.state, t.reason = s.state, s.reason
	}
	advice := s.advice
	if s.state == StateNotFound {
		advice = append(advice, engine.NoPage(t.opt.Path))
	}
	if backward {
		t.split = splitMemory
	}
	if t.split > 0 {
		t.split--
		advice = append(advice, engine.Split())
	}
	if s.unknownCount > 0 {
		advice = append(advice, engine.Unknown(s.unknownCount, s.unknown))
	}
	if s.read || s.state == StateNotFound {
		out = append(out, t.adviceEvents(advice)...)
	}
	return out
}

func (t *Target) stateEvent(s *seen) Event {
	e := Event{Name: EventState, Warn: s.state != StateOK, Attrs: []engine.Attr{{Key: engine.AttrState, Value: string(s.state)}}}
	if t.state != "" {
		e.Attrs = append(e.Attrs, engine.Attr{Key: KeyPrevious, Value: string(t.state)})
	}
	if s.reason != "" {
		e.Attrs = append(e.Attrs, engine.Attr{Key: KeyReason, Value: s.reason})
	}
	switch s.state {
	case StateOK:
		e.Text = "found " + s.owner.Table.Title
		if v := t.version.String(); v != "" {
			e.Text += " " + v
		}
	case StateUnreachable:
		e.Text = "the endpoint does not answer: " + s.reason
	case StateNotFound:
		e.Text = "the server has no such page: " + s.reason
	case StateNotEngine:
		e.Text = "not an inference engine: " + s.reason
	case StateIncomplete:
		e.Text = "an engine's page without figures it has to have: " + s.reason
	}
	return e
}

// adviceEvents tells what is new and what has been settled.
func (t *Target) adviceEvents(now []engine.Advice) []Event {
	var out []Event
	current := make(map[string]engine.Advice, len(now))
	for _, a := range now {
		current[a.Code] = a
		if had, ok := t.advice[a.Code]; ok && had == a {
			continue
		}
		out = append(out, Event{
			Name: EventAdvice, Warn: a.Warn, Text: a.Text + ": " + a.Flag,
			Attrs: []engine.Attr{{Key: KeyAdvice, Value: a.Code}, {Key: KeyFlag, Value: a.Flag}},
		})
	}
	for _, code := range slices.Sorted(maps.Keys(t.advice)) {
		if _, still := current[code]; !still {
			out = append(out, Event{
				Name: EventAdvice, Text: "settled: " + t.advice[code].Text,
				Attrs: []engine.Attr{{Key: KeyAdvice, Value: code}, {Key: KeyResolved, Value: "true"}},
			})
		}
	}
	t.advice = current
	return out
}
