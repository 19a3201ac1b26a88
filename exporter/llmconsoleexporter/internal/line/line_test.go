package line

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

var end = time.Date(2026, 5, 1, 14, 23, 5, 123_000_000, time.UTC)

func full() Request {
	return Request{
		End: end, Model: "meta-llama/Llama-3.1-8B", Status: "ok",
		TTFT: Some(0.1234), TPOT: Some(0.0123), E2E: Some(1.534),
		Input: Some[int64](512), Output: Some[int64](128), Cached: Some[int64](256),
		Stages: []Stage{
			{"ingress", Some(0.012)},
			{"admission", Some(0.0031)},
			{"queue", Some(0.00002)},
			{"prefill", Some(0.12)},
			{"decode", Some(1.41)},
			{"return", Some(0.002)},
		},
	}
}

func TestFormat(t *testing.T) {
	slow := full()
	slow.Status, slow.ErrorType = "error", "timeout"
	slow.Cost, slow.Currency = Some(0.000345), "USD"
	slow.UserTTFT, slow.UserE2E = Some(0.2), Some(1.6)
	slow.Missed, slow.Quality = []string{"ttft", "e2e"}, []string{"truncated"}
	slow.Stages, slow.Cached = nil, Some[int64](0)

	for name, tt := range map[string]struct {
		r    Request
		want string
	}{
		"a healthy request": {full(), "14:23:05.123 ok        meta-llama/Llama-3.1-8B  ttft  123ms tpot 12.3ms e2e  1.53s    512→128    " +
			"ingress 12.0ms admission  3.1ms queue 0.02ms prefill  120ms decode  1.41s return  2.0ms cached 256"},
		"what only some requests have comes last": {slow, "14:23:05.123 error     meta-llama/Llama-3.1-8B  ttft  123ms tpot 12.3ms e2e  1.53s    512→128    " +
			"user ttft  200ms user e2e  1.60s cost 0.000345 USD slo missed: ttft,e2e quality: truncated timeout"},
		"nothing known": {Request{}, "--:--:--.--- unknown   —                        ttft      — tpot      — e2e      —      —→—"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, Format(tt.r, false)) })
	}
}

func TestColumnsStayWhateverTheValues(t *testing.T) {
	a, b := full(), full()
	b.Model, b.Status = "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "cancelled"
	b.TTFT, b.TPOT, b.E2E, b.Input, b.Output = Opt[float64]{}, Some(12.0), Some(7200.0), Opt[int64]{}, Some[int64](131072)
	la, lb := []rune(Format(a, false)), []rune(Format(b, false))
	for _, label := range []string{"ttft", "tpot", "e2e", "→", "ingress", "decode"} {
		at := func(l []rune) int {
			before, _, found := strings.Cut(string(l), label)
			assert.True(t, found, label)
			return utf8.RuneCountInString(before)
		}
		assert.Equal(t, at(la), at(lb), label)
	}
	assert.Contains(t, string(lb), "…-A22B-Instruct-2507-FP8", "the end of a long name tells models apart")
}

func TestColoursAreTheOnlyDifference(t *testing.T) {
	r := full()
	r.ErrorType, r.Missed = "timeout", []string{"e2e"}
	colored := Format(r, true)
	assert.Contains(t, colored, "\x1b[32mok ")
	assert.Contains(t, colored, "\x1b[31mtimeout\x1b[0m")
	assert.Equal(t, Format(r, false), regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(colored, ""))
	assert.NotContains(t, Format(r, false), "\x1b")
}

