package gpu

import (
	"slices"
	"strings"
)

// Plan is what a receiver was asked to report: the catalogue less what is switched off, plus extra fields.
// It is read-only after NewPlan and may be shared.
type Plan struct {
	Mappings []Mapping
	byField  map[Field][]int // indexes into Mappings
	series   []int           // of each mapping, the series it feeds
	nSeries  int
	off      map[string]bool
	order    map[*Metric]int
}

// NewPlan makes a plan. enabled overrides a metric's default by name; extra are mappings beyond the catalogue.
func NewPlan(enabled map[string]bool, extra []Mapping) *Plan {
	p := &Plan{byField: map[Field][]int{}, off: map[string]bool{}, order: map[*Metric]int{}}
	for i, m := range Metrics {
		p.order[m] = i
		on, set := enabled[m.Name]
		if (set && !on) || (!set && m.Off) {
			p.off[m.Name] = true
		}
	}
	keys := map[string]int{}
	for _, m := range slices.Concat(Catalog, extra) {
		if p.off[m.Metric.Name] {
			continue
		}
		if _, known := p.order[m.Metric]; !known {
			p.order[m.Metric] = len(p.order)
		}
		key := seriesKey(&m)
		id, ok := keys[key]
		if !ok {
			id = len(keys)
			keys[key] = id
		}
		p.byField[m.Field] = append(p.byField[m.Field], len(p.Mappings))
		p.Mappings = append(p.Mappings, m)
		p.series = append(p.series, id)
	}
	p.nSeries = len(keys)
	return p
}

// On reports whether a metric is wanted.
func (p *Plan) On(metric string) bool { return !p.off[metric] }

// Wants reports whether any wanted metric needs the field. XIDs are always wanted: they are also log records.
func (p *Plan) Wants(f Field) bool { return f == FieldXID || len(p.byField[f]) > 0 }

// Fields lists the wanted fields of a class, each once, in the order of the catalogue; migOnly keeps those that exist
// on MIG instances.
func (p *Plan) Fields(c Class, migOnly bool) []Field {
	var out []Field
	for i := range p.Mappings {
		m := &p.Mappings[i]
		if m.Class == c && (!migOnly || m.MIG) && !slices.Contains(out, m.Field) {
			out = append(out, m.Field)
		}
	}
	return out
}

// ClassOf is the class a field is read with.
func (p *Plan) ClassOf(f Field) (Class, bool) {
	idx := p.byField[f]
	if len(idx) == 0 {
		return 0, false
	}
	return p.Mappings[idx[0]].Class, true
}

// IsRate reports whether a field is a rate that must be integrated over all of its samples.
func (p *Plan) IsRate(f Field) bool {
	idx := p.byField[f]
	return len(idx) > 0 && p.Mappings[idx[0]].How == HowRate
}

// Alternatives lists the wanted fields that feed the same series as f with a lower rank, best first: f need not be
// read where one of them is known to work.
func (p *Plan) Alternatives(f Field) []Field {
	var out []Field
	for _, i := range p.byField[f] {
		for j := range p.Mappings {
			if p.series[j] == p.series[i] && p.Mappings[j].Rank < p.Mappings[i].Rank {
				out = append(out, p.Mappings[j].Field)
			}
		}
	}
	return out
}

func seriesKey(m *Mapping) string {
	var b strings.Builder
	b.WriteString(m.Metric.Name)
	for _, a := range m.Attrs {
		b.WriteByte(0)
		b.WriteString(a.Key)
		b.WriteByte(1)
		b.WriteString(a.Str)
	}
	return b.String()
}
