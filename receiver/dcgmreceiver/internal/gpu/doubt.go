package gpu

import "time"

// Doubts, as they appear in nvidia.gpu.reason of nvidia.gpu.suspect.
const (
	DoubtProfilingZero = "profiling_zero"    // profiling reads 0 while the GPU is busy (DCGM#303, DCGM#202)
	DoubtBackwards     = "counter_backwards" // a counter fell: driver reload, reset, or a bad value
	DoubtShared        = "shared"            // a shared GPU was listed several times with different values
	DoubtFrozen        = "frozen"            // energy stands still while power is drawn: the source repeats itself
)

// Doubts lists all of them, in the order in which they are reported.
var Doubts = []string{DoubtProfilingZero, DoubtBackwards, DoubtShared, DoubtFrozen}

const (
	busyUtilization = 0.5             // utilisation from which profiling must not read 0
	zeroReadings    = 2               // how many readings in a row it must
	backwardsHold   = 5 * time.Minute // how long a fall stays reported: several scrapes and an alert's "for"
	// frozenAfter is longer than a dcgm-exporter's collection interval (30 s by default), which honestly repeats a page.
	frozenAfter = 2 * time.Minute
)

// doubt keeps what it takes to doubt a device's values.
type doubt struct {
	zeros       int
	backwardsAt time.Time
	energy      Value
	energyAt    time.Time // when it last moved
	hasEnergy   bool
}

// signs are what one reading offers for and against the values.
type signs struct {
	utilization  float64 // 0-1, negative when unknown
	profiling    bool    // any of 1001, 1002, 1004, 1005 was read
	profilingMax float64 // the largest of them
	fell         bool
	disagree     bool
	energy       Value
	hasEnergy    bool
	power        float64 // W, 0 when unknown
}

// judge returns the doubts that hold now, one flag for each of Doubts.
func (d *doubt) judge(now time.Time, s *signs) (held [4]bool) {
	if s.profiling && s.profilingMax == 0 && s.utilization >= busyUtilization {
		d.zeros++
	} else {
		d.zeros = 0
	}
	held[0] = d.zeros >= zeroReadings

	if s.fell {
		d.backwardsAt = now
	}
	held[1] = !d.backwardsAt.IsZero() && now.Sub(d.backwardsAt) < backwardsHold
	held[2] = s.disagree

	if s.hasEnergy {
		if !d.hasEnergy || s.energy != d.energy {
			d.energy, d.energyAt, d.hasEnergy = s.energy, now, true
		}
		held[3] = s.power > 0 && now.Sub(d.energyAt) > frozenAfter
	}
	return held
}
