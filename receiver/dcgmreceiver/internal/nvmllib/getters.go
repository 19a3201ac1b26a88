//go:build cgo && linux && !nodcgm

package nvmllib

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// getter reads one or several fields with one NVML function. Values are reported in the DCGM field's unit.
type getter struct {
	symbol string
	fields []gpu.Field
	mig    bool // also on a MIG instance's handle
	read   func(nvml.Device) ([]gpu.Value, nvml.Return)
}

const mebi = 1 << 20

var getters = []getter{
	{symbol: "nvmlDeviceGetUtilizationRates", fields: []gpu.Field{203, 204}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		u, ret := d.GetUtilizationRates()
		return []gpu.Value{gpu.Int(int64(u.Gpu)), gpu.Int(int64(u.Memory))}, ret
	}},
	{symbol: "nvmlDeviceGetEncoderUtilization", fields: []gpu.Field{206}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		u, _, ret := d.GetEncoderUtilization()
		return one(u), ret
	}},
	{symbol: "nvmlDeviceGetDecoderUtilization", fields: []gpu.Field{207}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		u, _, ret := d.GetDecoderUtilization()
		return one(u), ret
	}},
	{symbol: "nvmlDeviceGetMemoryInfo_v2", mig: true, fields: []gpu.Field{250, 251, 252, 253}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		m, ret := d.GetMemoryInfo_v2()
		inMiB := func(b uint64) gpu.Value { return gpu.Double(float64(b) / mebi) }
		return []gpu.Value{inMiB(m.Total), inMiB(m.Free), inMiB(m.Used), inMiB(m.Reserved)}, ret
	}},
	clock(100, nvml.CLOCK_SM), clock(101, nvml.CLOCK_MEM), clock(102, nvml.CLOCK_VIDEO),
	maxClock(113, nvml.CLOCK_SM), maxClock(114, nvml.CLOCK_MEM),
	{symbol: "nvmlDeviceGetCurrentClocksEventReasons", fields: []gpu.Field{112}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		r, ret := d.GetCurrentClocksEventReasons()
		return []gpu.Value{gpu.Int(int64(r))}, ret
	}},
	{symbol: "nvmlDeviceGetPowerUsage", fields: []gpu.Field{155}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		mw, ret := d.GetPowerUsage()
		return []gpu.Value{gpu.Double(float64(mw) / 1000)}, ret
	}},
	{symbol: "nvmlDeviceGetEnforcedPowerLimit", fields: []gpu.Field{164}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		mw, ret := d.GetEnforcedPowerLimit()
		return []gpu.Value{gpu.Double(float64(mw) / 1000)}, ret
	}},
	{symbol: "nvmlDeviceGetTotalEnergyConsumption", fields: []gpu.Field{156}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		mj, ret := d.GetTotalEnergyConsumption()
		return []gpu.Value{gpu.Int(int64(mj))}, ret
	}},
	{symbol: "nvmlDeviceGetTemperature", fields: []gpu.Field{150}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		c, ret := d.GetTemperature(nvml.TEMPERATURE_GPU)
		return one(c), ret
	}},
	threshold(158, nvml.TEMPERATURE_THRESHOLD_SLOWDOWN), threshold(159, nvml.TEMPERATURE_THRESHOLD_SHUTDOWN),
	{symbol: "nvmlDeviceGetFanSpeed", fields: []gpu.Field{191}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		p, ret := d.GetFanSpeed()
		return one(p), ret
	}},
	ecc(310, nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC), ecc(311, nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC),
	ecc(312, nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.AGGREGATE_ECC), ecc(313, nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC),
	{symbol: "nvmlDeviceGetRowRemapperHistogram", fields: []gpu.Field{385, 386, 387, 388, 389}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		h, ret := d.GetRowRemapperHistogram()
		return []gpu.Value{gpu.Int(int64(h.Max)), gpu.Int(int64(h.High)), gpu.Int(int64(h.Partial)), gpu.Int(int64(h.Low)), gpu.Int(int64(h.None))}, ret
	}},
	pcie("nvmlDeviceGetPcieReplayCounter", 202, nvml.Device.GetPcieReplayCounter),
	pcie("nvmlDeviceGetCurrPcieLinkGeneration", 237, nvml.Device.GetCurrPcieLinkGeneration),
	pcie("nvmlDeviceGetMaxPcieLinkGeneration", 235, nvml.Device.GetMaxPcieLinkGeneration),
	pcie("nvmlDeviceGetCurrPcieLinkWidth", 238, nvml.Device.GetCurrPcieLinkWidth),
	pcie("nvmlDeviceGetMaxPcieLinkWidth", 236, nvml.Device.GetMaxPcieLinkWidth),
	{symbol: "nvmlDeviceGetPerformanceState", fields: []gpu.Field{190}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		p, ret := d.GetPerformanceState()
		if p == nvml.PSTATE_UNKNOWN && ret == nvml.SUCCESS {
			ret = nvml.ERROR_NO_DATA
		}
		return []gpu.Value{gpu.Int(int64(p))}, ret
	}},
}

