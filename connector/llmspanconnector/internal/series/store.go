// Package series keeps the cumulative time series of the connector: bounded in number, expired when idle, each with the instant at
// which it started.
//
// The OpenTelemetry SDK's aggregation is not used because it has neither an expiry nor a start per series nor fractional weights, and
// would need a meter provider for each service.
package series

import (
	"encoding/binary"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/measure"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Config bounds a Store.
type Config struct {
	// MaxSeries is the most series that are kept; observations of further ones go to one overflow series of each metric.
	MaxSeries int
	// Expiry is how long a series is exported without an observation; 0 keeps it for ever.
	Expiry time.Duration
	// Exponential makes histograms exponential (at most 160 buckets a side) instead of explicit.
	Exponential bool
}

// Store holds the series. It is not safe for concurrent use.
type Store struct {
	cfg    Config
	now    time.Time
	series map[string]*series // those that count against MaxSeries
	order  []*series
	key    []byte

	overflows [names.NumMetrics]*series

	// Overflowed is the number of observations that went to an overflow series, Expired the number of series that were forgotten.
	Overflowed, Expired int64
}

// resource identifies the source of a series.
type resource struct{ service, namespace, environment string }

// owned is a copy whose texts are its own: a series must not keep a span's memory for the name of a service.
func (r resource) owned() resource {
	return resource{strings.Clone(r.service), strings.Clone(r.namespace), strings.Clone(r.environment)}
}

// series is one time series.
type series struct {
	id       names.MetricID
	key      string
	res      resource
	labels   []measure.Label
	overflow bool
	start    time.Time
	last     time.Time

	sum      float64
	money    cost.Amount
	hist     histogram
	exemplar exemplar
	fresh    bool // a gauge that was observed since the last export that was taken
	shown    bool // a gauge whose value was in that export
	// out is set from an export until it is known whether it was taken; next is the largest value observed meanwhile.
	out       bool
	next      float64
	nextFresh bool
}

// exemplar is the largest observation since the last export that was taken, with its trace; it stays until the next observation, so that a
// slow scraper sees it.
type exemplar struct {
	value float64
	trace pcommon.TraceID
	span  pcommon.SpanID
	at    time.Time
	set   bool
	shown bool // it was in an export that was taken
}

// New returns an empty store.
func New(cfg Config) *Store { return &Store{cfg: cfg, series: map[string]*series{}} }

// SetNow sets the time of the observations that follow.
func (s *Store) SetNow(now time.Time) { s.now = now }

// Len is the number of series.
func (s *Store) Len() int { return len(s.order) }

var _ measure.Sink = (*Store)(nil)

// Observe implements measure.Sink.
func (s *Store) Observe(id names.MetricID, r *request.Request, labels []measure.Label, value, weight float64) {
	res := resource{r.Source.Service, r.Source.Namespace, r.Source.Environment}
	se := s.find(id, res, labels)
	se.last = s.now
	switch names.Metrics[id].Kind {
	case names.Counter:
		se.sum += value * weight
	case names.MaxGauge:
		switch {
		case se.out && (!se.nextFresh || value > se.next):
			se.next, se.nextFresh = value, true
		case !se.out && (!se.fresh || value > se.sum):
			se.sum, se.fresh = value, true
		}
	case names.Histogram:
		se.hist.observe(value, weight)
		// An exemplar points to a trace that will exist.
		if r.Decision != names.DecisionDrop && (!se.exemplar.set || se.exemplar.shown || value > se.exemplar.value) {
			se.exemplar = exemplar{value: value, trace: r.TraceID, span: r.SpanID, at: s.now, set: true}
		}
	}
}

// Charge implements measure.Sink.
func (s *Store) Charge(id names.MetricID, r *request.Request, labels []measure.Label, amount cost.Amount, weight float64) {
	se := s.find(id, resource{r.Source.Service, r.Source.Namespace, r.Source.Environment}, labels)
	se.last = s.now
	se.money = se.money.Add(amount.Scale(weight))
}

// find returns the series of an observation. It allocates only for a new series.
func (s *Store) find(id names.MetricID, res resource, labels []measure.Label) *series {
	// Each part has its length before it: a service can be called anything.
	k := s.key[:0]
	k = append(k, byte(id))
	for _, p := range [...]string{res.service, res.namespace, res.environment} {
		k = append(binary.AppendUvarint(k, uint64(len(p))), p...)
	}
	for _, l := range labels {
		k = append(binary.AppendUvarint(k, uint64(len(l.Key))), l.Key...)
		k = append(binary.AppendUvarint(k, uint64(len(l.Value))), l.Value...)
	}
	s.key = k
	if se, ok := s.series[string(k)]; ok {
		return se
	}
	if len(s.series) >= s.cfg.MaxSeries {
		s.Overflowed++
		return s.overflow(id)
	}
	return s.add(string(k), &series{id: id, res: res.owned(), labels: owned(labels)})
}

// owned is a copy whose texts are its own.
func owned(labels []measure.Label) []measure.Label {
	out := make([]measure.Label, len(labels))
	for i, l := range labels {
		l.Value = strings.Clone(l.Value)
		out[i] = l
	}
	return out
}

// overflow is the series that takes what no series of its own is left for. It keeps no source: that is what overflows.
func (s *Store) overflow(id names.MetricID) *series {
	if se := s.overflows[id]; se != nil {
		return se
	}
	s.overflows[id] = s.add("", &series{id: id, overflow: true})
	return s.overflows[id]
}

func (s *Store) add(k string, se *series) *series {
	se.key, se.start = k, s.now
	if m := &names.Metrics[se.id]; m.Kind == names.Histogram {
		se.hist = newHistogram(m.Bounds, s.cfg.Exponential)
	}
	if !se.overflow {
		s.series[k] = se
	}
	s.order = append(s.order, se)
	return se
}

// expire forgets the series that were not observed for the expiry.
func (s *Store) expire(now time.Time) {
	if s.cfg.Expiry <= 0 {
		return
	}
	kept := s.order[:0]
	for _, se := range s.order {
		if now.Sub(se.last) < s.cfg.Expiry {
			kept = append(kept, se)
			continue
		}
		s.Expired++
		if se.overflow {
			s.overflows[se.id] = nil
			continue
		}
		delete(s.series, se.key)
	}
	clear(s.order[len(kept):])
	s.order = kept
}
