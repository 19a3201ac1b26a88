package engine

import (
	"math"
	"strconv"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/page"
)

// view is a page seen through a table.
type view struct {
	page  *page.Page
	table *Table
	// invalid counts samples whose value no metric of its kind can have.
	invalid int

	attrs   []Attr // scratch
	groups  groups
	buckets seriesSet
}

// identity returns the attributes that say whose value a sample is.
func (v *view) identity(s *page.Sample) []Attr { return v.appendIdentity(nil, s) }

func (v *view) appendIdentity(attrs []Attr, s *page.Sample) []Attr {
	attrs = appendFirst(attrs, AttrModel, v.table.Model, s)
	attrs = appendFirst(attrs, AttrRank, v.table.Rank, s)
	return appendFirst(attrs, AttrReplica, v.table.Replica, s)
}

func appendFirst(attrs []Attr, key string, labels []string, s *page.Sample) []Attr {
	for _, l := range labels {
		if value, ok := s.Label(l); ok && value != "" {
			return addAttr(attrs, key, value)
		}
	}
	return attrs
}

// describe returns the attributes a sample's point gets, in scratch memory, and whether the term wants the sample.
func (v *view) describe(t *Term, s *page.Sample, constant []Attr) ([]Attr, bool) {
	for _, w := range t.Where {
		if got, _ := s.Label(w.Key); got != w.Value {
			return nil, false
		}
	}
	attrs := v.attrs[:0]
	for _, c := range constant {
		attrs = addAttr(attrs, c.Key, c.Value)
	}
	for _, k := range t.Keep {
		value, has := s.Label(k.Label)
		if k.Map != nil {
			var ok bool
			if value, ok = k.Map(value); !ok {
				return nil, false
			}
		} else if !has {
			continue
		}
		if value != "" {
			attrs = addAttr(attrs, k.Attr, value)
		}
	}
	attrs = v.appendIdentity(attrs, s)
	v.attrs = attrs
	return attrs, true
}

// copyOf ranks the copies of one value: only the lowest counts. A total beats its parts; then the labels of Copies count, in order. Ranks that
// are no numbers, and those beyond 65,535, count as the last.
func (v *view) copyOf(s *page.Sample) uint64 {
	if v.table.Total == "" && len(v.table.Copies) == 0 {
		return 0
	}
	order := uint64(0)
	if v.table.Total != "" {
		if part, ok := s.Label(v.table.Total); ok && part != "" {
			order = 1
		}
	}
	for _, l := range v.table.Copies {
		rank := uint64(0)
		if text, ok := s.Label(l); ok {
			n, err := strconv.ParseUint(text, 10, 16)
			if err != nil {
				n = math.MaxUint16
			}
			rank = n
		}
		order = order<<16 | rank
	}
	return order
}

// value adds up the terms. Only groups that the first term has are returned; a group that a later term lacks counts as zero there.
func (v *view) terms(m *Metric, terms []Term, constant []Attr) []Point {
	if m.Kind == Histogram {
		return v.histogram(&terms[0], constant)
	}
	var out []Point
	for i := range terms {
		t := &terms[i]
		got := v.term(m, t, constant)
		if i == 0 {
			out = got
			continue
		}
		for _, p := range got {
			for j := range out {
				if attrsEqual(out[j].Attrs, p.Attrs) {
					out[j].Value += p.Value
					out[j].Created = earliest(out[j].Created, p.Created)
				}
			}
		}
	}
	if len(terms) > 1 {
		for i := range out {
			out[i].Value = max(out[i].Value, 0) // inflight − queued may be torn by a scrape in the middle
		}
	}
	return out
}

func (v *view) term(m *Metric, t *Term, constant []Attr) []Point {
	samples, created := v.find(m, t)
	scale, ok := v.scale(t)
	if !ok {
		return nil
	}
	v.groups.reset()
	for i := range samples {
		s := &samples[i]
		if !validValue(m, s.Value) {
			if m.Kind == Counter {
				v.invalid++
			}
			continue
		}
		attrs, ok := v.describe(t, s, constant)
		if !ok {
			continue
		}
		at := createdOf(created, i, s)
		_, pid := s.Label(v.table.Pid)
		v.groups.add(attrs, v.copyOf(s), s.Value*scale, at, t.Max || pid && m.Kind == Gauge)
	}
	return v.groups.points()
}

// find returns the samples of a term and those that say when they began to count.
func (v *view) find(m *Metric, t *Term) (samples, created []page.Sample) {
	switch t.Part {
	case PartCount:
		return v.page.Samples(t.Family + "_count"), v.page.Samples(t.Family + "_created")
	case PartSum:
		return v.page.Samples(t.Family + "_sum"), v.page.Samples(t.Family + "_created")
	}
	if m.Kind != Counter {
		return v.page.Samples(t.Family), nil
	}
	return v.counter(t.Family)
}

func (v *view) counter(name string) (samples, created []page.Sample) {
	created = v.page.Samples(name + "_created")
	if samples = v.page.Samples(name + "_total"); len(samples) > 0 {
		return samples, created
	}
	return v.page.Samples(name), created
}

// scale is the factor of a term; false when its unit cannot be told.
func (v *view) scale(t *Term) (float64, bool) {
	scale := t.Scale
	if scale == 0 {
		scale = 1
	}
	if !t.Blocks {
		return scale, true
	}
	help := v.page.Help(t.Family + "_total")
	if help == "" {
		help = v.page.Help(t.Family)
	}
	if !strings.Contains(help, "blocks") {
		return scale, true
	}
	for _, s := range v.page.Samples(v.table.Prefixes[0] + "cache_config_info") {
		if size, ok := labelNumber(s.Label("block_size")); ok {
			return scale * size, true
		}
	}
	return 0, false
}

func validValue(m *Metric, value float64) bool {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return false
	}
	if m.Ratio {
		return value >= 0 && value <= 1+1e-6
	}
	return value >= 0
}

// createdOf finds the _created sample of a series; both lists are usually in the same order.
func createdOf(created []page.Sample, i int, s *page.Sample) float64 {
	if i < len(created) && sameLabels(created[i].Labels, s.Labels, "") {
		return created[i].Value
	}
	for j := range created {
		if sameLabels(created[j].Labels, s.Labels, "") {
			return created[j].Value
		}
	}
	return 0
}

// earliest merges start times: a sum runs since its first part began. An unknown one makes the sum's unknown.
func earliest(a, b float64) float64 { return min(a, b) }

// sameLabels compares label sets without one label; engines print the labels of a family in one order, so that is tried first.
func sameLabels(a, b []page.Label, without string) bool {
	i, j := 0, 0
	for {
		for i < len(a) && a[i].Name == without {
			i++
		}
		for j < len(b) && b[j].Name == without {
			j++
		}
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		if a[i] != b[j] {
			return sameSet(a, b, without)
		}
		i++
		j++
	}
}

func sameSet(a, b []page.Label, without string) bool {
	count := func(l []page.Label) (n int) {
		for i := range l {
			if l[i].Name != without {
				n++
			}
		}
		return n
	}
	if count(a) != count(b) {
		return false
	}
next:
	for i := range a {
		if a[i].Name == without {
			continue
		}
		for j := range b {
			if a[i] == b[j] {
				continue next
			}
		}
		return false
	}
	return true
}