// values are NVML fields (NVML_FI_DEV_*, nvml.h) that are read together with one nvmlDeviceGetFieldValues.
var values = []struct {
	field gpu.Field
	id    uint32
	all   bool // of all NVLink links: scope UINT_MAX
}{
	{field: 140, id: 82},
	{field: 390, id: 29},
	{field: 391, id: 30},
	{field: 392, id: 31},
	{field: 394, id: 142},
	{field: 393, id: 143},
	{field: 396, id: 144},
	{field: 395, id: 145},
	{field: 409, id: 38},
	{field: 419, id: 45},
	{field: 429, id: 52},
	{field: 439, id: 59},
	{field: 240, id: 74},
	{field: 241, id: 75},
	{field: 242, id: 76},
	{field: 243, id: 77},
	{field: 244, id: 78},
	{field: 245, id: 79},
	{field: 246, id: 80},
	{field: 247, id: 81},
	{field: 1420, id: 74},
	{field: 1421, id: 76},
	{field: 1422, id: 269},
	{field: 1423, id: 270},
	{field: 1424, id: 271},
	{field: 1501, id: 173},
	{field: 1523, id: 230},
	{field: 1201, id: 202, all: true},
	{field: 1203, id: 204, all: true}, // NVLink 5
}

func one(u uint32) []gpu.Value { return []gpu.Value{gpu.Int(int64(u))} }

func clock(f gpu.Field, c nvml.ClockType) getter {
	return getter{symbol: "nvmlDeviceGetClockInfo", fields: []gpu.Field{f}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		mhz, ret := d.GetClockInfo(c)
		return one(mhz), ret
	}}
}

func maxClock(f gpu.Field, c nvml.ClockType) getter {
	return getter{symbol: "nvmlDeviceGetMaxClockInfo", fields: []gpu.Field{f}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		mhz, ret := d.GetMaxClockInfo(c)
		return one(mhz), ret
	}}
}

func threshold(f gpu.Field, th nvml.TemperatureThresholds) getter {
	return getter{symbol: "nvmlDeviceGetTemperatureThreshold", fields: []gpu.Field{f}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		c, ret := d.GetTemperatureThreshold(th)
		return one(c), ret
	}}
}

func ecc(f gpu.Field, e nvml.MemoryErrorType, c nvml.EccCounterType) getter {
	return getter{symbol: "nvmlDeviceGetTotalEccErrors", fields: []gpu.Field{f}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		n, ret := d.GetTotalEccErrors(e, c)
		return []gpu.Value{gpu.Int(int64(n))}, ret
	}}
}

