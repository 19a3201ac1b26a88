package line

import (
	"fmt"
	"math"
)

// durationWidth is the widest that seconds returns, so that durations line up.
const durationWidth = 6

// seconds writes a duration with three significant digits at most, right-aligned to durationWidth columns.
// A dash stands for one that was not told, a question mark for one that cannot be (negative, not a number, infinite).
func seconds(v Opt[float64]) string {
	return padLeft(duration(v), durationWidth)
}

func duration(v Opt[float64]) string {
	s := v.Value
	ms, minutes, hours := s*1e3, s/60, s/3600
	// The limits are half a digit below the next unit, so that rounding never gives 1000ms or 100.0s.
	switch {
	case !v.Known:
		return dash
	case math.IsNaN(s) || math.IsInf(s, 0) || s < 0:
		return "?"
	case s == 0:
		return "0ms"
	case ms < 0.995:
		return fmt.Sprintf("%.2fms", ms)
	case ms < 99.95:
		return fmt.Sprintf("%.1fms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0fms", ms)
	case s < 9.995:
		return fmt.Sprintf("%.2fs", s)
	case s < 99.95:
		return fmt.Sprintf("%.1fs", s)
	case s < 999.5:
		return fmt.Sprintf("%.0fs", s)
	case minutes < 99.95:
		return fmt.Sprintf("%.1fm", minutes)
	case hours < 99.95:
		return fmt.Sprintf("%.1fh", hours)
	case hours < 999.5:
		return fmt.Sprintf("%.0fh", hours)
	}
	return ">999h"
}

// money writes an amount with three significant digits and at least two decimals: a request costs fractions of a cent.
func money(v float64, currency string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "cost ?"
	}
	decimals := 2
	if a := math.Abs(v); a > 0 && a < 1 {
		decimals = min(2-int(math.Floor(math.Log10(a))), 9)
	}
	s := "cost " + clip(fmt.Sprintf("%.*f", decimals, v), 16)
	if currency == "" {
		return s
	}
	return s + " " + currency
}
