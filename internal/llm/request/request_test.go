package request

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end pcommon.Timestamp
		want       float64
	}{
		{"a second and a half", 1_000_000_000, 2_500_000_000, 1.5},
		{"none", 7, 7, 0},
		{"ends before it starts", 2_500_000_000, 1_000_000_000, -1.5},
		{"the largest end", math.MaxUint64 - 1_000_000_000, math.MaxUint64, 1},
		{"the largest length", 0, math.MaxUint64, float64(math.MaxUint64) / 1e9},
		{"the largest length backwards", math.MaxUint64, 0, -float64(math.MaxUint64) / 1e9},
	} {
		r := Request{Start: c.start, End: c.end}
		assert.InDelta(t, c.want, r.Duration(), 1e-6, c.name)
	}
}

func TestElapsed(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end pcommon.Timestamp
		want       Seconds
	}{
		{"a second and a half", 1_000_000_000, 2_500_000_000, Some(1.5)},
		{"none", 7, 7, Some(0.0)},
		{"ends before it starts", 8, 7, Seconds{}},
		{"no start", 0, 1_700_000_000_000_000_000, Seconds{}},
		{"no end", 1_700_000_000_000_000_000, 0, Seconds{}},
		{"neither", 0, 0, Seconds{}},
	} {
		r := Request{Start: c.start, End: c.end}
		assert.Equal(t, c.want, r.Elapsed(), c.name)
	}
}

func TestTPOT(t *testing.T) {
	for _, c := range []struct {
		name      string
		ttft, e2e Seconds
		output    Tokens
		want      Seconds
	}{
		{"ten tokens after the first", Some(.5), Some(1.5), Some[int64](11), Some(.1)},
		{"two tokens", Some(.5), Some(1.5), Some[int64](2), Some(1.0)},
		{"one token", Some(.5), Some(1.5), Some[int64](1), Seconds{}},
		{"no token", Some(.5), Some(1.5), Some[int64](0), Seconds{}},
		{"tokens unknown", Some(.5), Some(1.5), Tokens{}, Seconds{}},
		{"no first token", Seconds{}, Some(1.5), Some[int64](9), Seconds{}},
		{"no end", Some(.5), Seconds{}, Some[int64](9), Seconds{}},
		{"first token after the end", Some(2.0), Some(1.5), Some[int64](9), Seconds{}},
		{"all at once", Some(1.5), Some(1.5), Some[int64](9), Some(0.0)},
	} {
		r := Request{TTFT: c.ttft, E2E: c.e2e, OutputTokens: c.output}
		got := r.TPOT()
		assert.Equal(t, c.want.Known, got.Known, c.name)
		assert.InDelta(t, c.want.Value, got.Value, 1e-12, c.name)
	}
}

// Worse is a maximum: the order of the layers does not matter.
func TestWorse(t *testing.T) {
	all := []Status{StatusUnknown, StatusOK, StatusCancelled, StatusError} // from good to bad
	for i, a := range all {
		for j, b := range all {
			assert.Equal(t, all[max(i, j)], Worse(a, b), "%s and %s", a, b)
		}
	}
}

func TestNamesParse(t *testing.T) {
	for l := LayerClient; l <= LayerEngine; l++ {
		assert.Equal(t, l, ParseLayer(l.String()))
	}
	assert.Equal(t, LayerNone, ParseLayer(""))
	assert.Equal(t, LayerNone, ParseLayer("kernel"))
	for s := StatusUnknown; s <= StatusCancelled; s++ {
		assert.Equal(t, s, ParseStatus(s.String()))
	}
	assert.Equal(t, StatusUnknown, ParseStatus("fine"))
}

func TestRejectNamesAFigureOnce(t *testing.T) {
	var r Request
	r.Reject("ttft")
	r.Reject("queue")
	r.Reject("ttft")
	assert.Equal(t, []string{"ttft", "queue"}, r.Invalid)
	a, b := r, r
	a.Reject("e2e")
	b.Reject("decode")
	assert.Equal(t, []string{"ttft", "queue", "e2e"}, a.Invalid, "a copy has its own")
	assert.Equal(t, 3, Some(3).Or(5))
	assert.Equal(t, 5, Opt[int]{}.Or(5))
}