func pcie(symbol string, f gpu.Field, get func(nvml.Device) (int, nvml.Return)) getter {
	return getter{symbol: symbol, fields: []gpu.Field{f}, read: func(d nvml.Device) ([]gpu.Value, nvml.Return) {
		n, ret := get(d)
		return []gpu.Value{gpu.Int(int64(n))}, ret
	}}
}

// readDevice asks a device everything that the plan wants. A getter that a device does not support is asked three times and
// then left alone until the devices are listed again.
func (s *source) readDevice(d *device, now time.Time) (samples []gpu.Sample, lost bool) {
	add := func(f gpu.Field, v gpu.Value, why gpu.Reason) {
		if s.opts.Plan.Wants(f) {
			samples = append(samples, gpu.Sample{Field: f, Link: gpu.None, At: now, Value: v, Reason: why})
		}
	}
	for i := range getters {
		g := &getters[i]
		if d.id.IsMIG() && !g.mig || !s.wantsAny(g.fields) || d.misses[key(g)] >= tries || !s.lib.can(g.symbol) {
			continue
		}
		vs, ret := g.read(d.handle)
		lost = lost || ret == nvml.ERROR_GPU_IS_LOST
		d.count(key(g), ret)
		for j, f := range g.fields {
			add(f, vs[j], reasonOf(ret))
		}
	}
	if !d.id.IsMIG() && s.lib.can("nvmlDeviceGetFieldValues") {
		s.readFieldValues(d, add)
		samples = s.readLinks(d, now, samples)
	}
	s.readGPM(d, now, add)
	return samples, lost
}

const tries = 3

func key(g *getter) string { return g.symbol + g.fields[0].String() }

// count keeps how often in a row something was not supported.
func (d *device) count(what string, ret nvml.Return) {
	if reasonOf(ret) == gpu.ReasonNotSupported {
		d.misses[what]++
	} else {
		delete(d.misses, what)
	}
}

func (s *source) wantsAny(fields []gpu.Field) bool {
	for _, f := range fields {
		if s.opts.Plan.Wants(f) {
			return true
		}
	}
	return false
}

func (s *source) readFieldValues(d *device, add func(gpu.Field, gpu.Value, gpu.Reason)) {
	asked := make([]nvml.FieldValue, 0, len(values))
	fields := make([]int, 0, len(values))
	for i, v := range values {
		if !s.opts.Plan.Wants(v.field) || d.misses[v.field.String()] >= tries {
			continue
		}
		fv := nvml.FieldValue{FieldId: v.id}
		if v.all {
			fv.ScopeId = ^uint32(0)
		}
		asked, fields = append(asked, fv), append(fields, i)
	}
	if len(asked) == 0 {
		return
	}
	if ret := d.handle.GetFieldValues(asked); ret != nvml.SUCCESS {
		for _, i := range fields {
			d.count(values[i].field.String(), ret)
			add(values[i].field, gpu.Value{}, reasonOf(ret))
		}
		return
	}
	for j, i := range fields {
		ret := nvml.Return(asked[j].NvmlReturn)
		d.count(values[i].field.String(), ret)
		add(values[i].field, fieldValue(&asked[j]), reasonOf(ret))
	}
}

// readLinks reads the state of each NVLink link. The first link that does not exist ends the list.
func (s *source) readLinks(d *device, now time.Time, samples []gpu.Sample) []gpu.Sample {
	const linkState = gpu.Field(1508)
	if !s.opts.Plan.Wants(linkState) || d.misses["links"] >= tries || !s.lib.can("nvmlDeviceGetNvLinkState") {
		return samples
	}
	for link := range nvml.NVLINK_MAX_LINKS {
		state, ret := d.handle.GetNvLinkState(link)
		if ret != nvml.SUCCESS {
			if link == 0 {
				d.count("links", ret)
			}
			break
		}
		samples = append(samples, gpu.Sample{Field: linkState, Link: link, At: now, Value: gpu.Int(int64(state))})
	}
	return samples
}