func TestDuration(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0ms", 0.00002: "0.02ms", 0.000994: "0.99ms", 0.000996: "1.0ms", 0.0031: "3.1ms", 0.09994: "99.9ms", 0.09996: "100ms",
		0.9994: "999ms", 0.9996: "1.00s", 9.994: "9.99s", 9.996: "10.0s", 99.96: "100s", 999.4: "999s", 999.6: "16.7m",
		5996: "99.9m", 5998: "1.7h", 3600 * 99.96: "100h", 3600 * 999: "999h", 3600 * 1e6: ">999h",
		-1: "?", math.Inf(1): "?", math.MaxFloat64: ">999h",
	} {
		assert.Equal(t, want, duration(Some(v)), "%v", v)
	}
	assert.Equal(t, "?", duration(Some(math.NaN())))
	assert.Equal(t, "—", duration(Opt[float64]{}))
}

// FuzzDuration: whatever the figure, it fits its column, and read back it is the figure within the digits shown.
func FuzzDuration(f *testing.F) {
	for _, v := range []float64{0, 1e-9, 0.0005, 0.0123, 0.99951, 59.999, 3599, 1e7, -3} {
		f.Add(v)
	}
	units := map[string]float64{"ms": 1e-3, "s": 1, "m": 60, "h": 3600}
	form := regexp.MustCompile(`^([0-9.]+)(ms|s|m|h)$`)
	f.Fuzz(func(t *testing.T, v float64) {
		got := duration(Some(v))
		if n := utf8.RuneCountInString(got); n > durationWidth {
			t.Fatalf("%q is %d wide", got, n)
		}
		m := form.FindStringSubmatch(got)
		if m == nil {
			if got != "?" && got != ">999h" {
				t.Fatalf("%v gives %q", v, got)
			}
			return
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		// Half of the last digit shown.
		slack := units[m[2]] / 2
		if _, frac, ok := strings.Cut(m[1], "."); ok {
			slack /= math.Pow(10, float64(len(frac)))
		}
		slack *= 1.000001
		if math.Abs(n*units[m[2]]-v) > slack {
			t.Fatalf("%v s is shown as %q", v, got)
		}
	})
}

func TestMoney(t *testing.T) {
	for v, want := range map[float64]string{
		0: "cost 0.00 USD", 12.3456: "cost 12.35 USD", 0.5: "cost 0.500 USD", 0.00012345: "cost 0.000123 USD", 1e-12: "cost 0.000000000 USD",
		-0.25: "cost -0.250 USD", 1e300: "cost 100000000000000… USD",
	} {
		assert.Equal(t, want, money(v, "USD"), "%v", v)
	}
	assert.Equal(t, "cost 1.00", money(1, ""))
	assert.Equal(t, "cost ?", money(math.NaN(), "USD"))
}

// FuzzFormat: text that others wrote never carries a control character to the terminal, and never makes a line long.
func FuzzFormat(f *testing.F) {
	f.Add("gpt\x1b[2J", "ok\n", "error\x07", "USD\u202e", "tru\xffncated", int64(-1), math.NaN())
	f.Add(strings.Repeat("模型", 4000), "", strings.Repeat("e", 9999), "", "", int64(math.MaxInt64), 1e300)
	f.Fuzz(func(t *testing.T, model, status, errorType, currency, finding string, n int64, v float64) {
		findings := []string{finding, finding, finding, finding, finding, finding, finding, finding}
		got := Format(Request{
			End: end, Model: model, Status: status, ErrorType: errorType, Currency: currency, Missed: findings, Quality: findings,
			Input: Some(n), Output: Some(n), Cached: Some(n), Cost: Some(v), TTFT: Some(v), Stages: []Stage{{"queue", Some(v)}},
		}, false)
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q reaches the terminal", r)
			}
		}
		if n := utf8.RuneCountInString(got); n > 700 {
			t.Fatalf("line has %d characters", n)
		}
	})
}

func TestLeftOut(t *testing.T) {
	assert.Equal(t, "… 1 more request not shown (metrics and records have every one)", LeftOut(1, false))
	assert.Equal(t, "… 312 more requests not shown (metrics and records have every one)", LeftOut(312, false))
	assert.True(t, strings.HasPrefix(LeftOut(2, true), "\x1b[2m"), LeftOut(2, true))
}
