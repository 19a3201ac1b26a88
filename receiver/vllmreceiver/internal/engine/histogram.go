package engine

import (
	"math"
	"sort"
	"strconv"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/page"
)

// series is one histogram of a page, as its lines say.
type series struct {
	sample   *page.Sample // any of its samples: the labels
	buckets  []bucket
	sum      float64
	count    float64
	created  float64
	hasSum   bool
	hasCount bool
}

type bucket struct{ le, cumulative float64 }

// seriesSet collects the series of a family.
type seriesSet struct {
	list  []series
	index map[string]int
	key   []byte
	last  int
}

func (f *seriesSet) reset() {
	for i := range f.list {
		f.list[i].buckets = f.list[i].buckets[:0]
		f.list[i].sample = nil
	}
	f.list, f.index, f.last = f.list[:0], nil, 0
}

// of returns the series with a sample's labels but le. Lines of a series stand together, so the last one is tried first.
func (f *seriesSet) of(s *page.Sample) *series {
	if f.last < len(f.list) && sameLabels(f.list[f.last].sample.Labels, s.Labels, "le") {
		return &f.list[f.last]
	}
	i := f.find(s)
	if i < 0 {
		i = len(f.list)
		if i < cap(f.list) {
			f.list = f.list[:i+1]
			f.list[i] = series{sample: s, buckets: f.list[i].buckets[:0]}
		} else {
			f.list = append(f.list, series{sample: s})
		}
		if f.index != nil {
			f.index[string(f.render(s))] = i
		}
	}
	f.last = i
	return &f.list[i]
}

// find looks at each of a few series, and asks an index when there are many.
func (f *seriesSet) find(s *page.Sample) int {
	if len(f.list) <= 16 {
		for i := range f.list {
			if sameLabels(f.list[i].sample.Labels, s.Labels, "le") {
				return i
			}
		}
		return -1
	}
	if f.index == nil {
		f.index = make(map[string]int, 4*len(f.list))
		for i := range f.list {
			f.index[string(f.render(f.list[i].sample))] = i
		}
	}
	if i, ok := f.index[string(f.render(s))]; ok {
		return i
	}
	return -1
}

func (f *seriesSet) render(s *page.Sample) []byte {
	b := f.key[:0]
	labels := s.Labels
	sorted := sort.SliceIsSorted(labels, func(i, j int) bool { return labels[i].Name < labels[j].Name })
	if !sorted {
		labels = append([]page.Label(nil), labels...)
		sort.Slice(labels, func(i, j int) bool { return labels[i].Name < labels[j].Name })
	}
	for _, l := range labels {
		if l.Name == "le" {
			continue
		}
		b = appendLen(append(b, l.Name...), len(l.Value))
		b = append(b, l.Value...)
	}
	f.key = b
	return b
}

// histogram reads a histogram family, or two counters as one without buckets, and merges its series.
func (v *view) histogram(t *Term, constant []Attr) []Point {
	scale, ok := v.scale(t)
	if !ok {
		return nil
	}
	v.collect(t)
	v.groups.reset()
	var hists []*merged
	for i := range v.buckets.list {
		s := &v.buckets.list[i]
		h, ok := s.hist(scale)
		if !ok {
			v.invalid++
			continue
		}
		attrs, ok := v.describe(t, s.sample, constant)
		if !ok {
			continue
		}
		order := v.copyOf(s.sample)
		at := v.groups.at(attrs)
		if at < 0 {
			v.groups.put(attrs, group{})
			hists = append(hists, &merged{hist: h, order: order, created: s.created})
			continue
		}
		hists[at].add(h, order, s.created)
	}
	out := v.groups.points()
	for i := range out {
		out[i].Hist, out[i].Created = hists[i].hist, hists[i].created
	}
	return out
}

