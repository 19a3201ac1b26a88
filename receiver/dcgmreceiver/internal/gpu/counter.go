package gpu

import "time"

// counter is one cumulative series: a count the source keeps, or a rate that is integrated here.
type counter struct {
	field Field     // which of the fields that can feed the series does
	start time.Time // of the cumulative stream, our clock
	seen  time.Time // when the value was last taken, our clock

	// For a count the source keeps.
	last Value

	// For an integrated rate: whole units and what is left over, so that long streams lose nothing to rounding.
	whole     int64
	remainder float64
	sampleAt  time.Time // source's clock
}

// follow takes the source's own count. It reports false when the count ran backwards, in which case the stream starts
// anew at the previous reading: the reset lies between the two.
func (c *counter) follow(now time.Time, v Value) (forward bool) {
	forward = c.start.IsZero() || v.Float() >= c.last.Float()
	switch {
	case c.start.IsZero():
		c.start = now
	case !forward:
		c.start = c.seen
	}
	c.last, c.seen = v, now
	return forward
}

// gapSteps is how many update intervals a sample may stand for. Two samples further apart have a gap between them, in
// which nothing is known and nothing is counted.
const gapSteps = 2.5

// integrate adds perSecond × (at - previous sample): a DCGM rate is the mean over the interval that ends at its
// timestamp, so the sum over the right-hand ends is exact. The first sample starts the stream at zero.
// Samples that are not newer than the last one are ignored.
func (c *counter) integrate(now, at time.Time, perSecond float64, step time.Duration) {
	c.seen = now
	if c.start.IsZero() {
		c.start, c.sampleAt = now, at
		return
	}
	elapsed := at.Sub(c.sampleAt)
	if elapsed <= 0 {
		return
	}
	c.sampleAt = at
	if elapsed.Seconds() > gapSteps*step.Seconds() || perSecond < 0 {
		return
	}
	c.remainder += perSecond * elapsed.Seconds()
	units := int64(c.remainder)
	c.whole += units
	c.remainder -= float64(units)
}
