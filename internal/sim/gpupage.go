package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// gpuFamily is one DCGM field as dcgm-exporter prints it.
type gpuFamily struct {
	name, kind, help string
	value            func(GPU) string
}

const (
	mebi    = 1 << 20  // DCGM's memory is in MiB
	gpuHost = "llmsim" // the node that all GPUs are on
)

// gpuFamilies are the fields that the model knows, in the order of dcgm-exporter's default list (etc/default-counters.csv ), then the two
// that operators add for ratios. Names, types and help texts are the exporter's; fields of integers have no decimals, doubles have six.
var gpuFamilies = []gpuFamily{
	{"DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz).", func(g GPU) string { return integer(g.SMClock / 1e6) }},
	{"DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", func(g GPU) string { return integer(g.MemoryClock / 1e6) }},
	{"DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).", func(g GPU) string { return integer(g.Temperature) }},
	{"DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", func(g GPU) string { return double(g.Power) }},
	{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Total energy consumption since boot (in mJ).", func(g GPU) string { return integer(g.Energy * 1e3) }},
	{"DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", func(g GPU) string { return integer(g.Utilization * 100) }},
	{"DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", func(g GPU) string { return integer(float64(g.MemoryTotal-g.MemoryUsed) / mebi) }},
	{"DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).", func(g GPU) string { return integer(float64(g.MemoryUsed) / mebi) }},
	{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Ratio of time the graphics engine is active.", func(g GPU) string { return double(g.Utilization) }},
	{"DCGM_FI_PROF_SM_ACTIVE", "gauge", "The ratio of cycles an SM has at least 1 warp assigned.", func(g GPU) string { return double(g.SM) }},
	{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Ratio of cycles the tensor (HMMA) pipe is active.", func(g GPU) string { return double(g.Tensor) }},
	{"DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "Ratio of cycles the device memory interface is active sending or receiving data.", func(g GPU) string { return double(g.DRAM) }},
	{"DCGM_FI_DEV_FB_TOTAL", "gauge", "Framebuffer memory total (in MiB).", func(g GPU) string { return integer(float64(g.MemoryTotal) / mebi) }},
	{"DCGM_FI_DEV_POWER_MGMT_LIMIT", "gauge", "Current power management limit (in W).", func(g GPU) string { return double(g.PowerLimit) }},
}

func integer(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

func double(v float64) string { return strconv.FormatFloat(v, 'f', 6, 64) }

var gpuLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// gpuPage is what a dcgm-exporter on the installation's only node would serve.
func gpuPage(gpus []GPU) []byte {
	labels := make([]string, len(gpus))
	for i, g := range gpus {
		labels[i] = fmt.Sprintf(`gpu="%d",UUID="%s",pci_bus_id="00000000:%02X:00.0",device="nvidia%d",modelName="%s",Hostname="%s"`,
			i, gpuLabel.Replace(g.UUID), (0x1A+i)&0xFF, i, gpuLabel.Replace(g.Model), gpuHost)
	}
	var w strings.Builder
	for _, f := range gpuFamilies {
		fmt.Fprintf(&w, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		for i, g := range gpus {
			fmt.Fprintf(&w, "%s{%s} %s\n", f.name, labels[i], f.value(g))
		}
	}
	return []byte(w.String())
}