func (v *view) collect(t *Term) {
	f := &v.buckets
	f.reset()
	if t.Part == PartPair {
		sums, created := v.counter(t.Family)
		for i := range sums {
			s := f.of(&sums[i])
			s.sum, s.hasSum, s.created = sums[i].Value, true, createdOf(created, i, &sums[i])
		}
		counts, _ := v.counter(t.Count)
		for i := range counts {
			if j := f.find(&counts[i]); j >= 0 {
				f.list[j].count, f.list[j].hasCount = counts[i].Value, true
			}
		}
		return
	}
	samples := v.page.Samples(t.Family + "_bucket")
	for i := range samples {
		text, ok := samples[i].Label("le")
		if !ok {
			continue
		}
		le, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(le) {
			v.invalid++
			continue
		}
		s := f.of(&samples[i])
		s.buckets = append(s.buckets, bucket{le, samples[i].Value})
	}
	samples = v.page.Samples(t.Family + "_sum")
	for i := range samples {
		s := f.of(&samples[i])
		s.sum, s.hasSum = samples[i].Value, true
	}
	samples = v.page.Samples(t.Family + "_count")
	for i := range samples {
		s := f.of(&samples[i])
		s.count, s.hasCount = samples[i].Value, true
	}
	if len(f.list) == 0 {
		return // a summary's or a lone _created must not start a series
	}
	samples = v.page.Samples(t.Family + "_created")
	for i := range samples {
		if j := f.find(&samples[i]); j >= 0 {
			f.list[j].created = samples[i].Value
		}
	}
}

// hist turns cumulative lines into counts between bounds. A series without _sum or without a count was cut and is refused. Torn reads (a bucket
// below the one before it, +Inf beside _count) are straightened upwards: what was counted was counted.
func (s *series) hist(scale float64) (*Hist, bool) {
	if !s.hasSum || math.IsNaN(s.sum) || math.IsInf(s.sum, 0) || s.sum < 0 {
		return nil, false
	}
	if !sort.SliceIsSorted(s.buckets, func(i, j int) bool { return s.buckets[i].le < s.buckets[j].le }) {
		sort.SliceStable(s.buckets, func(i, j int) bool { return s.buckets[i].le < s.buckets[j].le })
	}
	total, known := s.count, s.hasCount
	n := len(s.buckets)
	if n > 0 && math.IsInf(s.buckets[n-1].le, 1) {
		n--
		if c := s.buckets[n].cumulative; !known || c > total {
			total, known = c, true
		}
	}
	if !known || !countable(total) {
		return nil, false
	}
	h := &Hist{Sum: s.sum * scale}
	if n == 0 {
		h.Count = uint64(total)
		return h, true
	}
	h.Bounds, h.Counts = make([]float64, 0, n), make([]uint64, 0, n+1)
	below := uint64(0)
	for i, b := range s.buckets[:n] {
		if !countable(b.cumulative) || math.IsInf(b.le, -1) {
			return nil, false
		}
		if i > 0 && b.le == s.buckets[i-1].le {
			continue
		}
		c := max(uint64(b.cumulative), below)
		h.Bounds = append(h.Bounds, b.le*scale)
		h.Counts = append(h.Counts, c-below)
		below = c
	}
	h.Count = max(uint64(total), below)
	h.Counts = append(h.Counts, h.Count-below)
	return h, true
}

// countable: a count is a whole number that a double holds exactly.
func countable(x float64) bool { return x >= 0 && x <= 1<<53 }

// merged is a histogram of several series.
type merged struct {
	hist    *Hist
	order   uint64
	created float64
}

func (m *merged) add(h *Hist, order uint64, created float64) {
	switch {
	case order > m.order:
	case order < m.order:
		m.hist, m.order, m.created = h, order, created
	default:
		m.hist.add(h)
		m.created = earliest(m.created, created)
	}
}

// add merges another histogram; where bounds differ only the common ones stay, at which the counts are exact.
func (h *Hist) add(o *Hist) {
	h.Sum += o.Sum
	h.Count += o.Count
	if sameBounds(h.Bounds, o.Bounds) {
		for i := range o.Counts {
			h.Counts[i] += o.Counts[i]
		}
		return
	}
	var bounds []float64
	var counts []uint64
	i, j, sum, below := 0, 0, uint64(0), uint64(0)
	for i < len(h.Bounds) && j < len(o.Bounds) {
		switch {
		case h.Bounds[i] < o.Bounds[j]:
			sum += h.Counts[i]
			i++
		case h.Bounds[i] > o.Bounds[j]:
			sum += o.Counts[j]
			j++
		default:
			sum += h.Counts[i] + o.Counts[j]
			bounds, counts = append(bounds, h.Bounds[i]), append(counts, sum-below)
			below = sum
			i++
			j++
		}
	}
	if len(bounds) > 0 {
		counts = append(counts, h.Count-below)
	}
	h.Bounds, h.Counts = bounds, counts
}

func sameBounds(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
