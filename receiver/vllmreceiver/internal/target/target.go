// Package target is one scraped endpoint: what came back from it, what state that is, what has changed since the last time.
//
// It has no clock and does no I/O: an answer goes in with its time, points and events come out.
package target

import (
	"strconv"
	"time"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/page"
	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/series"
)

// State is what an endpoint is.
type State string

// The states. In StateOK and StateIncomplete the endpoint is an engine and up.
const (
	StateOK          State = "ok"
	StateUnreachable State = "unreachable"   // no answer, or an answer that says to come later
	StateNotFound    State = "not_found"     // a server without such a page
	StateNotEngine   State = "not_an_engine" // a page of something else
	StateIncomplete  State = "incomplete"    // an engine's page without figures it has to have
)

// Up reports whether an engine answered.
func (s State) Up() bool { return s == StateOK || s == StateIncomplete }

// Answer is what one request brought.
type Answer struct {
	// Failure names why there is no answer ("timeout", "refused", …); "" when there is one.
	Failure string
	// Status is the HTTP status code.
	Status int
	Body   string
	// Cut tells that the body is known to be incomplete.
	Cut bool
	// Took is how long the request took.
	Took time.Duration
}

// Options say how a target reads its pages.
type Options struct {
	// Pin is the kind to read every page as; "" detects it.
	Pin string
	// Path is the page's path, for messages.
	Path string
	// Raw passes the page's own families through too.
	Raw bool
	// MaxSeries bounds the series held and the sample lines read of a page; MaxFamilies those of Raw.
	MaxSeries, MaxFamilies int
	// Expiry is how long a series that is gone is remembered.
	Expiry time.Duration
}

// Target is one endpoint; not safe for concurrent use.
type Target struct {
	opt     Options
	parser  page.Parser
	mapper  engine.Mapper
	raw     engine.Raw
	tracker series.Tracker

	state   State
	reason  string
	kind    string // of the last engine seen here
	version engine.Version
	advice  map[string]engine.Advice
	split   int            // scrapes for which the advice on several processes still stands
	points  []engine.Point // of the page
	all     []engine.Point // with the receiver's own
}

// New returns a target that has not been scraped.
func New(o Options) *Target {
	return &Target{
		opt:     o,
		parser:  page.Parser{MaxSamples: maxSamples(o.MaxSeries)},
		raw:     engine.Raw{MaxFamilies: o.MaxFamilies},
		tracker: series.Tracker{MaxSeries: o.MaxSeries, Expiry: o.Expiry},
		advice:  map[string]engine.Advice{},
	}
}

// maxSamples: a histogram series has some 25 lines, so the lines read may be a multiple of the series held.
func maxSamples(series int) int { return 30 * series }

// Report is what one scrape means.
type Report struct {
	// Outputs are the points to export, valid until the next scrape.
	Outputs []series.Output
	// Moved are the series that ended under the kind and version of the report before, when those have changed.
	Moved []series.Output
	State State
	// Kind is the engine's kind, "" as long as none was seen here. Version is a range, or "".
	Kind, Version string
	Events        []Event
	// BadLines, Dropped and Unknown are counts of this page; Held is the number of series held now.
	BadLines, Dropped, Unknown, Held int
}

// Observe takes the answer to one request.
func (t *Target) Observe(now time.Time, a Answer) Report {
	r := Report{}
	t.points = t.points[:0]
	kind, version := t.kind, t.version
	scrape := series.Scrape{Time: now}
	seen := seen{}
	if a.Failure == "" && a.Status >= 200 && a.Status < 300 {
		seen = t.read(a, &scrape, &r)
	} else {
		seen.state, seen.reason = failed(a)
	}
	t.all = append(t.own(t.all[:0], a, seen.state, &r), t.points...)
	scrape.Points = t.all

	if t.state != "" && (t.kind != kind || t.version != version) {
		r.Moved = t.tracker.Live()
	}
	var change series.Change
	r.Outputs, change = t.tracker.Observe(scrape)
	r.Held = t.tracker.Held()
	if change.Dropped > 0 {
		r.Dropped += change.Dropped
		patch(r.Outputs, engine.SeriesDropped, float64(r.Dropped))
	}
	r.Events = t.events(&seen, change.Backward > 0)
	r.State, r.Kind, r.Version = seen.state, t.kind, t.version.String()
	return r
}

