package gpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func sec(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }

func card(id string) Device {
	return Device{ID: id, UUID: id, Index: 0, Minor: 0, Instance: None, Name: "nvidia0", Model: "NVIDIA H100"}
}

// read makes a reading of one healthy GPU at second s.
func read(s float64, samples ...Sample) *Reading {
	for i := range samples {
		if samples[i].At.IsZero() {
			samples[i].At = sec(s)
		}
	}
	return &Reading{At: sec(s), Clock: sec(s), Source: "dcgm", Step: time.Second, Devices: []DeviceReading{{Device: card("GPU-1"), State: StateOK, Samples: samples}}}
}

func of(f Field, v Value) Sample { return Sample{Field: f, Link: None, Value: v} }

// find returns the points of a metric whose attributes contain all of the given key, value pairs.
func find(r *Report, metric string, kv ...string) []Point {
	var out []Point
	points := append([]Point{}, r.Points...)
	for _, d := range r.Devices {
		points = append(points, d.Points...)
	}
next:
	for _, p := range points {
		if p.Metric.Name != metric {
			continue
		}
		for i := 0; i < len(kv); i += 2 {
			ok := false
			for _, a := range p.Attrs {
				ok = ok || (a.Key == kv[i] && (a.Str == kv[i+1] || (a.IsInt && fmt.Sprint(a.Int) == kv[i+1])))
			}
			if !ok {
				continue next
			}
		}
		out = append(out, p)
	}
	return out
}

func one(t *testing.T, r *Report, metric string, kv ...string) Point {
	t.Helper()
	ps := find(r, metric, kv...)
	require.Len(t, ps, 1, "%s %v", metric, kv)
	return ps[0]
}

func state(t *testing.T, r *Report, id string) string {
	t.Helper()
	for _, d := range r.Devices {
		if d.Device.ID != id {
			continue
		}
		for _, p := range d.Points {
			if p.Metric.Name == MetricStatus && p.Value.Int == 1 {
				return p.Attrs[0].Str
			}
		}
	}
	return ""
}

func balanced(t *testing.T, r *Report) {
	t.Helper()
	sum := r.Used
	for _, n := range r.Dropped {
		sum += n
	}
	assert.Equal(t, r.Values, sum, "values in = used + dropped")
}

func TestUnits(t *testing.T) {
	tr := NewTracker(NewPlan(nil, nil))
	r := tr.Take(read(0,
		of(203, Int(87)), of(1005, Double(0.42)), of(252, Int(1000)), of(253, Int(100)), of(251, Int(900)),
		of(100, Int(1980)), of(156, Int(123456)), of(1420, Int(2_500_000_000)), of(191, Int(40)), of(112, Int(0x4|0x100)),
		Sample{Field: 1508, Link: 3, Value: Int(1)}, Sample{Field: 1508, Link: 4, Value: Int(2)}, Sample{Field: 1508, Link: 5, Value: Int(0)},
	))
	balanced(t, r)
	assert.InDelta(t, 0.87, one(t, r, "hw.gpu.utilization", AttrTask, "general").Value.Double, 1e-12)
	assert.Equal(t, 0.42, one(t, r, "nvidia.gpu.memory.bandwidth.utilization").Value.Double)
	assert.Equal(t, Int(1000*1048576), one(t, r, "hw.gpu.memory.usage").Value)
	assert.Equal(t, Int(2000*1048576), one(t, r, "hw.gpu.memory.limit").Value, "implied by used + free + reserved")
	assert.InDelta(t, 1000.0/1900, one(t, r, "hw.gpu.memory.utilization").Value.Double, 1e-12)
	assert.Equal(t, 1.98e9, one(t, r, "nvidia.gpu.clock.frequency", AttrClock, "sm").Value.Double)
	assert.InDelta(t, 123.456, one(t, r, "hw.energy").Value.Double, 1e-9)
	assert.Equal(t, 2.5, one(t, r, "nvidia.gpu.clock.event.duration").Value.Double)
	assert.InDelta(t, 0.4, one(t, r, "hw.fan.speed_ratio").Value.Double, 1e-12)
	assert.Len(t, find(r, "nvidia.gpu.clock.event.active"), 9)
	assert.Equal(t, int64(1), one(t, r, "nvidia.gpu.clock.event.active", AttrReason, "sw_power_cap").Value.Int)
	assert.Equal(t, int64(1), one(t, r, "nvidia.gpu.clock.event.active", AttrReason, "display").Value.Int)
	assert.Equal(t, int64(0), one(t, r, "nvidia.gpu.clock.event.active", AttrReason, "idle").Value.Int)
	assert.Equal(t, int64(1), one(t, r, "nvidia.gpu.nvlink.link.up", AttrNVLink, "3").Value.Int)
	assert.Equal(t, int64(1), one(t, r, "nvidia.gpu.nvlink.link.up", AttrNVLink, "4").Value.Int, "asleep is ready")
	assert.Equal(t, int64(0), one(t, r, "nvidia.gpu.nvlink.link.up", AttrNVLink, "5").Value.Int)
}

