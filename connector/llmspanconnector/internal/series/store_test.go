package series

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/measure"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Unix(1_700_000_000, 0).UTC()

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

func of(service string) *request.Request {
	return &request.Request{Source: &request.Source{Service: service}, TraceID: pcommon.TraceID{1}, SpanID: pcommon.SpanID{2}}
}

func model(m string) []measure.Label {
	return []measure.Label{{Key: names.RequestModel, Value: m}, {Key: names.OperationName, Value: "chat"}}
}

// found is every metric of an export by its name, of one service.
func found(md pmetric.Metrics) map[string]pmetric.Metric {
	out := map[string]pmetric.Metric{}
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			out[m.Name()] = m
		}
	}
	return out
}

func TestExportIsCumulativeWithItsStart(t *testing.T) {
	s := New(Config{MaxSeries: 10})
	s.SetNow(at(1))
	s.Observe(names.Requests, of("a"), model("m"), 1, 1)
	s.SetNow(at(5))
	s.Observe(names.Requests, of("a"), model("m"), 1, 2)
	s.Observe(names.QueueDuration, of("a"), model("m"), .3, 1)
	for _, now := range []int{7, 9} {
		ms := found(s.Export(at(now)))
		sum := ms[names.Metrics[names.Requests].Name].Sum()
		assert.True(t, sum.IsMonotonic())
		assert.Equal(t, pmetric.AggregationTemporalityCumulative, sum.AggregationTemporality())
		dp := sum.DataPoints().At(0)
		assert.InDelta(t, 3, dp.DoubleValue(), 0)
		assert.Equal(t, at(1), dp.StartTimestamp().AsTime())
		assert.Equal(t, at(now), dp.Timestamp().AsTime())
		assert.Equal(t, map[string]any{names.RequestModel: "m", names.OperationName: "chat"}, dp.Attributes().AsRaw())
		h := ms[names.Metrics[names.QueueDuration].Name].Histogram()
		assert.Equal(t, pmetric.AggregationTemporalityCumulative, h.AggregationTemporality())
		assert.Equal(t, at(5), h.DataPoints().At(0).StartTimestamp().AsTime())
		assert.EqualValues(t, 1, h.DataPoints().At(0).Count())
	}
}

func TestSeriesAreToldApart(t *testing.T) {
	s := New(Config{MaxSeries: 100})
	s.SetNow(at(0))
	cached := []measure.Label{{Key: names.MetricCached, Value: "true", Bool: true}}
	for _, o := range []struct {
		res    request.Source
		labels []measure.Label
	}{
		{request.Source{Service: "a"}, nil},
		{request.Source{Namespace: "a"}, nil},
		{request.Source{Environment: "a"}, nil},
		{request.Source{Service: "a", Namespace: "b"}, nil},
		{request.Source{Service: "a\x00b"}, nil},
		{request.Source{Service: "a\x00b", Namespace: "c"}, nil},
		{request.Source{Service: "a", Namespace: "b\x00c"}, nil},
		{request.Source{}, nil},
		{request.Source{}, model("m")},
		{request.Source{}, model("n")},
		{request.Source{}, cached},
		{request.Source{}, append(model("m"), cached...)},
	} {
		for range 2 {
			s.Observe(names.Requests, &request.Request{Source: &o.res}, o.labels, 1, 1)
		}
	}
	assert.Equal(t, 12, s.Len())
	md := s.Export(at(1))
	assert.Equal(t, 8, md.ResourceMetrics().Len())
	assert.Equal(t, 12, md.DataPointCount())
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for _, dp := range m.Sum().DataPoints().All() {
				assert.InDelta(t, 2, dp.DoubleValue(), 0)
				if v, ok := dp.Attributes().Get(names.MetricCached); ok {
					assert.True(t, v.Bool())
				}
			}
		}
	}
}

