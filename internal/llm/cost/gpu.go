package cost

import (
	"math"
	"sync"
	"time"
)

// GPU prices the tokens of a model by what its GPUs cost:
//
//	price of a token = price of an hour × GPUs ÷ tokens of an hour
//
// The tokens are measured over the last hour: prompt tokens that were computed (not those from a cache) and generated ones. A quiet hour
// thus makes tokens dear, as it does on the bill. Before anything was measured the expected number stands in.
type GPU struct {
	// Hour is the price of one GPU for an hour, Count the number of GPUs.
	Hour  Amount
	Count int64
	// Expected is the number of tokens an hour that is assumed at first, at least 1.
	Expected int64

	mu      sync.Mutex
	minutes [60]int64
	at      int64 // the minute of the Unix time that the newest of minutes stands for
	first   int64 // the first minute that was measured
	engines bool  // an engine's span was measured
	total   int64
}

// minMeasured is the number of whole minutes after which the measured rate is believed.
const minMeasured = 5

// Measure adds the tokens of a request at an instant. Once an engine's own spans come, those of clients and gateways are left out: where
// the layers of a request come in batches of their own both tell the same tokens.
func (g *GPU) Measure(now time.Time, u Usage, engine bool) {
	u = u.sane()
	g.mu.Lock()
	defer g.mu.Unlock()
	if engine && !g.engines {
		g.engines = true
		g.minutes, g.total, g.first = [60]int64{}, 0, 0
	}
	if g.engines && !engine {
		return
	}
	g.advance(now.Unix() / 60)
	n := u.Input - u.Cached + u.Output
	g.minutes[g.at%60] += n
	g.total += n
}

// advance forgets the minutes that are more than an hour ago.
func (g *GPU) advance(minute int64) {
	if g.first == 0 {
		g.first, g.at = minute, minute
	}
	for i := 0; g.at < minute; i++ {
		if i >= 60 {
			g.at = minute // all sixty are forgotten
			break
		}
		g.at++
		g.total -= g.minutes[g.at%60]
		g.minutes[g.at%60] = 0
	}
}

// Price is the price at an instant; tokens from a cache cost nothing, since no GPU computed them.
func (g *GPU) Price(now time.Time, currency string) *Price {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.advance(now.Unix() / 60)
	perHour := float64(g.Expected)
	if minutes := min(g.at-g.first, 60); minutes >= minMeasured && g.total > 0 {
		perHour = float64(g.total) * 60 / float64(minutes)
	}
	r := Rate(min(math.Round(g.Hour.Float64()*float64(g.Count)/perHour*picos), maxRate))
	return &Price{Currency: currency, Input: r, Output: r, CacheWrite: r, Reasoning: r}
}
