// Package line writes one LLM request as one line of text for a person at a terminal.
//
// It is pure: values in, a string out. Everything it prints comes from outside (models and error types are named by whoever
// sends the telemetry), so nothing reaches the terminal that is not printable and every field has a bound.
package line

import (
	"strconv"
	"strings"
	"time"
)

// Opt is a value that a source may not have told. The zero value is "not told", which is printed as a dash, never as 0.
type Opt[T any] struct {
	Value T
	Known bool
}

// Some is a value that was told.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, Known: true} }

// Stage is one part of a request's time; its name is the one that spans and metrics carry.
type Stage struct {
	Name    string
	Seconds Opt[float64]
}

// Request is what a line tells. Times are seconds, counts are tokens.
type Request struct {
	End       time.Time // when the response was complete, in the zone to print; zero when not told
	Model     string
	Status    string // ok, error, cancelled, unknown
	ErrorType string
	Stages    []Stage // in order of time; those not known are left out

	TTFT, TPOT, E2E   Opt[float64] // as the engine saw it
	UserTTFT, UserE2E Opt[float64] // as the outermost layer saw it

	Input, Output, Cached Opt[int64] // Cached is the part of Input that came from the prefix cache

	Cost     Opt[float64]
	Currency string

	Missed  []string // objectives that were missed
	Quality []string // findings about the answer
}

const (
	statusWidth = len("cancelled")
	modelWidth  = 24
	// listMax bounds how many findings are printed.
	listMax = 6
	dash    = "—"
)

// Format returns the line of r without a line break. The same fields stand in the same columns on every line; what only some
// requests have comes last. With color it holds ANSI colours, else no control character at all.
func Format(r Request, color bool) string {
	p := painter{on: color}
	p.field(dim, clock(r.End))
	p.field(statusColor(r.Status), pad(clip(clean(orUnknown(r.Status)), statusWidth), statusWidth))
	p.field(bold, pad(clipLeft(clean(orDash(r.Model)), modelWidth), modelWidth))
	p.labelled("ttft", seconds(r.TTFT))
	p.labelled("tpot", seconds(r.TPOT))
	p.labelled("e2e", seconds(r.E2E))
	p.field(plain, padLeft(tokens(r.Input), 6)+"→"+pad(tokens(r.Output), 6))
	for _, s := range r.Stages {
		if s.Seconds.Known {
			p.labelled(s.Name, seconds(s.Seconds))
		}
	}
	if r.UserTTFT.Known || r.UserE2E.Known {
		p.labelled("user ttft", seconds(r.UserTTFT))
		p.labelled("user e2e", seconds(r.UserE2E))
	}
	if r.Cached.Known && r.Cached.Value > 0 {
		p.field(plain, "cached "+tokens(r.Cached))
	}
	if r.Cost.Known {
		p.field(plain, money(r.Cost.Value, clip(clean(r.Currency), 8)))
	}
	if len(r.Missed) > 0 {
		p.field(yellow, "slo missed: "+list(r.Missed))
	}
	if len(r.Quality) > 0 {
		p.field(yellow, "quality: "+list(r.Quality))
	}
	if r.ErrorType != "" {
		p.field(red, clip(clean(r.ErrorType), 40))
	}
	return strings.TrimRight(p.b.String(), " ")
}

// LeftOut returns the line that stands for n requests whose lines were not printed.
func LeftOut(n int64, color bool) string {
	p := painter{on: color}
	what := " more requests not shown"
	if n == 1 {
		what = " more request not shown"
	}
	p.field(dim, "… "+strconv.FormatInt(n, 10)+what+" (metrics and records have every one)")
	return p.b.String()
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "--:--:--.---"
	}
	return t.Format("15:04:05.000")
}

func tokens(n Opt[int64]) string {
	if !n.Known || n.Value < 0 {
		return dash
	}
	return strconv.FormatInt(n.Value, 10)
}

func list(items []string) string {
	more := ""
	if len(items) > listMax {
		items, more = items[:listMax], ",…"
	}
	out := make([]string, len(items))
	for i, s := range items {
		out[i] = clip(clean(s), 20)
	}
	return strings.Join(out, ",") + more
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func orDash(s string) string {
	if s == "" {
		return dash
	}
	return s
}
