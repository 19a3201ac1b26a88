// Package series follows the series of one endpoint from scrape to scrape: since when each one counts, whether it began anew, whether it is gone.
//
// It has no clock; the time of a scrape comes in. A series that was not on the last page is marked once and then silent, so that a value is never
// repeated as fresh; it is remembered for a while, so that a page that failed to come does not look like a restart.
package series

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/engine"
)

// Tracker holds the series of one endpoint; not safe for concurrent use.
type Tracker struct {
	// MaxSeries bounds the series held of the page, those that are gone included. Zero means no bound.
	MaxSeries int
	// Expiry is how long a series that is gone is remembered.
	Expiry time.Duration

	held   map[string]*state
	capped int       // of held, those that count for MaxSeries
	whole  time.Time // of the last scrape that showed all there was
	gen    uint64
	key    []byte
	out    []Output
}

type state struct {
	key      string
	metric   *engine.Metric
	attrs    []engine.Attr
	start    time.Time
	last     time.Time // of the last value
	value    float64   // of a counter, or the count of a histogram
	claimed  float64   // since when the page says that it counts, Unix seconds by the engine's clock; 0 unknown
	gen      uint64
	gone     bool
	reported bool
}

// Output is one point to export.
type Output struct {
	Metric *engine.Metric
	// Attrs belong to the Tracker and never change.
	Attrs []engine.Attr
	Value float64
	Hist  *engine.Hist
	// Start is the zero time for a gauge.
	Start time.Time
	// Gone marks the end of the series; it has no value then.
	Gone bool
}

// Scrape is what one scrape brought.
type Scrape struct {
	Time   time.Time
	Points []engine.Point
	// ProcessStart is when the process began, for series that do not say themselves; Unix seconds, 0 unknown.
	ProcessStart float64
	// Partial tells that the page was cut, so that what is absent may only be missing and is not marked as gone.
	Partial bool
	// Whole tells that the page showed every series there was, so that one that comes later began later.
	Whole bool
}

// Change says what a scrape changed.
type Change struct {
	// Dropped counts points that were kept out, because the cap was reached or because the same series was there twice.
	Dropped int
	// Resets counts series that began anew, Backward those whose start time is older than it was: another process answered.
	Resets, Backward int
	// Gone counts the series that ended.
	Gone int
}

// Observe takes a scrape and returns what to export. The result is valid until the next call.
func (t *Tracker) Observe(s Scrape) ([]Output, Change) {
	if t.held == nil {
		t.held = map[string]*state{}
	}
	t.gen++
	t.out = t.out[:0]
	var c Change
	for i := range s.Points {
		t.point(&s, &s.Points[i], &c)
	}
	t.sweep(&s, &c)
	if s.Whole && !s.Partial && c.Dropped == 0 {
		t.whole = s.Time
	}
	return t.out, c
}

// Held is the number of series held now.
func (t *Tracker) Held() int { return len(t.held) }

func (t *Tracker) point(s *Scrape, p *engine.Point, c *Change) {
	st := t.state(p)
	switch {
	case st == nil || st.gen == t.gen:
		c.Dropped++
		return
	case p.Metric.Kind != engine.Gauge:
		t.since(st, s, p, c)
	}
	st.gen, st.gone, st.last, st.reported = t.gen, false, s.Time, true
	t.out = append(t.out, Output{Metric: st.metric, Attrs: st.attrs, Value: p.Value, Hist: p.Hist, Start: st.start})
}

func (t *Tracker) state(p *engine.Point) *state {
	t.key = engine.AppendKey(append(t.key[:0], byte(p.Metric.ID()>>8), byte(p.Metric.ID())), p.Attrs)
	if st, ok := t.held[string(t.key)]; ok {
		return st
	}
	if !p.Metric.Own {
		if t.MaxSeries > 0 && t.capped >= t.MaxSeries && !t.makeRoom() {
			return nil
		}
		t.capped++
	}
	st := &state{key: string(t.key), metric: p.Metric, attrs: slices.Clone(p.Attrs)}
	for i := range st.attrs { // they point into the page
		st.attrs[i] = engine.Attr{Key: strings.Clone(st.attrs[i].Key), Value: attrValue(st.attrs[i].Value)}
	}
	t.held[st.key] = st
	return st
}

