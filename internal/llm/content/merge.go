package content

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Points of one metric that differed only in what was removed (the e-mail address of a key's owner, a model name that was
// none) are equal afterwards, and a store keeps the last of equal series or refuses them. Sums and histograms are added up
// instead: that is what summing away a label means, for delta and for cumulative points. Gauges, summaries and histograms
// with different or exponential buckets cannot be added and stay as they are.

// merge adds up the equal points of m and returns how many points became part of another.
func merge(m pmetric.Metric) int64 {
	switch m.Type() {
	case pmetric.MetricTypeSum:
		points := m.Sum().DataPoints()
		drop := mergeEqual(points.Len(), points.At, pmetric.NumberDataPoint.Attributes, addNumber)
		return removeMarked(drop, func(f func() bool) { points.RemoveIf(func(pmetric.NumberDataPoint) bool { return f() }) })
	case pmetric.MetricTypeHistogram:
		points := m.Histogram().DataPoints()
		drop := mergeEqual(points.Len(), points.At, pmetric.HistogramDataPoint.Attributes, addHistogram)
		return removeMarked(drop, func(f func() bool) { points.RemoveIf(func(pmetric.HistogramDataPoint) bool { return f() }) })
	}
	return 0
}

// mergeEqual adds each point to the first one that has the same attributes and can take it, and marks those that were added.
func mergeEqual[P any](n int, at func(int) P, attributes func(P) pcommon.Map, add func(to, from P) bool) []bool {
	if n < 2 {
		return nil
	}
	first := make(map[string]P, n)
	var drop []bool
	for i := range n {
		p := at(i)
		key := identity(attributes(p))
		to, ok := first[key]
		if !ok {
			first[key] = p
			continue
		}
		if add(to, p) {
			if drop == nil {
				drop = make([]bool, n)
			}
			drop[i] = true
		}
	}
	return drop
}

func removeMarked(drop []bool, removeIf func(func() bool)) (n int64) {
	if drop == nil {
		return 0
	}
	i := -1
	removeIf(func() bool {
		i++
		if drop[i] {
			n++
		}
		return drop[i]
	})
	return n
}

// identity is the same for two attribute sets that are equal, in whatever order they are written.
func identity(m pcommon.Map) string {
	parts := make([]string, 0, m.Len())
	for k, v := range m.All() {
		parts = append(parts, k+"\x00"+v.Type().String()+"\x00"+v.AsString()+"\x00")
	}
	slices.Sort(parts)
	return strings.Join(parts, "\x00")
}

func addNumber(to, from pmetric.NumberDataPoint) bool {
	if to.Flags() != from.Flags() || to.Flags().NoRecordedValue() || to.ValueType() != from.ValueType() {
		return false
	}
	switch to.ValueType() {
	case pmetric.NumberDataPointValueTypeInt:
		to.SetIntValue(to.IntValue() + from.IntValue())
	case pmetric.NumberDataPointValueTypeDouble:
		to.SetDoubleValue(to.DoubleValue() + from.DoubleValue())
	default:
		return false
	}
	to.SetStartTimestamp(earlier(to.StartTimestamp(), from.StartTimestamp()))
	to.SetTimestamp(max(to.Timestamp(), from.Timestamp()))
	from.Exemplars().MoveAndAppendTo(to.Exemplars())
	return true
}

func addHistogram(to, from pmetric.HistogramDataPoint) bool {
	counts := from.BucketCounts()
	if to.Flags() != from.Flags() || to.Flags().NoRecordedValue() || !to.ExplicitBounds().Equal(from.ExplicitBounds()) ||
		to.BucketCounts().Len() != counts.Len() || to.HasSum() != from.HasSum() {
		return false
	}
	for i := range counts.Len() {
		to.BucketCounts().SetAt(i, to.BucketCounts().At(i)+counts.At(i))
	}
	to.SetCount(to.Count() + from.Count())
	if to.HasSum() {
		to.SetSum(to.Sum() + from.Sum())
	}
	if to.HasMin() && from.HasMin() {
		to.SetMin(min(to.Min(), from.Min()))
	} else {
		to.RemoveMin()
	}
	if to.HasMax() && from.HasMax() {
		to.SetMax(max(to.Max(), from.Max()))
	} else {
		to.RemoveMax()
	}
	to.SetStartTimestamp(earlier(to.StartTimestamp(), from.StartTimestamp()))
	to.SetTimestamp(max(to.Timestamp(), from.Timestamp()))
	from.Exemplars().MoveAndAppendTo(to.Exemplars())
	return true
}

// earlier is the earlier of two start times; 0 means unknown.
func earlier(a, b pcommon.Timestamp) pcommon.Timestamp {
	if a == 0 || b == 0 {
		return 0
	}
	return min(a, b)
}