// seen is what a page shows.
type seen struct {
	state   State
	reason  string
	version engine.Version
	advice  []engine.Advice
	owner   engine.Owner
	unknown []string
	read    bool // there was a whole page to judge

	unknownCount int
}

func (t *Target) read(a Answer, scrape *series.Scrape, r *Report) seen {
	p := t.parser.Parse(a.Body, a.Cut)
	r.BadLines, r.Dropped = p.BadLines, p.Dropped
	scrape.Partial = p.Cut || p.Dropped > 0
	var s seen
	if t.opt.Pin != "" {
		s.owner = engine.Pinned(p, t.opt.Pin)
	} else {
		s.owner = engine.Detect(p)
	}
	if t.opt.Raw {
		var dropped int
		t.points, dropped = t.raw.Append(t.points, p)
		r.Dropped += dropped
	}
	if s.owner.Table == nil {
		s.state, s.reason = t.nobody(p, s.owner)
		if s.state == StateIncomplete && !p.Empty() && !p.Cut {
			s.advice, s.read = []engine.Advice{engine.StatsDisabled(t.kind)}, true
		}
		return s
	}
	got := t.mapper.Map(p, s.owner.Table)
	t.points = append(t.points, got.Points...)
	scrape.ProcessStart = got.ProcessStart
	r.BadLines += got.Invalid
	r.Unknown, s.unknown, s.unknownCount = got.UnknownCount, got.Unknown, got.UnknownCount

	s.read = !scrape.Partial
	s.version = engine.VersionOf(p, s.owner)
	s.advice = engine.Advise(p, s.owner, s.version, &got)
	s.state = StateOK
	scrape.Whole = len(got.Missing) == 0
	switch {
	case p.Cut:
		s.state, s.reason = StateIncomplete, "the page was cut"
	case len(got.Missing) > 0:
		s.state, s.reason = StateIncomplete, "missing "+got.Missing[0]
	}
	if s.owner.Table.Name != t.kind {
		t.kind, t.version = s.owner.Table.Name, engine.Version{}
	}
	if s.state == StateOK && (t.version == engine.Version{} || s.version.Narrower(t.version) || s.version.Before(t.version.From)) {
		t.version = s.version // more families than before, or an older engine in its place
	}
	return s
}

// nobody says what a page is that no engine owns. Where an engine was seen before, it is that engine's page without its figures.
func (t *Target) nobody(p *page.Page, o engine.Owner) (State, string) {
	switch {
	case p.Empty() && p.BadLines == 0:
		return StateIncomplete, "the page is empty"
	case o.Foreign != "":
		return StateNotEngine, "a page of " + o.Foreign
	case p.Empty():
		return StateNotEngine, "no metrics page"
	case t.kind != "":
		return StateIncomplete, "no family of " + t.kind
	}
	return StateNotEngine, "no engine's families; vLLM with --disable-log-stats looks like this"
}

// failed tells a server without a page from one that does not answer. llama.cpp answers 501 without --metrics.
func failed(a Answer) (State, string) {
	if a.Failure != "" {
		return StateUnreachable, a.Failure
	}
	reason := "http_" + strconv.Itoa(a.Status)
	switch a.Status {
	case 404, 405, 410, 501:
		return StateNotFound, reason
	}
	return StateUnreachable, reason
}

// own appends what the receiver itself knows of the endpoint.
func (t *Target) own(points []engine.Point, a Answer, state State, r *Report) []engine.Point {
	up := 0.0
	if state.Up() {
		up = 1
	}
	points = append(points,
		engine.Point{Metric: engine.Up, Value: up, Attrs: []engine.Attr{{Key: engine.AttrState, Value: string(state)}}},
		engine.Point{Metric: engine.ScrapeDuration, Value: a.Took.Seconds()},
	)
	if a.Failure != "" {
		return points
	}
	return append(points,
		engine.Point{Metric: engine.ScrapeSize, Value: float64(len(a.Body))},
		engine.Point{Metric: engine.LinesBad, Value: float64(r.BadLines)},
		engine.Point{Metric: engine.SeriesDropped, Value: float64(r.Dropped)},
		engine.Point{Metric: engine.FamiliesUnknown, Value: float64(r.Unknown)},
	)
}

func patch(out []series.Output, m *engine.Metric, value float64) {
	for i := range out {
		if out[i].Metric == m {
			out[i].Value = value
		}
	}
}