// maxValue bounds the length of an attribute's value, in bytes.
const maxValue = 512

// attrValue copies a value out of the page, cut to maxValue and made valid UTF-8, since exporters refuse a whole batch for one bad byte.
func attrValue(s string) string {
	if len(s) > maxValue {
		s = s[:maxValue]
	}
	return strings.Clone(strings.ToValidUTF8(s, "\uFFFD"))
}

// makeRoom forgets series that are gone.
func (t *Tracker) makeRoom() bool {
	for _, st := range t.held {
		if st.gone {
			t.forget(st)
		}
	}
	return t.capped < t.MaxSeries
}

func (t *Tracker) forget(st *state) {
	delete(t.held, st.key)
	if !st.metric.Own {
		t.capped--
	}
}

// since sets the start time of a cumulative series.
//
// Without any word on a first value, the series began after the last whole page; on the first page, with the first sight of it.
//
// A start that the page claims is taken; it is the engine's clock, so it is only compared with earlier claims, and moved into the gap between
// the last value and now. Without a claim a fall of the value is the sign of a reset, which then happened after the last value.
func (t *Tracker) since(st *state, s *Scrape, p *engine.Point, c *Change) {
	value := p.Value
	if p.Hist != nil {
		value = float64(p.Hist.Count)
	}
	claimed := claim(p.Created, s.ProcessStart)
	const same = 1.0 // seconds
	switch {
	case !st.reported:
		switch {
		case claimed > 0:
			st.start = earlier(unix(claimed), s.Time)
		case !t.whole.IsZero(): // it was not there then: engines print some families with their first value
			st.start = earlier(after(t.whole), s.Time)
		default:
			st.start = s.Time
		}
	case claimed > 0 && st.claimed > 0 && math.Abs(claimed-st.claimed) > same:
		c.Resets++
		if claimed < st.claimed {
			c.Backward++
		}
		st.start = within(unix(claimed), after(st.last), s.Time)
	case claimed > 0 && st.claimed == 0 && unix(claimed).After(st.last):
		c.Resets++
		st.start = within(unix(claimed), after(st.last), s.Time)
	case value < st.value:
		c.Resets++
		st.start = earlier(after(st.last), s.Time)
	}
	if claimed > 0 {
		st.claimed = claimed
	}
	st.value = value
}

// claim picks the page's word on when a series began: its own, else the process's. Times before 2001 are no times.
func claim(created, process float64) float64 {
	for _, c := range []float64{created, process} {
		if c > 1e9 && c < 1e11 {
			return c
		}
	}
	return 0
}

// after is the first moment a series can begin anew after a value: never the start it had, which may be the time of that very value.
func after(t time.Time) time.Time { return t.Add(time.Millisecond) }

func unix(seconds float64) time.Time {
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func within(t, from, to time.Time) time.Time {
	if t.Before(from) {
		return from
	}
	return earlier(t, to)
}

// sweep marks what is gone and forgets what has been gone for long.
func (t *Tracker) sweep(s *Scrape, c *Change) {
	var gone []*state
	for _, st := range t.held {
		switch {
		case st.gen == t.gen:
		case !st.gone && !s.Partial:
			st.gone = true
			gone = append(gone, st)
		case st.gone && s.Time.Sub(st.last) > t.Expiry:
			t.forget(st)
		}
	}
	t.out = ended(t.out, gone)
	c.Gone = len(gone)
}

// Live returns the series that have a value now, as ended: for an endpoint that goes on under another identity. The result is valid until the next
// Observe.
func (t *Tracker) Live() []Output {
	var live []*state
	for _, st := range t.held {
		if !st.gone && st.gen == t.gen {
			live = append(live, st)
		}
	}
	return ended(nil, live)
}

func ended(out []Output, states []*state) []Output {
	slices.SortFunc(states, func(a, b *state) int { return strings.Compare(a.key, b.key) })
	for _, st := range states {
		out = append(out, Output{Metric: st.metric, Attrs: st.attrs, Start: st.start, Gone: true})
	}
	return out
}