// What does not fit goes to one series of each metric, so that no count is lost, and room comes back when series expire.
func TestOverflow(t *testing.T) {
	s := New(Config{MaxSeries: 3, Expiry: 10 * time.Second})
	s.SetNow(at(0))
	for i := range 100 {
		s.Observe(names.Requests, of("a"), model(fmt.Sprint("m", i)), 1, 1)
	}
	s.Observe(names.QueueDuration, of("b"), model("m0"), .1, 1)
	assert.Equal(t, 5, s.Len())
	assert.EqualValues(t, 98, s.Overflowed)

	total, overflowed := 0.0, 0.0
	md := s.Export(at(1))
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Type() != pmetric.MetricTypeSum {
				assert.Equal(t, map[string]any{names.MetricOverflow: true}, m.Histogram().DataPoints().At(0).Attributes().AsRaw())
				assert.Zero(t, rm.Resource().Attributes().Len(), "the source is what overflows")
				continue
			}
			for _, dp := range m.Sum().DataPoints().All() {
				total += dp.DoubleValue()
				if _, ok := dp.Attributes().Get(names.MetricOverflow); ok {
					overflowed += dp.DoubleValue()
					assert.Equal(t, 1, dp.Attributes().Len())
				}
			}
		}
	}
	assert.InDelta(t, 100, total, 0)
	assert.InDelta(t, 97, overflowed, 0)

	s.SetNow(at(9))
	s.Observe(names.Requests, of("a"), model("m0"), 1, 1)
	s.Observe(names.Requests, of("a"), model("m7"), 1, 1) // keeps the overflow series alive
	assert.Equal(t, 2, s.Export(at(10)).DataPointCount())
	assert.EqualValues(t, 3, s.Expired)
	s.SetNow(at(11))
	s.Observe(names.Requests, of("a"), model("m7"), 1, 1)
	assert.Equal(t, 3, s.Len(), "there is room again")
	assert.Zero(t, s.Export(at(30)).DataPointCount())
	assert.Zero(t, s.Len())
	assert.EqualValues(t, 6, s.Expired)

	s.SetNow(at(31))
	s.Observe(names.Requests, of("a"), model("m0"), 1, 1)
	dp := found(s.Export(at(32)))[names.Metrics[names.Requests].Name].Sum().DataPoints().At(0)
	assert.InDelta(t, 1, dp.DoubleValue(), 0, "a series that comes again begins again")
	assert.Equal(t, at(31), dp.StartTimestamp().AsTime())
}

// An overflow series that expired comes again when there is something to put into it.
func TestAnOverflowSeriesComesAgain(t *testing.T) {
	s := New(Config{MaxSeries: 1, Expiry: 10 * time.Second})
	for _, now := range []int{0, 100} {
		s.SetNow(at(now))
		s.Observe(names.Requests, of("a"), model("m"), 1, 1)
		s.Observe(names.Requests, of("a"), model("n"), 1, 1)
		md := s.Export(at(now + 1))
		assert.Equal(t, 2, md.DataPointCount(), "at %d s", now)
		assert.Equal(t, 2, s.Len())
		assert.Zero(t, s.Export(at(now+50)).DataPointCount())
	}
}

// A count on the wire is the nearest whole number to the weights in its bucket.
func TestAWeightIsRounded(t *testing.T) {
	for weight, want := range map[float64]uint64{1.4: 1, 1.6: 2, 2.5: 3, 2.0000001: 2, 1.9999999: 2} {
		s := New(Config{MaxSeries: 1})
		s.SetNow(at(0))
		s.Observe(names.QueueDuration, of("a"), model("m"), .1, weight)
		dp := found(s.Export(at(1)))[names.Metrics[names.QueueDuration].Name].Histogram().DataPoints().At(0)
		assert.Equal(t, want, dp.Count(), "weight %g", weight)
	}
}

func TestExpiryOfZeroKeepsSeriesForEver(t *testing.T) {
	s := New(Config{MaxSeries: 3})
	s.SetNow(at(0))
	s.Observe(names.Requests, of("a"), model("m"), 1, 1)
	assert.Equal(t, 1, s.Export(epoch.AddDate(10, 0, 0)).DataPointCount())
}