func TestASentinelIsDroppedAndCountedNeverEmitted(t *testing.T) {
	tr := NewTracker(NewPlan(nil, nil))
	r := tr.Take(read(0,
		of(140, Int(9223372036854775794)), of(155, Double(140737488355328)), of(203, Int(5)),
		Sample{Field: 150, Link: None, Reason: ReasonUnwatched}, of(9999, Int(1)), of(1002, Double(-0.5)), of(206, Int(900)),
	))
	balanced(t, r)
	assert.Empty(t, find(r, "hw.temperature"))
	assert.Empty(t, find(r, "hw.power"))
	assert.Empty(t, find(r, "nvidia.gpu.sm.utilization"))
	assert.Empty(t, find(r, "hw.gpu.utilization", AttrTask, "encoder"))
	assert.Equal(t, map[Reason]int{ReasonNotSupported: 1, ReasonBlank: 1, ReasonUnwatched: 1, ReasonUnmapped: 1, ReasonRange: 2}, r.Dropped)
	assert.Equal(t, int64(1), one(t, r, MetricFieldErrors, AttrReason, "notsupported").Value.Int)
	assert.Empty(t, find(r, MetricFieldErrors, AttrReason, "unmapped"), "a field nobody asked for is no error")
}

func TestRatesBecomeCounters(t *testing.T) {
	tr := NewTracker(NewPlan(nil, nil))
	pcie := func(r *Report) Point { return one(t, r, "hw.gpu.io", AttrDirection, "transmit", AttrLink, "pcie") }
	//                          sample at, B/s    the mean over the second that ends there
	at := func(s float64, v int64) Sample {
		return Sample{Field: 1009, Link: None, At: sec(s), Value: Int(v)}
	}

	p := pcie(tr.Take(read(1, at(1, 500))))
	assert.Equal(t, int64(0), p.Value.Int, "the first sample starts the stream")
	assert.Equal(t, sec(1), p.Start)

	p = pcie(tr.Take(read(4, at(2, 100), at(3, 200), at(4, 300))))
	assert.Equal(t, int64(600), p.Value.Int)

	p = pcie(tr.Take(read(14, at(14, 1000))))
	assert.Equal(t, int64(600), p.Value.Int, "10 s of silence at a 1 s update: a gap counts nothing")

	p = pcie(tr.Take(read(15, at(14, 1000), at(15, 10))))
	assert.Equal(t, int64(610), p.Value.Int, "a sample that was seen counts once")
	assert.Equal(t, sec(1), p.Start, "the stream goes on")
}

func TestRateIntegrationLosesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		tr := NewTracker(NewPlan(nil, nil))
		var exact, at float64
		var last *Report
		for range 200 {
			at += 0.05 + rng.Float64()*2
			v := rng.Float64() * 3
			if last != nil {
				exact += v * (math.Round(at*1e9) - math.Round(last.At.Sub(t0).Seconds()*1e9)) / 1e9
			}
			last = tr.Take(read(at, of(1010, Double(v))))
		}
		got := one(t, last, "hw.gpu.io", AttrDirection, "receive").Value.Int
		assert.InDelta(t, exact, float64(got), 1.001, "whole units, within the remainder")
	}
}

