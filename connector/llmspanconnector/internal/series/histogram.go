package series

import (
	"math"
	"sort"

	expohisto "github.com/lightstep/go-expohisto/structure"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// histogram is an explicit or an exponential one.
//
// A weight need not be whole (an SDK that keeps one in three has 3.0000000001). Counts on the wire are whole, so an explicit histogram
// sums weights and rounds its totals, and an exponential one carries the rest of each weight over to the next: neither drifts.
type histogram struct {
	bounds   []float64
	counts   []float64
	sum      float64
	min, max float64
	any      bool

	exp   *expohisto.Histogram[float64]
	carry float64
}

func newHistogram(bounds []float64, exponential bool) histogram {
	if exponential {
		return histogram{exp: expohisto.NewFloat64(expohisto.NewConfig(expohisto.WithMaxSize(160)))}
	}
	return histogram{bounds: bounds, counts: make([]float64, len(bounds)+1)}
}

func (h *histogram) observe(v, weight float64) {
	if !h.any || v < h.min {
		h.min = v
	}
	if !h.any || v > h.max {
		h.max = v
	}
	h.any = true
	h.sum += v * weight
	if h.exp == nil {
		h.counts[sort.SearchFloat64s(h.bounds, v)] += weight
		return
	}
	whole, rest := math.Modf(weight + h.carry)
	h.carry = rest
	if whole > 0 {
		h.exp.UpdateByIncr(v, uint64(whole))
	}
}

// explicit writes the histogram to a data point.
func (h *histogram) explicit(dp pmetric.HistogramDataPoint) {
	dp.ExplicitBounds().FromRaw(h.bounds)
	dp.BucketCounts().EnsureCapacity(len(h.counts))
	var total uint64
	for _, c := range h.counts {
		n := uint64(math.Round(c))
		total += n
		dp.BucketCounts().Append(n)
	}
	dp.SetCount(total)
	dp.SetSum(h.sum)
	if h.any {
		dp.SetMin(h.min)
		dp.SetMax(h.max)
	}
}

// exponential writes the histogram to a data point.
func (h *histogram) exponential(dp pmetric.ExponentialHistogramDataPoint) {
	dp.SetCount(h.exp.Count())
	dp.SetSum(h.sum)
	dp.SetZeroCount(h.exp.ZeroCount())
	dp.SetScale(h.exp.Scale())
	if h.any {
		dp.SetMin(h.min)
		dp.SetMax(h.max)
	}
	for _, side := range [...]struct {
		from *expohisto.Buckets
		to   pmetric.ExponentialHistogramDataPointBuckets
	}{{h.exp.Positive(), dp.Positive()}, {h.exp.Negative(), dp.Negative()}} {
		side.to.SetOffset(side.from.Offset())
		for i := uint32(0); i < side.from.Len(); i++ {
			side.to.BucketCounts().Append(side.from.At(i))
		}
	}
}