func TestMaximaBeginAnewWithEveryExportThatIsTaken(t *testing.T) {
	s := New(Config{MaxSeries: 3})
	name := names.Metrics[names.TTFTMax].Name
	point := func(now int) pmetric.NumberDataPoint {
		return found(s.Export(at(now)))[name].Gauge().DataPoints().At(0)
	}
	observe := func(v float64) { s.Observe(names.TTFTMax, of("a"), model("m"), v, 7) }
	s.SetNow(at(0))
	for _, v := range []float64{2, 5, 3} {
		observe(v)
	}
	assert.InDelta(t, 5, point(1).DoubleValue(), 0, "a maximum has no weight")
	observe(4)
	assert.InDelta(t, 5, point(2).DoubleValue(), 0, "the export before was refused")
	observe(1)
	s.Taken()
	assert.InDelta(t, 1, point(3).DoubleValue(), 0, "what came while it was on its way")
	s.Taken()
	assert.True(t, point(4).Flags().NoRecordedValue(), "what was not observed is not repeated, and who shows the last value is told")
	s.Taken()
	assert.Zero(t, s.Export(at(5)).MetricCount(), "once")
	s.Taken()
	observe(-1)
	assert.InDelta(t, -1, point(6).DoubleValue(), 0)
}

func TestAnExemplarStaysUntilTheNextObservation(t *testing.T) {
	for _, exponential := range []bool{false, true} {
		s := New(Config{MaxSeries: 3, Exponential: exponential})
		exemplars := func(now int) pmetric.ExemplarSlice {
			m := found(s.Export(at(now)))[names.Metrics[names.QueueDuration].Name]
			if exponential {
				return m.ExponentialHistogram().DataPoints().At(0).Exemplars()
			}
			return m.Histogram().DataPoints().At(0).Exemplars()
		}
		for i, v := range []float64{.2, .5, .3} {
			s.SetNow(at(i))
			r := of("a")
			r.SpanID = pcommon.SpanID{byte(i)}
			s.Observe(names.QueueDuration, r, model("m"), v, 1)
		}
		for now := 5; now < 8; now++ { // a scraper may be slower than the export
			e := exemplars(now)
			require.Equal(t, 1, e.Len())
			assert.InDelta(t, .5, e.At(0).DoubleValue(), 0, "the largest")
			assert.Equal(t, pcommon.SpanID{1}, e.At(0).SpanID())
			assert.Equal(t, pcommon.TraceID{1}, e.At(0).TraceID())
			assert.Equal(t, at(1), e.At(0).Timestamp().AsTime())
			s.Taken()
		}
		s.Observe(names.QueueDuration, of("a"), model("m"), .1, 1)
		assert.InDelta(t, .1, exemplars(8).At(0).DoubleValue(), 0, "the next one, be it smaller")
		dropped := of("a")
		dropped.Decision = names.DecisionDrop
		s.Observe(names.QueueDuration, dropped, model("m"), 9, 1)
		assert.InDelta(t, .1, exemplars(9).At(0).DoubleValue(), 0, "it points to a trace that will exist")
	}
}

func TestExplicitHistogram(t *testing.T) {
	s := New(Config{MaxSeries: 3})
	s.SetNow(at(0))
	bounds := names.Metrics[names.QueueDuration].Bounds
	values := append([]float64{0, bounds[0] / 2, bounds[len(bounds)-1] * 2}, bounds...)
	for _, v := range values {
		s.Observe(names.QueueDuration, of("a"), model("m"), v, 1)
	}
	dp := found(s.Export(at(1)))[names.Metrics[names.QueueDuration].Name].Histogram().DataPoints().At(0)
	assert.Equal(t, bounds, dp.ExplicitBounds().AsRaw())
	want := make([]uint64, len(bounds)+1)
	for i := range want {
		want[i] = 1 // each bound belongs to the bucket that it ends
	}
	want[0] = 3
	assert.Equal(t, want, dp.BucketCounts().AsRaw())
	assert.EqualValues(t, len(values), dp.Count())
	assert.InDelta(t, 0, dp.Min(), 0)
	assert.InDelta(t, bounds[len(bounds)-1]*2, dp.Max(), 0)
}