func TestACounterThatFallsStartsAnewAndIsDoubted(t *testing.T) {
	tr := NewTracker(NewPlan(nil, nil))
	p := one(t, tr.Take(read(0, of(156, Int(5000)))), "hw.energy")
	assert.Equal(t, 5.0, p.Value.Double)
	assert.Equal(t, sec(0), p.Start)
	r := tr.Take(read(10, of(156, Int(7000))))
	assert.Equal(t, sec(0), one(t, r, "hw.energy").Start)
	assert.Equal(t, int64(0), one(t, r, MetricSuspect, AttrReason, DoubtBackwards).Value.Int)
	r = tr.Take(read(20, of(156, Int(100))))
	p = one(t, r, "hw.energy")
	assert.Equal(t, 0.1, p.Value.Double, "never negative")
	assert.Equal(t, sec(10), p.Start, "the reset lies after the last reading before it")
	assert.Equal(t, int64(1), one(t, r, MetricSuspect, AttrReason, DoubtBackwards).Value.Int)
	r = tr.Take(read(30, of(156, Int(300))))
	assert.Equal(t, int64(1), one(t, r, MetricSuspect, AttrReason, DoubtBackwards).Value.Int, "held, so that an alert sees it")
	r = tr.Take(read(20+301, of(156, Int(300))))
	assert.Equal(t, int64(0), one(t, r, MetricSuspect, AttrReason, DoubtBackwards).Value.Int)
}

func TestTheBestFieldOfASeriesWins(t *testing.T) {
	tr := NewTracker(NewPlan(nil, nil))
	r := tr.Take(read(0, of(1009, Int(77)), of(1091, Int(1_000_000)), of(157, Double(250)), of(155, Double(240))))
	assert.Equal(t, int64(1_000_000), one(t, r, "hw.gpu.io", AttrDirection, "transmit").Value.Int)
	assert.Equal(t, 240.0, one(t, r, "hw.power").Value.Double)
	r = tr.Take(read(10, of(1009, Int(77)), of(1091, Int(int64Blank)), of(157, Double(250)), of(155, Double(doubleBlank))))
	p := one(t, r, "hw.gpu.io", AttrDirection, "transmit")
	assert.Equal(t, int64(0), p.Value.Int, "another field takes over: a new stream")
	assert.Equal(t, sec(10), p.Start)
	assert.Equal(t, 250.0, one(t, r, "hw.power").Value.Double)
}

func TestGaugesAreTheMeanOfTheirSamples(t *testing.T) {
	tr := NewTracker(NewPlan(nil, nil))
	r := tr.Take(read(3,
		Sample{Field: 1002, Link: None, At: sec(1), Value: Double(0.2)},
		Sample{Field: 1002, Link: None, At: sec(2), Value: Double(0.4)},
		Sample{Field: 1002, Link: None, At: sec(3), Value: Double(0.9)}))
	assert.InDelta(t, 0.5, one(t, r, "nvidia.gpu.sm.utilization").Value.Double, 1e-12)
	balanced(t, r)
}

func TestStaleSamplesAreNotRepeated(t *testing.T) {
	tr := NewTracker(NewPlan(nil, nil))
	in := read(100, Sample{Field: 203, Link: None, At: sec(60), Value: Int(50)}, Sample{Field: 310, Link: None, At: sec(60), Value: Int(1)})
	in.MaxAge[ClassCore], in.MaxAge[ClassSlow] = 25*time.Second, 75*time.Second
	r := tr.Take(in)
	assert.Empty(t, find(r, "hw.gpu.utilization"))
	assert.Len(t, find(r, "hw.errors"), 1)
	assert.Equal(t, 1, r.Dropped[ReasonStale])
	assert.Equal(t, 40.0, one(t, r, MetricSampleAge).Value.Double)
	balanced(t, r)
}

