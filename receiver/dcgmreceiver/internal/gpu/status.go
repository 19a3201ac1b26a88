package gpu

// States of hw.state, worst first.
const (
	HWFailed    = "failed"
	HWPredicted = "predicted_failure"
	HWDegraded  = "degraded"
	HWOK        = "ok"
)

// HWStates lists the values of hw.state that hw.status has a point for.
var HWStates = []string{HWOK, HWDegraded, HWPredicted, HWFailed}

// evidence is what one reading tells about the condition of a device.
type evidence struct {
	state         State
	health        []Health
	healthKnown   bool
	rowsPending   bool // field 396
	remapFailed   bool // field 395
	recovery      int64
	hasConditions bool // any of the three fields was read
}

// status is the worst state the evidence supports, or "" when nothing is known of the device's condition.
//
// Lost, a failed health check and a recovery action asked for by the driver are failures. A remapped row that waits
// for a reset, and a remapping that failed, announce one. A health warning is a degradation.
func (e *evidence) status() string {
	worst := 0
	for _, h := range e.health {
		worst = max(worst, h.Result)
	}
	switch {
	case e.state == StateLost, worst >= 20, e.recovery > 0:
		return HWFailed
	case e.rowsPending, e.remapFailed:
		return HWPredicted
	case worst >= 10:
		return HWDegraded
	case e.state == StateOK, e.healthKnown, e.hasConditions:
		return HWOK
	}
	return ""
}
