package content

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// row is a data point: attributes and what it counts.
type row struct {
	user  string
	model string
	value int64
}

func sums(rows ...row) (pmetric.Metrics, pmetric.NumberDataPointSlice) {
	md := pmetric.NewMetrics()
	points := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptySum().DataPoints()
	for i, r := range rows {
		p := points.AppendEmpty()
		attrs := []func(){
			func() { p.Attributes().PutStr("gen_ai.request.model", r.model) },
			func() { p.Attributes().PutStr("metadata.user_api_key_user_email", r.user) },
			func() { p.Attributes().PutStr("gen_ai.token.type", "input") },
		}
		for j := range attrs { // in whatever order they come
			attrs[(i+j)%len(attrs)]()
		}
		p.SetIntValue(r.value)
		p.SetStartTimestamp(100 - pcommon.Timestamp(i))
		p.SetTimestamp(200 + pcommon.Timestamp(i))
		p.Exemplars().AppendEmpty().SetIntValue(r.value)
	}
	return md, points
}

func TestPointsThatBecomeEqualAreAddedUp(t *testing.T) {
	r := redactor(t, Config{})
	md, points := sums(
		row{"a@example.org", "llama", 3},
		row{"b@example.org", "llama", 4},
		row{"b@example.org", "qwen", 5},
		row{"c@example.org", "not a model", 6},
		row{"c@example.org", "nor is this", 7},
		row{"c@example.org", "llama", 8},
	)
	var f Facts
	r.Metrics(md, &f)
	got := map[string]int64{}
	for _, p := range points.All() {
		model, _ := p.Attributes().Get("gen_ai.request.model")
		got[model.Str()] = p.IntValue()
	}
	assert.Equal(t, map[string]int64{"llama": 15, "qwen": 5, "_other": 13}, got)
	assert.EqualValues(t, 3, f.Merged)
	llama := points.At(0)
	assert.EqualValues(t, 95, llama.StartTimestamp(), "the earliest start")
	assert.EqualValues(t, 205, llama.Timestamp(), "the latest time")
	assert.Equal(t, 3, llama.Exemplars().Len())
}

func TestPointsThatWereEqualBeforeStay(t *testing.T) {
	// Equal points of a metric in which nothing was redacted are the sender's affair.
	r := redactor(t, Config{Mode: ModeKeep})
	md, points := sums(row{"a", "llama", 3}, row{"a", "llama", 4})
	var f Facts
	r.Metrics(md, &f)
	assert.Equal(t, 2, points.Len())
	assert.Zero(t, f.Merged)
}

func TestHistogramsAreAddedUp(t *testing.T) {
	md := pmetric.NewMetrics()
	points := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyHistogram().DataPoints()
	add := func(bounds []float64, counts []uint64, sum, low, high float64) {
		p := points.AppendEmpty()
		p.Attributes().PutStr("hidden_params", "text "+string(rune('a'+points.Len())))
		p.ExplicitBounds().FromRaw(bounds)
		p.BucketCounts().FromRaw(counts)
		for _, c := range counts {
			p.SetCount(p.Count() + c)
		}
		p.SetSum(sum)
		p.SetMin(low)
		p.SetMax(high)
	}
	add([]float64{1, 2}, []uint64{1, 2, 3}, 10, 0.5, 3)
	add([]float64{1, 2}, []uint64{4, 5, 6}, 30, 0.25, 9)
	add([]float64{1, 3}, []uint64{1, 1, 1}, 5, 1, 4) // other buckets: cannot be added
	var f Facts
	redactor(t, Config{}).Metrics(md, &f)
	assert.Equal(t, 2, points.Len())
	assert.EqualValues(t, 1, f.Merged)
	p := points.At(0)
	assert.Equal(t, []uint64{5, 7, 9}, p.BucketCounts().AsRaw())
	assert.EqualValues(t, 21, p.Count())
	assert.Equal(t, []float64{40, 0.25, 9}, []float64{p.Sum(), p.Min(), p.Max()})
	assert.EqualValues(t, 3, points.At(1).Count())
}

func TestWhatCannotBeAddedStays(t *testing.T) {
	md := pmetric.NewMetrics()
	ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	gauge := ms.AppendEmpty().SetEmptyGauge().DataPoints()
	mixed := ms.AppendEmpty().SetEmptySum().DataPoints()
	for i := range 2 {
		gauge.AppendEmpty().Attributes().PutStr("prompt", "text")
		p := mixed.AppendEmpty()
		p.Attributes().PutStr("prompt", "text")
		if i == 0 {
			p.SetIntValue(1)
		} else {
			p.SetDoubleValue(1)
		}
	}
	stale := ms.AppendEmpty().SetEmptySum().DataPoints()
	for range 2 {
		p := stale.AppendEmpty()
		p.Attributes().PutStr("prompt", "text")
		p.SetIntValue(1)
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	}
	var f Facts
	redactor(t, Config{}).Metrics(md, &f)
	assert.Equal(t, []int{2, 2, 2}, []int{gauge.Len(), mixed.Len(), stale.Len()})
	assert.Zero(t, f.Merged)
}