func TestALostGPUIsReportedAsFailed(t *testing.T) {
	t.Run("the source says so", func(t *testing.T) {
		tr := NewTracker(NewPlan(nil, nil))
		assert.Equal(t, HWOK, state(t, tr.Take(read(0, of(203, Int(1)))), "GPU-1"))
		in := read(10, of(203, Int(50)))
		in.Devices[0].State = StateLost
		r := tr.Take(in)
		assert.Equal(t, HWFailed, state(t, r, "GPU-1"))
		assert.Empty(t, find(r, "hw.gpu.utilization"), "values of a lost GPU are not believed")
		balanced(t, r)
	})
	t.Run("it is no longer listed, and comes back", func(t *testing.T) {
		tr := NewTracker(NewPlan(nil, nil))
		tr.Take(read(0, of(203, Int(1))))
		gone := &Reading{At: sec(10), Clock: sec(10), Devices: []DeviceReading{{Device: card("GPU-2"), State: StateOK}}}
		r := tr.Take(gone)
		assert.Equal(t, HWFailed, state(t, r, "GPU-1"))
		assert.Equal(t, HWOK, state(t, r, "GPU-2"))
		assert.Equal(t, int64(2), one(t, r, MetricCount).Value.Int)
		assert.Equal(t, HWOK, state(t, tr.Take(read(20, of(203, Int(1)))), "GPU-1"))
	})
	t.Run("after a day it is forgotten", func(t *testing.T) {
		tr := NewTracker(NewPlan(nil, nil))
		tr.Take(read(0))
		r := tr.Take(&Reading{At: sec(86401), Clock: sec(86401)})
		assert.Empty(t, r.Devices)
	})
	t.Run("a MIG instance that is taken down just goes", func(t *testing.T) {
		tr := NewTracker(NewPlan(nil, nil))
		in := read(0)
		in.Devices[0].Device = Device{ID: "GPU-1/gi/7", Parent: "GPU-1", Instance: 7}
		tr.Take(in)
		r := tr.Take(&Reading{At: sec(10), Clock: sec(10)})
		assert.Empty(t, r.Devices)
		assert.Equal(t, int64(0), one(t, r, MetricCount).Value.Int)
	})
}

func TestStatusFollowsTheWorstEvidence(t *testing.T) {
	for _, tc := range []struct {
		name    string
		state   State
		health  []Health
		known   bool
		samples []Sample
		want    string
	}{
		{"healthy", StateOK, nil, true, nil, HWOK},
		{"warning", StateOK, []Health{{"thermal", 10}}, true, nil, HWDegraded},
		{"failure", StateOK, []Health{{"thermal", 10}, {"mem", 20}}, true, nil, HWFailed},
		{"row remap pending", StateOK, []Health{{"thermal", 10}}, true, []Sample{of(396, Int(1))}, HWPredicted},
		{"row remap failed", StateOK, nil, false, []Sample{of(395, Int(1))}, HWPredicted},
		{"driver asks for a reset", StateOK, nil, true, []Sample{of(1523, Int(1))}, HWFailed},
		{"a page that tells nothing", StateUnknown, nil, false, []Sample{of(203, Int(3))}, ""},
		{"a page with a clean remap", StateUnknown, nil, false, []Sample{of(396, Int(0))}, HWOK},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := read(0, tc.samples...)
			in.Devices[0].State, in.Devices[0].Health, in.Devices[0].HealthKnown = tc.state, tc.health, tc.known
			r := NewTracker(NewPlan(nil, nil)).Take(in)
			assert.Equal(t, tc.want, state(t, r, "GPU-1"))
			assert.Len(t, find(r, MetricHealth), map[bool]int{true: 10, false: 0}[tc.known])
			for _, h := range tc.health {
				if tc.known {
					assert.Equal(t, int64(h.Result), one(t, r, MetricHealth, AttrSystem, h.System).Value.Int)
				}
			}
		})
	}
}

