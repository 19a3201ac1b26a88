package cost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"sync/atomic"
)

// Rate is a price for one token, in picos of the currency.
type Rate int64

// maxRate bounds a rate: a million units of the currency for a million tokens.
const maxRate = 1_000_000_000_000

// PerMillion is the rate of a price for a million tokens, from 0 to 1000000 with at most six decimals.
func PerMillion(f float64) (Rate, error) {
	a, ok := FromFloat(f)
	if !ok || a.units > 1_000_000 || a.pico%1_000_000 != 0 {
		return 0, fmt.Errorf("must be a price for a million tokens from 0 to 1000000 with at most 6 decimals, got %v", f)
	}
	r := a.units*1_000_000 + a.pico/1_000_000
	if r > maxRate {
		return 0, fmt.Errorf("must be a price for a million tokens from 0 to 1000000 with at most 6 decimals, got %v", f)
	}
	return Rate(r), nil
}

// String is the price for a million tokens.
func (r Rate) String() string {
	return Amount{int64(r) / 1_000_000, int64(r) % 1_000_000 * 1_000_000}.String()
}

// Price is what one model's tokens cost at one time.
type Price struct {
	Currency string
	// Input and Output are for tokens that nothing below is for. CachedInput is for prompt tokens from a cache, CacheWrite for those
	// written to one, Reasoning for generated tokens that were reasoning.
	Input, Output, CachedInput, CacheWrite, Reasoning Rate
	// Request is for each request beside its tokens.
	Request Amount
}

// Usage is the tokens of a request, or of a part of one. Input includes Cached and Written, Output includes Reasoning.
type Usage struct{ Input, Output, Cached, Written, Reasoning int64 }

// Tokens is what tokens cost; saved is what their cached part would have cost more without the cache.
func (p *Price) Tokens(u Usage) (total, saved Amount) {
	u = u.sane()
	for _, t := range [...]struct {
		n    int64
		rate Rate
	}{
		{u.Input - u.Cached - u.Written, p.Input},
		{u.Cached, p.CachedInput},
		{u.Written, p.CacheWrite},
		{u.Output - u.Reasoning, p.Output},
		{u.Reasoning, p.Reasoning},
	} {
		if t.n > 0 && t.rate > 0 {
			total = total.Add(ofPicos(t.n, int64(t.rate)))
		}
	}
	if p.CachedInput < p.Input {
		saved = ofPicos(u.Cached, int64(p.Input-p.CachedInput))
	}
	return total, saved
}

// sane makes parts no larger than their whole and nothing negative.
func (u Usage) sane() Usage {
	u.Input, u.Output = max(u.Input, 0), max(u.Output, 0)
	u.Cached = min(max(u.Cached, 0), u.Input)
	u.Written = min(max(u.Written, 0), u.Input-u.Cached)
	u.Reasoning = min(max(u.Reasoning, 0), u.Output)
	return u
}

// String is the price as it stands on a span: the currency, then each price for a million tokens that is not implied by another, so that
// a bill can be checked, and computed again behind this process.
//
//	USD input=0.5 output=1.5 cached_input=0.05
func (p *Price) String() string {
	var b strings.Builder
	b.WriteString(p.Currency)
	for _, r := range [...]struct {
		name          string
		rate, implied Rate
	}{
		{"input", p.Input, 0},
		{"output", p.Output, 0},
		{"cached_input", p.CachedInput, p.Input},
		{"cache_write", p.CacheWrite, p.Input},
		{"reasoning", p.Reasoning, p.Output},
	} {
		if r.rate != r.implied {
			b.WriteString(" " + r.name + "=" + r.rate.String())
		}
	}
	if !p.Request.IsZero() {
		b.WriteString(" request=" + p.Request.String())
	}
	return b.String()
}

var errPrice = errors.New("must be a currency and prices, such as USD input=0.5 output=1.5")

// parsed remembers some of the prices that were parsed, each under its hash: there are as many as models, and every span has one.
var (
	parsed     [64]atomic.Pointer[parsedPrice]
	parsedSeed = maphash.MakeSeed()
)

type parsedPrice struct {
	text  string
	price *Price
}

// ParsePrice is the inverse of String. The price may be somebody else's as well: it must not be changed.
func ParsePrice(s string) (*Price, error) {
	if len(s) > 256 {
		return nil, errPrice
	}
	at := &parsed[maphash.String(parsedSeed, s)%uint64(len(parsed))]
	if known := at.Load(); known != nil && known.text == s {
		return known.price, nil
	}
	p, err := parsePrice(s)
	if err == nil {
		at.Store(&parsedPrice{strings.Clone(s), p})
	}
	return p, err
}

func parsePrice(s string) (*Price, error) {
	var p Price
	p.Currency, s, _ = strings.Cut(strings.Clone(s), " ") // what is kept does not keep more
	if !IsCurrency(p.Currency) {
		return nil, errPrice
	}
	var cached, write, reasoning bool
	for s != "" {
		var part string
		part, s, _ = strings.Cut(s, " ")
		name, value, _ := strings.Cut(part, "=")
		a, err := Parse(value)
		if err != nil {
			return nil, errPrice
		}
		if name == "request" {
			p.Request = a
			continue
		}
		if a.units > 1_000_000 || a.pico%1_000_000 != 0 {
			return nil, errPrice
		}
		r := Rate(a.units*1_000_000 + a.pico/1_000_000)
		switch name {
		case "input":
			p.Input = r
		case "output":
			p.Output = r
		case "cached_input":
			p.CachedInput, cached = r, true
		case "cache_write":
			p.CacheWrite, write = r, true
		case "reasoning":
			p.Reasoning, reasoning = r, true
		default:
			return nil, errPrice
		}
	}
	if !cached {
		p.CachedInput = p.Input
	}
	if !write {
		p.CacheWrite = p.Input
	}
	if !reasoning {
		p.Reasoning = p.Output
	}
	return &p, nil
}

// IsCurrency tells whether s can be the code of a currency: three to eight capital letters.
func IsCurrency(s string) bool {
	if len(s) < 3 || len(s) > 8 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return true
}

// quote names a model in an error.
func quote(model string) string { return strconv.Quote(model) }

// AppendKey appends to b what tells the price from every other: equal prices append the same.
func (p *Price) AppendKey(b []byte) []byte {
	b = append(binary.AppendUvarint(b, uint64(len(p.Currency))), p.Currency...)
	for _, n := range [...]int64{
		int64(p.Input), int64(p.Output), int64(p.CachedInput), int64(p.CacheWrite), int64(p.Reasoning), p.Request.units, p.Request.pico,
	} {
		b = binary.AppendVarint(b, n)
	}
	return b
}