// A million weights that are no whole numbers: the count on the wire stays within what rounding each bucket once can make, and never goes
// back.
func TestFractionalWeightsDoNotDrift(t *testing.T) {
	const n = 1_000_000
	for _, weight := range []float64{1.1, 1.5, 3.0000000001, 20.0 / 19, math.Pi} {
		for _, exponential := range []bool{false, true} {
			s := New(Config{MaxSeries: 3, Exponential: exponential})
			s.SetNow(at(0))
			g := rand.New(rand.NewPCG(1, 2))
			r, labels := of("a"), model("m")
			id := names.QueueDuration
			buckets := float64(len(names.Metrics[id].Bounds) + 1)
			sum, last := 0.0, uint64(0)
			check := func(observed int) {
				m := found(s.Export(at(1)))[names.Metrics[id].Name]
				var count, inBuckets uint64
				var total float64
				if exponential {
					dp := m.ExponentialHistogram().DataPoints().At(0)
					count, total = dp.Count(), dp.Sum()
					inBuckets = dp.ZeroCount()
					for _, c := range append(dp.Positive().BucketCounts().AsRaw(), dp.Negative().BucketCounts().AsRaw()...) {
						inBuckets += c
					}
				} else {
					dp := m.Histogram().DataPoints().At(0)
					count, total = dp.Count(), dp.Sum()
					for _, c := range dp.BucketCounts().AsRaw() {
						inBuckets += c
					}
				}
				require.Equal(t, count, inBuckets, "the buckets sum to the count")
				require.InDelta(t, float64(observed)*weight, float64(count), buckets/2+1, "weight %g, exponential %t", weight, exponential)
				require.InEpsilon(t, sum, total, 1e-9)
				require.GreaterOrEqual(t, count, last)
				last = count
			}
			for i := range n {
				v := g.Float64() * 20
				sum += v * weight
				s.Observe(id, r, labels, v, weight)
				if i == 10 || i == 1000 || i == n/2 {
					check(i + 1)
				}
			}
			check(n)
		}
	}
}

func TestExponentialHistogram(t *testing.T) {
	s := New(Config{MaxSeries: 3, Exponential: true})
	s.SetNow(at(0))
	for i := range 10_000 {
		s.Observe(names.QueueDuration, of("a"), model("m"), math.Exp2(float64(i%40)-20), 1)
	}
	s.Observe(names.QueueDuration, of("a"), model("m"), 0, 1)
	dp := found(s.Export(at(1)))[names.Metrics[names.QueueDuration].Name].ExponentialHistogram().DataPoints().At(0)
	assert.EqualValues(t, 10_001, dp.Count())
	assert.EqualValues(t, 1, dp.ZeroCount())
	assert.LessOrEqual(t, dp.Positive().BucketCounts().Len(), 160)
	assert.InDelta(t, 0, dp.Min(), 0)
	assert.InDelta(t, math.Exp2(19), dp.Max(), 0)
	// Each value lies in its bucket: (base^i, base^(i+1)].
	base := math.Exp2(math.Exp2(-float64(dp.Scale())))
	for i, c := range dp.Positive().BucketCounts().AsRaw() {
		upper := math.Pow(base, float64(int(dp.Positive().Offset())+i+1))
		within := 0
		for e := range 40 {
			if v := math.Exp2(float64(e) - 20); v <= upper*(1+1e-9) && v > upper/base*(1+1e-9) {
				within += 250
			}
		}
		assert.EqualValues(t, within, c, "bucket up to %g", upper)
	}
}

func TestObserveAllocatesForNewSeriesOnly(t *testing.T) {
	s := New(Config{MaxSeries: 10})
	s.SetNow(at(0))
	r, labels := of("a"), model("m")
	s.Observe(names.QueueDuration, r, labels, .1, 1)
	assert.Zero(t, testing.AllocsPerRun(100, func() { s.Observe(names.QueueDuration, r, labels, .1, 1) }))
}
