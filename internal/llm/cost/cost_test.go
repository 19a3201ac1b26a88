package cost

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func rate(t *testing.T, f float64) Rate {
	t.Helper()
	r, err := PerMillion(f)
	require.NoError(t, err)
	return r
}

func TestPricesAreExact(t *testing.T) {
	p := &Price{
		Currency: "USD", Input: rate(t, 0.5), Output: rate(t, 1.5), CachedInput: rate(t, 0.05), CacheWrite: rate(t, 0.625), Reasoning: rate(t, 2),
	}
	for _, c := range []struct {
		name        string
		u           Usage
		cost, saved string
	}{
		{"nothing", Usage{}, "0", "0"},
		{"one token", Usage{Input: 1}, "0.0000005", "0"},
		{"input and output", Usage{Input: 1234, Output: 567}, "0.0014675", "0"},
		{"a cached prefix costs its own price", Usage{Input: 1000, Cached: 800}, "0.00014", "0.00036"},
		{"a written prefix", Usage{Input: 1000, Written: 800}, "0.0006", "0"},
		{"reasoning is part of the output", Usage{Output: 100, Reasoning: 60}, "0.00018", "0"},
		{"parts never exceed their whole", Usage{Input: 10, Cached: 20, Written: 5, Output: 1, Reasoning: 9}, "0.0000025", "0.0000045"},
		{"a million million tokens", Usage{Input: 1e12}, "500000", "0"},
	} {
		got, saved := p.Tokens(c.u)
		assert.Equal(t, c.cost, got.String(), c.name)
		assert.Equal(t, c.saved, saved.String(), c.name+": saved")
	}
}

// A float64 that adds a tenth of a millionth a thousand million times is off by thousands of them; an Amount is not off by one.
func TestSumsDoNotDrift(t *testing.T) {
	const n = 1_000_000_000
	p := &Price{Input: rate(t, 0.1)}
	each, _ := p.Tokens(Usage{Input: 1})
	var sum Amount
	for range n {
		sum = sum.Add(each)
	}
	assert.Equal(t, "100", sum.String())
	assert.Equal(t, 100.0, sum.Float64())
}

func TestAmountsAgreeWithBigNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	scale := big.NewInt(picos)
	asBig := func(a Amount) *big.Int {
		return new(big.Int).Add(new(big.Int).Mul(big.NewInt(a.units), scale), big.NewInt(a.pico))
	}
	for range 20_000 {
		n, each := r.Int64N(1<<32), r.Int64N(maxRate)
		a := ofPicos(n, each)
		require.Zero(t, asBig(a).Cmp(new(big.Int).Mul(big.NewInt(n), big.NewInt(each))), "%d × %d", n, each)
		b := ofPicos(r.Int64N(1<<32), r.Int64N(maxRate))
		require.Zero(t, asBig(a.Add(b)).Cmp(new(big.Int).Add(asBig(a), asBig(b))))
		w := r.Int64N(1000)
		require.Zero(t, asBig(a.Scale(float64(w))).Cmp(new(big.Int).Mul(asBig(a), big.NewInt(w))))
		back, err := Parse(a.String())
		require.NoError(t, err)
		require.Equal(t, a, back)
	}
}

func TestAmountsStayAtTheLargestInsteadOfOverflowing(t *testing.T) {
	assert.Equal(t, most, most.Add(Amount{units: 1}))
	assert.Equal(t, most, ofPicos(math.MaxInt64, math.MaxInt64))
	assert.Equal(t, most, most.Scale(2))
	assert.Equal(t, most, most.Scale(1.5))
	assert.Equal(t, Amount{}, Amount{units: 1}.Scale(math.NaN()))
}

func TestAmountFromADouble(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 0.0016200000000000001: "0.00162", 0.02982: "0.02982", 1e-12: "0.000000000001", 1e-13: "0", 12.5: "12.5"} {
		a, ok := FromFloat(f)
		assert.True(t, ok)
		assert.Equal(t, want, a.String())
	}
	for _, f := range []float64{-1, math.NaN(), math.Inf(1), 1e19} {
		_, ok := FromFloat(f)
		assert.False(t, ok, "%v", f)
	}
}

func TestRefusesPricesThatWouldNotBeExact(t *testing.T) {
	for _, f := range []float64{-1, 0.0000001, 1e6 + 1, math.Inf(1), math.NaN()} {
		_, err := PerMillion(f)
		assert.EqualError(t, err, "must be a price for a million tokens from 0 to 1000000 with at most 6 decimals, got "+formatG(f))
	}
}

func TestPriceIsReadAsItWasWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	any := func() Rate { return Rate(r.Int64N(maxRate + 1)) }
	for range 5_000 {
		p := &Price{Currency: "CNY", Input: any(), Output: any(), CachedInput: any(), CacheWrite: any(), Reasoning: any(), Request: Amount{r.Int64N(5), r.Int64N(picos)}}
		back, err := ParsePrice(p.String())
		require.NoError(t, err, p.String())
		require.Equal(t, p, back)
	}
	p := &Price{Currency: "USD", Input: 500_000, Output: 1_500_000, CachedInput: 500_000, CacheWrite: 500_000, Reasoning: 1_500_000}
	assert.Equal(t, "USD input=0.5 output=1.5", p.String())
	back, err := ParsePrice(p.String())
	require.NoError(t, err)
	assert.Equal(t, p, back)
}

func FuzzParsePrice(f *testing.F) {
	f.Add("USD input=0.5 output=1.5 cached_input=0.05 request=0.001")
	f.Add("USD")
	f.Add("USD input=99999999999999999999")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePrice(s)
		if err != nil {
			return
		}
		back, err := ParsePrice(p.String())
		require.NoError(t, err)
		require.Equal(t, p, back)
	})
}

func TestTable(t *testing.T) {
	day := func(s string) time.Time {
		d, err := time.Parse(time.DateOnly, s)
		require.NoError(t, err)
		return d
	}
	priced := func(model, from string, in Rate) Entry {
		e := Entry{Model: model, Price: Price{Input: in}}
		if from != "" {
			e.From = day(from)
		}
		return e
	}
	table, err := NewTable([]Entry{
		priced("Qwen/*", "", 1), priced("Qwen/*", "2026-03-01", 2), priced("Qwen/*", "2026-02-01", 3),
		priced("new", "2026-05-01", 4), priced("n*", "", 5), priced("*", "2026-01-01", 6),
	})
	require.NoError(t, err)
	for _, c := range []struct {
		name, model, at string
		want            Rate
	}{
		{"before every change the entry without a day holds", "Qwen/Qwen3-8B", "2025-12-31", 1},
		{"the latest entry that had begun holds, whatever the order", "Qwen/Qwen3-8B", "2026-02-28", 3},
		{"a day begins at midnight UTC", "Qwen/Qwen3-8B", "2026-03-01", 2},
		{"a pattern that had not begun leaves the model to the next", "new", "2026-04-30", 5},
		{"and takes it over", "new", "2026-05-01", 4},
		{"the rest", "llama", "2026-01-02", 6},
		{"a model that nobody named is for * alone", "", "2026-01-02", 6},
		{"nothing holds yet", "llama", "2025-12-31", 0},
	} {
		e := table.Find(c.model, day(c.at))
		if c.want == 0 {
			assert.Nil(t, e, c.name)
			continue
		}
		require.NotNil(t, e, c.name)
		assert.Equal(t, c.want, e.Price.Input, c.name)
	}
	_, err = NewTable([]Entry{priced("a", "", 1), priced("a", "", 2)})
	assert.EqualError(t, err, `model "a" is listed twice from the same day; give the later one a valid_from`)
	_, err = NewTable([]Entry{priced("", "", 1)})
	assert.ErrorContains(t, err, "model: must be")
}

func TestGPUHourDividedByMeasuredTokens(t *testing.T) {
	at := time.Unix(1_700_000_040, 0) // the begin of a minute
	g := &GPU{Hour: Amount{units: 2, pico: picos / 2}, Count: 4, Expected: 10_000_000}
	assert.Equal(t, "USD input=1 output=1 cached_input=0", g.Price(at, "USD").String(), "$10 an hour for ten million tokens")
	g.Measure(at, Usage{Output: 1_000_000}, false) // before any engine was heard
	for i := range 10 {
		g.Measure(at.Add(time.Duration(i)*time.Minute), Usage{Input: 5_000, Cached: 1_000, Output: 1_000}, true)
		g.Measure(at.Add(time.Duration(i)*time.Minute), Usage{Input: 5_000, Cached: 1_000, Output: 1_000}, false) // the client's span of the same
	}
	// 10 minutes with 5,000 computed and generated tokens each are 300,000 an hour.
	assert.Equal(t, "USD input=33.333333 output=33.333333 cached_input=0", g.Price(at.Add(10*time.Minute), "USD").String())
	// An hour and a minute later only the last nine of those minutes are in the last hour.
	assert.Equal(t, "USD input=222.222222 output=222.222222 cached_input=0", g.Price(at.Add(60*time.Minute), "USD").String())
	assert.Equal(t, "USD input=1 output=1 cached_input=0", g.Price(at.Add(300*time.Minute), "USD").String(), "nothing was measured")
}

func BenchmarkTokens(b *testing.B) {
	p := &Price{Input: 500_000, Output: 1_500_000, CachedInput: 50_000, CacheWrite: 500_000, Reasoning: 1_500_000}
	b.ReportAllocs()
	for b.Loop() {
		p.Tokens(Usage{Input: 1000, Output: 200, Cached: 800})
	}
}

func BenchmarkParsePrice(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParsePrice("USD input=0.5 output=1.5 cached_input=0.05"); err != nil {
			b.Fatal(err)
		}
	}
}

func formatG(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