func TestXIDsAreCountedOnceEachAndBounded(t *testing.T) {
	tr := NewTracker(NewPlan(nil, nil))
	in := read(10)
	in.Events = []Event{{"GPU-1", sec(9), 31}, {"GPU-1", sec(9), 31}, {"GPU-1", sec(10), 79}, {"GPU-404", sec(10), 13}}
	r := tr.Take(in)
	assert.Equal(t, int64(2), one(t, r, MetricXID, AttrXID, "31").Value.Int, "the same XID twice is two errors")
	assert.Equal(t, int64(1), one(t, r, MetricXID, AttrXID, "79").Value.Int)
	require.Len(t, r.XIDs, 4)
	assert.NotNil(t, r.XIDs[0].Device)
	assert.Nil(t, r.XIDs[3].Device, "an XID of an unknown device is still logged")
	assert.Equal(t, int64(2), one(t, tr.Take(read(20)), MetricXID, AttrXID, "31").Value.Int, "cumulative")

	in = read(30)
	for x := range int64(200) {
		in.Events = append(in.Events, Event{"GPU-1", sec(30), 1000 + x})
	}
	r = tr.Take(in)
	points := find(r, MetricXID)
	assert.Len(t, points, MaxXIDs+1)
	var sum int64
	for _, p := range points {
		sum += p.Value.Int
	}
	assert.Equal(t, int64(203), sum, "nothing is lost, only its number")
	assert.Equal(t, 200-(MaxXIDs-2), r.Overflow)
}

func TestDoubt(t *testing.T) {
	suspect := func(t *testing.T, r *Report, why string) bool {
		return one(t, r, MetricSuspect, AttrReason, why).Value.Int == 1
	}
	t.Run("profiling reads 0 while the GPU is busy", func(t *testing.T) {
		tr := NewTracker(NewPlan(nil, nil))
		busy := func(s float64, util int64, prof float64) *Report {
			return tr.Take(read(s, of(203, Int(util)), of(1001, Double(prof)), of(1005, Double(prof))))
		}
		assert.False(t, suspect(t, busy(0, 99, 0), DoubtProfilingZero), "one reading may be a coincidence")
		assert.True(t, suspect(t, busy(10, 99, 0), DoubtProfilingZero))
		assert.False(t, suspect(t, busy(20, 99, 0.4), DoubtProfilingZero))
		assert.False(t, suspect(t, busy(30, 0, 0), DoubtProfilingZero))
		assert.False(t, suspect(t, busy(40, 0, 0), DoubtProfilingZero), "idle")
		assert.False(t, suspect(t, tr.Take(read(50, of(203, Int(99)))), DoubtProfilingZero), "not profiled at all")
		assert.False(t, suspect(t, tr.Take(read(60, of(203, Int(99)))), DoubtProfilingZero))
	})
	t.Run("a shared GPU repeats itself", func(t *testing.T) {
		tr := NewTracker(NewPlan(nil, nil))
		r := tr.Take(read(0, of(203, Int(80)), of(203, Int(80))))
		assert.False(t, suspect(t, r, DoubtShared), "equal repeats are counted once and harmless")
		assert.Len(t, find(r, "hw.gpu.utilization"), 1)
		assert.Equal(t, 1, r.Dropped[ReasonDuplicate])
		balanced(t, r)
		r = tr.Take(read(10, of(203, Int(30)), of(203, Int(50))))
		assert.True(t, suspect(t, r, DoubtShared), "values of one GPU that differ by pod are not the GPU's")
		assert.InDelta(t, 0.5, one(t, r, "hw.gpu.utilization").Value.Double, 1e-12)
	})
	t.Run("the source repeats itself", func(t *testing.T) {
		tr := NewTracker(NewPlan(nil, nil))
		at := func(s float64, mj int64) bool {
			return suspect(t, tr.Take(read(s, of(156, Int(mj)), of(155, Double(300)))), DoubtFrozen)
		}
		assert.False(t, at(0, 1000))
		assert.False(t, at(30, 1000), "an exporter repeats a page for its own interval")
		assert.False(t, at(120, 1000))
		assert.True(t, at(130, 1000))
		assert.False(t, at(140, 2000))
	})
}

