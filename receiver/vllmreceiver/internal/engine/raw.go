package engine

import (
	"slices"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/page"
)

// Raw passes a page's own families through: names, labels, values and bounds as they are. It remembers the families it has seen, so one Raw
// serves one endpoint; not safe for concurrent use.
type Raw struct {
	// MaxFamilies bounds the families remembered; further ones are dropped. A family that changes its type is a new one.
	MaxFamilies int

	byName map[string]*Metric
	next   int
	view   view
}

// firstRawID keeps the ids of raw metrics apart from those of Metrics.
const firstRawID = 1 << 14

// passthrough reads every family with all its labels.
var passthrough = &Table{}

// Append adds the points of every family but the _created ones; dropped counts families that did not fit.
func (r *Raw) Append(points []Point, p *page.Page) (_ []Point, dropped int) {
	if r.byName == nil {
		r.byName = map[string]*Metric{}
	}
	v := &r.view
	v.page, v.table = p, passthrough
	done := map[string]bool{}
	for _, name := range p.Names {
		family, kind, ok := rawFamily(p, name)
		if !ok || done[family] || strings.HasPrefix(family, "llm.engine.") {
			continue
		}
		done[family] = true
		m := r.metric(p, family, kind)
		if m == nil {
			dropped++
			continue
		}
		points = append(points, v.raw(m, family)...)
	}
	return points, dropped
}

// rawFamily says which metric a sample name belongs to: itself, or the histogram whose part it is.
func rawFamily(p *page.Page, name string) (family string, kind Kind, ok bool) {
	b := base(name)
	whole, _ := p.Type(b)
	if b != name && (whole == page.TypeHistogram) {
		return b, Histogram, !strings.HasSuffix(name, "_total")
	}
	if strings.HasSuffix(name, "_created") {
		return "", 0, false
	}
	t, declared := p.Type(name)
	switch {
	case declared && t == page.TypeCounter, !declared && whole == page.TypeCounter && strings.HasSuffix(name, "_total"),
		whole == page.TypeSummary && b != name:
		return name, Counter, true
	case declared && t == page.TypeSummary: // quantiles cannot be added up or compared
		return "", 0, false
	}
	return name, Gauge, true
}

func (r *Raw) metric(p *page.Page, family string, kind Kind) *Metric {
	if m, ok := r.byName[family]; ok && m.Kind == kind {
		return m
	}
	if r.MaxFamilies > 0 && r.next >= r.MaxFamilies {
		return nil
	}
	m := &Metric{Name: strings.ToValidUTF8(strings.Clone(family), "\uFFFD"), Kind: kind, id: firstRawID + r.next}
	r.next++
	m.Description = strings.ToValidUTF8(strings.Clone(p.Help(family)), "\uFFFD")
	r.byName[strings.Clone(family)] = m
	return m
}

func (v *view) raw(m *Metric, family string) []Point {
	if m.Kind == Histogram {
		v.collect(&Term{Family: family})
		out := make([]Point, 0, len(v.buckets.list))
		for i := range v.buckets.list {
			s := &v.buckets.list[i]
			if h, ok := s.hist(1); ok {
				out = append(out, Point{Metric: m, Attrs: allLabels(s.sample, "le"), Hist: h, Created: s.created})
			}
		}
		return out
	}
	samples := v.page.Samples(family)
	created := v.page.Samples(base(family) + "_created")
	out := make([]Point, 0, len(samples))
	for i := range samples {
		s := &samples[i]
		if s.Value != s.Value || m.Kind == Counter && s.Value < 0 {
			continue
		}
		pt := Point{Metric: m, Attrs: allLabels(s, ""), Value: s.Value}
		if m.Kind == Counter {
			pt.Created = createdOf(created, i, s)
		}
		out = append(out, pt)
	}
	return out
}

func allLabels(s *page.Sample, without string) []Attr {
	attrs := make([]Attr, 0, len(s.Labels))
	for _, l := range s.Labels {
		if l.Name != without {
			attrs = append(attrs, Attr{l.Name, l.Value})
		}
	}
	slices.SortFunc(attrs, func(a, b Attr) int { return strings.Compare(a.Key, b.Key) })
	return attrs
}
