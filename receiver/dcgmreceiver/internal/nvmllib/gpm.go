//go:build cgo && linux && !nodcgm

package nvmllib

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// gpmState keeps two samples of a device's hardware counters: a value is what happened between them.
type gpmState struct {
	samples [2]nvml.GpmSample
	taken   int
	at      time.Time
}

// gpmFields are GPM's metrics under the DCGM fields that DCGM itself reads from them (DcgmGpmManager.cpp). GPM counts
// in percent and MiB/s.
var gpmFields = []struct {
	metric nvml.GpmMetricId
	field  gpu.Field
	scale  float64
	mig    bool
}{
	{nvml.GPM_METRIC_GRAPHICS_UTIL, 1001, 0.01, true},
	{nvml.GPM_METRIC_SM_UTIL, 1002, 0.01, true},
	{nvml.GPM_METRIC_SM_OCCUPANCY, 1003, 0.01, true},
	{nvml.GPM_METRIC_ANY_TENSOR_UTIL, 1004, 0.01, true},
	{nvml.GPM_METRIC_DRAM_BW_UTIL, 1005, 0.01, true},
	{nvml.GPM_METRIC_FP64_UTIL, 1006, 0.01, true},
	{nvml.GPM_METRIC_FP32_UTIL, 1007, 0.01, true},
	{nvml.GPM_METRIC_FP16_UTIL, 1008, 0.01, true},
	{nvml.GPM_METRIC_PCIE_TX_PER_SEC, 1009, mebi, false},
	{nvml.GPM_METRIC_PCIE_RX_PER_SEC, 1010, mebi, false},
	{nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, 1011, mebi, false},
	{nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, 1012, mebi, false},
	{nvml.GPM_METRIC_IMMA_TENSOR_UTIL, 1013, 0.01, true},
	{nvml.GPM_METRIC_HMMA_TENSOR_UTIL, 1014, 0.01, true},
	{nvml.GPM_METRIC_DFMA_TENSOR_UTIL, 1015, 0.01, true},
	{nvml.GPM_METRIC_INTEGER_UTIL, 1016, 0.01, true},
	{nvml.GPM_METRIC_C2C_TOTAL_TX_PER_SEC, 1076, mebi, false},
	{nvml.GPM_METRIC_C2C_TOTAL_RX_PER_SEC, 1078, mebi, false},
}

// minGPMGap is the least time between two samples for which NVML gives metrics.
const minGPMGap = 100 * time.Millisecond

// openGPM prepares a device whose hardware counters can be read: Hopper and later, of a GPU and of its MIG instances.
func (s *source) openGPM(d *device) {
	wanted := false
	for _, g := range gpmFields {
		wanted = wanted || s.opts.Plan.Wants(g.field)
	}
	if !wanted || d.lost || !s.lib.can("nvmlGpmQueryDeviceSupport") || !s.lib.can("nvmlGpmMetricsGet") {
		return
	}
	of := d.handle
	if d.id.IsMIG() {
		of = d.parent
		if !s.lib.can("nvmlGpmMigSampleGet") {
			return
		}
	}
	support, ret := of.GpmQueryDeviceSupport()
	if ret != nvml.SUCCESS || support.IsSupportedDevice == 0 {
		s.note("gpm_"+d.id.Model, "this GPU's hardware counters need a DCGM host engine: SM, pipe and DRAM activity are missing",
			"NVML offers them on Hopper and later; model "+d.id.Model)
		return
	}
	st := &gpmState{}
	for i := range st.samples {
		sample, ret := s.lib.GpmSampleAlloc()
		if ret != nvml.SUCCESS {
			st.free()
			return
		}
		st.samples[i] = sample
	}
	d.gpm = st
}

func (g *gpmState) free() {
	for i, s := range g.samples {
		if s != nil {
			_ = s.Free()
			g.samples[i] = nil
		}
	}
}

// readGPM takes a sample and reads the metrics between it and the one before.
func (s *source) readGPM(d *device, now time.Time, add func(gpu.Field, gpu.Value, gpu.Reason)) {
	g := d.gpm
	if g == nil || (g.taken > 0 && now.Sub(g.at) < minGPMGap) {
		return
	}
	next := g.samples[g.taken%2]
	var ret nvml.Return
	if d.id.IsMIG() {
		ret = next.MigGet(d.parent, d.id.Instance)
	} else {
		ret = next.Get(d.handle)
	}
	if ret != nvml.SUCCESS {
		g.taken = 0 // the sample before is no neighbour of the next one
		return
	}
	g.taken, g.at = g.taken+1, now
	if g.taken < 2 {
		return
	}
	ask := nvml.GpmMetricsGetType{Sample1: g.samples[g.taken%2], Sample2: next}
	var which []int
	for i, f := range gpmFields {
		if s.opts.Plan.Wants(f.field) && (f.mig || !d.id.IsMIG()) && d.misses[f.field.String()] < tries {
			ask.Metrics[len(which)].MetricId = uint32(f.metric)
			which = append(which, i)
		}
	}
	ask.NumMetrics = uint32(len(which))
	if len(which) == 0 {
		return
	}
	if ret := s.lib.GpmMetricsGet(&ask); ret != nvml.SUCCESS {
		for _, i := range which {
			add(gpmFields[i].field, gpu.Value{}, reasonOf(ret))
		}
		return
	}
	for j, i := range which {
		f := &gpmFields[i]
		ret := nvml.Return(ask.Metrics[j].NvmlReturn)
		d.count(f.field.String(), ret)
		add(f.field, gpu.Double(ask.Metrics[j].Value*f.scale), reasonOf(ret))
	}
}