func TestSwitchesAndExtraFields(t *testing.T) {
	extra := Mapping{Field: 92, Metric: &Metric{Name: "nvidia.gpu.bar1.limit", Unit: "By", Kind: KindUpDown, Integer: true}, Scale: mebi, Class: ClassExtra}
	p := NewPlan(map[string]bool{"hw.power": false, "nvidia.gpu.ecc.errors.lifetime": true, MetricSuspect: false}, []Mapping{extra})
	assert.False(t, p.Wants(155))
	assert.True(t, p.Wants(312))
	assert.True(t, p.Wants(92))
	assert.True(t, p.Wants(FieldXID))
	assert.Equal(t, []Field{92}, p.Fields(ClassExtra, false))
	r := NewTracker(p).Take(read(0, of(155, Double(300)), of(312, Int(4)), of(92, Int(128))))
	assert.Empty(t, find(r, "hw.power"))
	assert.Empty(t, find(r, MetricSuspect))
	assert.Equal(t, int64(4), one(t, r, "nvidia.gpu.ecc.errors.lifetime").Value.Int)
	assert.Equal(t, int64(128<<20), one(t, r, "nvidia.gpu.bar1.limit").Value.Int)
	assert.False(t, NewPlan(nil, nil).Wants(312), "lifetime counters are off by default: they count twice")
}

func TestPlanKnowsAlternatives(t *testing.T) {
	p := NewPlan(nil, nil)
	assert.Equal(t, []Field{1091}, p.Alternatives(1009))
	assert.Empty(t, p.Alternatives(1091))
	assert.Equal(t, []Field{155}, p.Alternatives(157))
	assert.Contains(t, p.Fields(ClassProfiling, true), Field(1005))
	assert.NotContains(t, p.Fields(ClassProfiling, true), Field(1009), "PCIe bytes do not exist on MIG")
}

func TestDevicesAreBounded(t *testing.T) {
	tr := NewTracker(NewPlan(nil, nil))
	in := read(0)
	in.Devices = nil
	for i := range MaxDevices + 7 {
		in.Devices = append(in.Devices, DeviceReading{Device: card(fmt.Sprint("GPU-", i)), Samples: []Sample{{Field: 203, Link: None, At: sec(0), Value: Int(1)}}})
	}
	r := tr.Take(in)
	balanced(t, r)
	assert.Len(t, r.Devices, MaxDevices)
	assert.Equal(t, 7, r.Overflow)
	assert.Equal(t, 7, r.Dropped[ReasonOther])
}

func TestOneOwnerNamesTheDeviceSeveralAreAllocations(t *testing.T) {
	tr := NewTracker(NewPlan(nil, nil))
	in := read(0)
	in.Devices[0].Owners = []Owner{{"ns", "a", "c"}}
	r := tr.Take(in)
	assert.Equal(t, &Owner{"ns", "a", "c"}, r.Devices[0].Owner)
	assert.Empty(t, find(r, MetricAllocation))
	in = read(10)
	in.Devices[0].Owners = []Owner{{"ns", "a", "c"}, {"ns", "b", "c"}}
	r = tr.Take(in)
	assert.Nil(t, r.Devices[0].Owner)
	assert.Len(t, find(r, MetricAllocation), 2)
	assert.Len(t, find(r, MetricAllocation, AttrPod, "b"), 1)
}

func TestMIGIdentity(t *testing.T) {
	assert.Equal(t, "GPU-1/gi/7", InstanceID("", "GPU-1", 7))
	assert.Equal(t, "MIG-9", InstanceID("MIG-9", "GPU-1", 7))
	for in, want := range map[string]string{
		"NVIDIA H100 80GB HBM3 MIG 1g.10gb": "1g.10gb", "1g.5gb": "1g.5gb", "MIG 1c.3g.20gb": "1c.3g.20gb",
		"MIG 1g.10gb+me": "1g.10gb+me", "NVIDIA A100": "",
	} {
		assert.Equal(t, want, ProfileOf(in))
	}
}
