// Package cost says what a request costs: a price table by model and day, and sums of money that do not drift.
//
// Money is counted in whole picos, 10⁻¹² of a unit of the currency: a price of at most six decimals for a million tokens is a whole
// number of picos for one token, so that a cost is exact, and so is the sum of any number of costs.
package cost

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// picos is the number of picos in a unit of the currency.
const picos = 1_000_000_000_000

// Amount is a sum of money of no currency of its own, from 0 to 9.2·10¹⁸ units; it stays at the largest value instead of overflowing.
// The zero value is nothing.
type Amount struct {
	units int64
	pico  int64 // from 0 to picos − 1
}

var most = Amount{units: math.MaxInt64, pico: picos - 1}

// Add is the sum of two amounts.
func (a Amount) Add(b Amount) Amount {
	a.units += b.units
	a.pico += b.pico
	if a.pico >= picos {
		a.pico -= picos
		a.units++
	}
	if a.units < 0 {
		return most
	}
	return a
}

// IsZero tells whether the amount is nothing.
func (a Amount) IsZero() bool { return a == Amount{} }

// ofPicos is n times a number of picos, exactly; both are not negative.
func ofPicos(n, each int64) Amount {
	hi, lo := bits.Mul64(uint64(n), uint64(each))
	if hi >= picos {
		return most
	}
	units, pico := bits.Div64(hi, lo, picos)
	if units > math.MaxInt64 {
		return most
	}
	return Amount{int64(units), int64(pico)}
}

// Scale is the amount for so many requests as one stands for: exact for a whole weight, else to the nearest pico of a double.
func (a Amount) Scale(weight float64) Amount {
	switch {
	case weight == 1:
		return a
	case !(weight > 0):
		return Amount{}
	case weight == math.Trunc(weight) && weight < 1<<53:
		n := int64(weight)
		hi, lo := bits.Mul64(uint64(n), uint64(a.units))
		if hi != 0 || lo > math.MaxInt64 {
			return most
		}
		return Amount{units: int64(lo)}.Add(ofPicos(n, a.pico))
	}
	out, ok := FromFloat(a.Float64() * weight)
	if !ok {
		return most
	}
	return out
}

// Float64 is the nearest double.
func (a Amount) Float64() float64 {
	f, _ := a.Both()
	return f
}

// Both is Float64 and String, of which the one is made from the other.
func (a Amount) Both() (float64, string) {
	s := a.String()
	f, _ := strconv.ParseFloat(s, 64) // the text is a number by its making
	return f, s
}

// String is the amount as a decimal number, without trailing zeros: 0.00123.
func (a Amount) String() string {
	var buf [40]byte
	b := strconv.AppendInt(buf[:0], a.units, 10)
	if a.pico == 0 {
		return string(b)
	}
	b = append(b, '.')
	at := len(b)
	b = strconv.AppendInt(b, picos+a.pico, 10) // the leading 1 keeps the zeros behind the point
	b = append(b[:at], b[at+1:]...)
	return strings.TrimRight(string(b), "0")
}

var errAmount = errors.New("must be a number that is not negative, with at most 12 decimals, such as 0.25")

// Parse reads a decimal number without an exponent.
func Parse(s string) (Amount, error) {
	whole, frac, point := strings.Cut(s, ".")
	if len(frac) > 12 || (point && frac == "") || !digits(whole) || !digits(frac+"0") {
		return Amount{}, errAmount
	}
	units, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return Amount{}, errAmount
	}
	var pico int64
	for i := range 12 {
		pico *= 10
		if i < len(frac) {
			pico += int64(frac[i] - '0')
		}
	}
	return Amount{units, pico}, nil
}

func digits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// FromFloat is the amount that a double is written as, to the nearest pico. ok is false for what is negative, not finite or too large.
func FromFloat(f float64) (a Amount, ok bool) {
	if !(f >= 0 && f < math.MaxInt64) {
		return Amount{}, false
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if _, frac, _ := strings.Cut(s, "."); len(frac) > 12 {
		s = strconv.FormatFloat(f, 'f', 12, 64)
	}
	a, err := Parse(s)
	return a, err == nil
}
