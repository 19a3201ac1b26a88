package page

import (
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// Reader turns successive pages of one exporter into readings. It remembers the last XID of each GPU, because a page
// shows only the last one. Not safe for concurrent use.
type Reader struct {
	plan *gpu.Plan
	step time.Duration
	xids map[string]int64
}

// NewReader makes a reader. step is the time between two reads of the page.
func NewReader(plan *gpu.Plan, step time.Duration) *Reader {
	return &Reader{plan: plan, step: step, xids: map[string]int64{}}
}

// Stats says what was on a page beyond its values.
type Stats struct {
	Families int // series of DCGM, mapped or not
	BadLines int
}

// Read reads a page fetched at now. A page without a single DCGM series gives no devices and Families 0.
func (r *Reader) Read(text []byte, now time.Time) (*gpu.Reading, Stats) {
	out := &gpu.Reading{At: now, Clock: now, Source: "dcgm_exporter", Step: r.step, XIDsAreChanges: true}
	b := &builder{reader: r, out: out, index: map[string]int{}}
	var st Stats
	st.BadLines = lines(text, func(l *line) {
		if b.add(l) {
			st.Families++
		}
	})
	r.findXIDs(b)
	return out, st
}

type builder struct {
	reader *Reader
	out    *gpu.Reading
	index  map[string]int // device id → index into out.Devices
	xids   []gpu.Event    // last XID by device as the page shows it
}

// add takes one series; it reports whether the series is one of DCGM's.
func (b *builder) add(l *line) bool {
	field, known := gpu.FieldByName(l.name)
	health := l.name == "DCGM_EXP_GPU_HEALTH_STATUS"
	if !known && !health {
		return strings.HasPrefix(l.name, "DCGM_") || strings.HasPrefix(l.name, "dcgm_")
	}
	d := b.device(l)
	if d == nil {
		return true // an NVSwitch, a CPU, or a series without an identity
	}
	switch {
	case health:
		d.HealthKnown = true
		if n := int(l.value.Float()); n > 0 {
			d.Health = append(d.Health, gpu.Health{System: strings.ToLower(l.get("health_watch")), Result: n})
		}
		return true
	case field == gpu.FieldXID:
		if l.value.Check() == gpu.ReasonOK {
			b.xids = append(b.xids, gpu.Event{DeviceID: d.Device.ID, At: b.out.At, XID: int64(l.value.Float())})
		}
		return true
	}
	sample := gpu.Sample{Field: field, Link: gpu.None, At: b.out.At, Value: l.value}
	if n, err := strconv.Atoi(l.get("nvlink")); err == nil {
		sample.Link = n
	}
	d.Samples = append(d.Samples, sample)
	return true
}

// device finds or makes the device a series belongs to, and fills in what of its identity this series knows.
func (b *builder) device(l *line) *gpu.DeviceReading {
	uuid := l.get("UUID", "uuid", "gpu_uuid")
	if uuid == "" {
		return nil
	}
	dev := gpu.Device{ID: uuid, UUID: uuid, Index: gpu.None, Minor: gpu.None, Instance: gpu.None}
	if gi := l.get("GPU_I_ID", "gpu_i_id"); gi != "" {
		n, err := strconv.Atoi(gi)
		if err != nil {
			return nil
		}
		dev.Parent, dev.Instance, dev.UUID = uuid, n, l.get("dra_mig_device_uuid")
		dev.ID = gpu.InstanceID(dev.UUID, uuid, n)
	}
	i, ok := b.index[dev.ID]
	if !ok {
		if len(b.out.Devices) > gpu.MaxDevices {
			return nil
		}
		i = len(b.out.Devices)
		b.index[dev.ID] = i
		b.out.Devices = append(b.out.Devices, gpu.DeviceReading{Device: dev})
	}
	d := &b.out.Devices[i]
	identify(&d.Device, l)
	if o := owner(l); o != nil {
		for _, have := range d.Owners {
			if have == *o {
				return d
			}
		}
		d.Owners = append(d.Owners, *o)
	}
	return d
}

// identify fills in what is not known yet. Labels can be any field that the exporter was told to use as one.
func identify(d *gpu.Device, l *line) {
	set := func(to *string, names ...string) {
		if *to == "" {
			*to, _ = gpu.CleanString(l.get(names...))
		}
	}
	set(&d.Model, "modelName", "model_name")
	set(&d.BusID, "pci_bus_id", "DCGM_FI_DEV_PCI_BUS_ID", "DCGM_FI_DEV_PCI_BUSID")
	set(&d.Name, "device")
	set(&d.Host, "Hostname", "hostname")
	set(&d.Driver, "DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION")
	set(&d.Serial, "DCGM_FI_DEV_SERIAL", "DCGM_FI_DEV_BOARD_SERIAL")
	set(&d.Profile, "GPU_I_PROFILE", "gpu_i_profile", "dra_mig_profile")
	if n, err := strconv.Atoi(l.get("gpu")); err == nil && d.Index == gpu.None {
		d.Index = n
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(d.Name, "nvidia")); err == nil {
		d.Minor = n
	}
}

// owner reads the container that holds the device. A Prometheus that scraped the exporter moves the pod's own labels
// to exported_*; the plain ones then name the exporter.
func owner(l *line) *gpu.Owner {
	o := gpu.Owner{
		Pod:       l.get("exported_pod", "pod", "pod_name"),
		Namespace: l.get("exported_namespace", "namespace", "pod_namespace"),
		Container: l.get("exported_container", "container", "container_name"),
	}
	if o.Pod == "" {
		return nil
	}
	return &o
}

// findXIDs turns last-value gauges into events: only a change to another XID can be seen, so they are a lower bound.
// The first value of a GPU may be of any age and is no event.
func (r *Reader) findXIDs(b *builder) {
	now := make(map[string]int64, len(b.xids))
	for _, e := range b.xids {
		now[e.DeviceID] = max(now[e.DeviceID], e.XID)
	}
	for _, e := range b.xids {
		xid, fresh := now[e.DeviceID]
		if !fresh {
			continue
		}
		delete(now, e.DeviceID)
		last, known := r.xids[e.DeviceID]
		if known && xid != last && xid > 0 {
			b.out.Events = append(b.out.Events, gpu.Event{DeviceID: e.DeviceID, At: e.At, XID: xid})
		}
		if known || len(r.xids) < gpu.MaxDevices {
			r.xids[e.DeviceID] = xid
		}
	}
}

// Look counts what is on a page without reading it into devices.
func Look(text []byte) Stats {
	var st Stats
	st.BadLines = lines(text, func(l *line) {
		if _, known := gpu.FieldByName(l.name); known || strings.HasPrefix(l.name, "DCGM_") || strings.HasPrefix(l.name, "dcgm_") {
			st.Families++
		}
	})
	return st
}
