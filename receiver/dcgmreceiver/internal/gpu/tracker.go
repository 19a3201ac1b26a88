package gpu

import (
	"slices"
	"time"
)

// Bounds of what a Tracker holds. A node has at most 16 GPUs of 8 instances (DCGM's limits are 32 and 14), so the
// bounds are met by broken or hostile pages only; what they cost is counted in Report.Overflow.
const (
	MaxDevices = 1024
	MaxXIDs    = 64             // different XIDs of one device; further ones share one series
	MaxOwners  = 256            // containers that share one device; Kubernetes runs at most 250 pods on a node by default
	LostFor    = 24 * time.Hour // how long a GPU that is gone is reported as failed
)

// Point is one data point. Value is an integer when the metric's points are. Start is zero for gauges.
type Point struct {
	Metric *Metric
	Attrs  []Attr
	Value  Value
	Start  time.Time
}

// DeviceReport is what is to be said of one device.
type DeviceReport struct {
	Device *Device
	Owner  *Owner // the one container that holds the device; nil when none or several do
	Points []Point
}

// XIDReport is an XID to be logged, with the device it happened on where that is known.
type XIDReport struct {
	Event  Event
	Device *Device
	Owner  *Owner
}

// Report is the outcome of one reading. Values = Used + the sum of Dropped.
type Report struct {
	At       time.Time
	Devices  []DeviceReport
	Points   []Point // of the source itself, not of a device
	XIDs     []XIDReport
	Values   int
	Used     int
	Dropped  map[Reason]int
	Overflow int // devices and XID series that did not fit
}

// Tracker turns the readings of one source into points. It keeps per device what lies between two readings: counters,
// XIDs seen, grounds for doubt. Not safe for concurrent use.
type Tracker struct {
	plan    *Plan
	started time.Time
	devices map[string]*tracked
	errors  map[Reason]int64
}

type tracked struct {
	device   Device
	owner    *Owner
	first    time.Time
	seen     time.Time
	counters []counter
	xids     map[int64]int64
	xidMore  int64
	doubt    doubt
}

// NewTracker makes a tracker for a plan.
func NewTracker(p *Plan) *Tracker {
	return &Tracker{plan: p, devices: map[string]*tracked{}, errors: map[Reason]int64{}}
}

// Take digests a reading. Readings must come in the order of their times.
func (t *Tracker) Take(r *Reading) *Report {
	if t.started.IsZero() {
		t.started = r.At
	}
	out := &Report{At: r.At, Dropped: map[Reason]int{}}
	gpus, present := map[string]bool{}, make(map[string]bool, len(r.Devices))
	for i := range r.Devices {
		dr := &r.Devices[i]
		if present[dr.Device.ID] {
			t.drop(out, dr.Samples, ReasonDuplicate)
			continue
		}
		tr := t.track(dr, r.At)
		if tr == nil {
			out.Overflow++
			t.drop(out, dr.Samples, ReasonOther)
			continue
		}
		present[dr.Device.ID] = true
		if dr.Device.IsMIG() {
			gpus[dr.Device.Parent] = true
		} else {
			gpus[dr.Device.ID] = true
		}
		if extra := len(dr.Owners) - MaxOwners; extra > 0 {
			out.Overflow += extra
			dr.Owners = dr.Owners[:MaxOwners]
		}
		out.Devices = append(out.Devices, DeviceReport{Device: &tr.device, Owner: tr.owner})
	}
	t.addLost(out, present, gpus, r.At)
	t.takeEvents(out, r)
	byID := make(map[string]*DeviceReading, len(r.Devices))
	for i := range r.Devices {
		if id := r.Devices[i].Device.ID; byID[id] == nil {
			byID[id] = &r.Devices[i]
		}
	}
	for i := range out.Devices {
		dev := &out.Devices[i]
		t.report(out, dev, t.devices[dev.Device.ID], byID[dev.Device.ID], r)
	}
	t.sourcePoints(out, len(gpus))
	return out
}

// track finds or makes the state of a device; nil when there is no room for it.
func (t *Tracker) track(dr *DeviceReading, now time.Time) *tracked {
	tr := t.devices[dr.Device.ID]
	if tr == nil {
		if len(t.devices) >= MaxDevices {
			return nil
		}
		tr = &tracked{first: now, counters: make([]counter, t.plan.nSeries), xids: map[int64]int64{}}
		t.devices[dr.Device.ID] = tr
	}
	tr.device, tr.seen, tr.owner = dr.Device, now, nil
	if len(dr.Owners) == 1 {
		tr.owner = &dr.Owners[0]
	}
	return tr
}

// addLost adds the GPUs that were there before and are not listed now, neither themselves nor by a MIG instance, and
// forgets MIG instances that are gone: those are taken down on purpose.
func (t *Tracker) addLost(out *Report, present, gpus map[string]bool, now time.Time) {
	var gone []string
	for id, tr := range t.devices {
		switch {
		case present[id], gpus[id]:
		case tr.device.IsMIG(), now.Sub(tr.seen) > LostFor:
			delete(t.devices, id)
		default:
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	for _, id := range gone {
		gpus[id] = true
		out.Devices = append(out.Devices, DeviceReport{Device: &t.devices[id].device, Owner: t.devices[id].owner})
	}
}

func (t *Tracker) takeEvents(out *Report, r *Reading) {
	for _, e := range r.Events {
		tr := t.devices[e.DeviceID]
		if tr == nil {
			out.XIDs = append(out.XIDs, XIDReport{Event: e})
			continue
		}
		if _, known := tr.xids[e.XID]; known || len(tr.xids) < MaxXIDs {
			tr.xids[e.XID]++
		} else {
			tr.xidMore++
			out.Overflow++
		}
		out.XIDs = append(out.XIDs, XIDReport{Event: e, Device: &tr.device, Owner: tr.owner})
	}
}

func (t *Tracker) drop(out *Report, samples []Sample, why Reason) {
	out.Values += len(samples)
	if len(samples) > 0 {
		out.Dropped[why] += len(samples)
	}
}

// sourcePoints adds what is said of the source as a whole.
func (t *Tracker) sourcePoints(out *Report, gpus int) {
	for why, n := range out.Dropped {
		// Duplicates and fields nobody asked for are no faults of the GPU's.
		if why != ReasonDuplicate && why != ReasonUnmapped {
			t.errors[why] += int64(n)
		}
	}
	if t.plan.On(MetricCount) {
		out.Points = append(out.Points, Point{Metric: metricByName[MetricCount], Value: Int(int64(gpus)), Start: t.started})
	}
	if !t.plan.On(MetricFieldErrors) {
		return
	}
	for _, why := range Reasons {
		if n := t.errors[why]; n > 0 {
			out.Points = append(out.Points, Point{
				Metric: metricByName[MetricFieldErrors], Value: Int(n), Start: t.started,
				Attrs: []Attr{{Key: AttrReason, Str: string(why)}},
			})
		}
	}
}
