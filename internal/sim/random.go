package sim

import (
	"encoding/hex"
	"math"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// random is the world's only source of chance.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 0x6c6c6d73696d))} }

// chance is true with probability p.
func (r random) chance(p float64) bool { return p > 0 && r.Float64() < p }

// delay is a log-normal duration with the given median; sigma is of its logarithm.
func (r random) delay(median time.Duration, sigma float64) time.Duration {
	return time.Duration(float64(median) * math.Exp(sigma*r.NormFloat64()))
}

// gap is an exponential waiting time between Poisson events of the given rate per second.
func (r random) gap(rate float64) time.Duration {
	return time.Duration(r.ExpFloat64() / rate * float64(time.Second))
}

// length draws a token count.
func (r random) length(l Lengths) int {
	v := l.Median
	if l.Sigma > 0 {
		v *= math.Exp(l.Sigma * r.NormFloat64())
	}
	if v >= float64(l.Max) {
		return l.Max
	}
	return max(int(math.Round(v)), l.Min)
}

// pick returns an index with probability in proportion to its weight; -1 when all weights are 0.
func (r random) pick(weights []float64) int {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	if sum <= 0 {
		return -1
	}
	x := r.Float64() * sum
	last := -1
	for i, w := range weights {
		if w <= 0 {
			continue
		}
		if x -= w; x < 0 {
			return i
		}
		last = i
	}
	return last
}

func (r random) traceID() (id pcommon.TraceID) {
	put64(id[:8], r.Uint64())
	put64(id[8:], r.Uint64()|1)
	return id
}

func (r random) spanID() (id pcommon.SpanID) {
	put64(id[:], r.Uint64()|1)
	return id
}

// hex16 is the random part of an id made by vLLM: 16 hexadecimal digits.
func (r random) hex16() string {
	var b [8]byte
	put64(b[:], r.Uint64())
	return hex.EncodeToString(b[:])
}

// uuid is a random (version 4) UUID.
func (r random) uuid() string {
	var b [16]byte
	put64(b[:8], r.Uint64())
	put64(b[8:], r.Uint64())
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func put64(b []byte, v uint64) {
	for i := range 8 {
		b[i] = byte(v >> (56 - 8*i))
	}
}
