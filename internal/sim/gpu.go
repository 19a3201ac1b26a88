package sim

import (
	"math"
	"time"
)

// GPU is what a board shows, with the meaning that DCGM's fields have: shares are averages over the last full second.
type GPU struct {
	Engine      string  `json:"engine"`
	UUID        string  `json:"uuid"`
	Model       string  `json:"model"`
	Utilization float64 `json:"utilization"`     // DCGM_FI_DEV_GPU_UTIL, here 0..1: time with any kernel
	SM          float64 `json:"sm_active"`       // DCGM_FI_PROF_SM_ACTIVE
	Tensor      float64 `json:"tensor_active"`   // DCGM_FI_PROF_PIPE_TENSOR_ACTIVE
	DRAM        float64 `json:"dram_active"`     // DCGM_FI_PROF_DRAM_ACTIVE
	SMClock     float64 `json:"sm_clock_hertz"`  // DCGM_FI_DEV_SM_CLOCK
	MemoryClock float64 `json:"mem_clock_hertz"` // DCGM_FI_DEV_MEM_CLOCK
	Power       float64 `json:"power_watts"`
	PowerLimit  float64 `json:"power_limit_watts"`
	Energy      float64 `json:"energy_joules"` // since the world began
	Temperature float64 `json:"temperature_celsius"`
	MemoryUsed  int64   `json:"memory_used_bytes"`
	MemoryTotal int64   `json:"memory_total_bytes"`
}

// load is what an engine makes its GPU do: the share of prefill in the running step, and how full the batch is.
type load struct {
	busy          bool
	prefill, fill float64
}

// gpu integrates loads and closes an account every second. The figures are ours: prefill keeps the tensor cores busy, decode
// the memory; power follows both; the clock drops when the limit is reached. vLLM takes its memory when it starts and gives it
// back when it dies; in between the use of memory does not move.
type gpu struct {
	spec GPUSpec
	uuid string
	last time.Duration

	busy, sm, tensor, dram float64 // seconds × share in the open second
	now                    GPU
}

const gpuMemoryShare = 0.92 // vLLM's gpu_memory_utilization

func newGPU(e Engine, uuid string) *gpu {
	g := &gpu{spec: e.GPU, uuid: "GPU-" + uuid}
	if e.GPU.UUID != "" {
		g.uuid = e.GPU.UUID
	}
	g.now = GPU{Temperature: 32}
	g.second()
	g.now.Energy = 0
	return g
}

// account adds the time since the last account, in which the load was l.
func (g *gpu) account(now time.Duration, l load) {
	d := (now - g.last).Seconds()
	g.last = now
	if !l.busy || d <= 0 {
		return
	}
	decode := 1 - l.prefill
	g.busy += d
	g.sm += d * (0.92*l.prefill + (0.35+0.4*math.Sqrt(l.fill))*decode)
	g.tensor += d * (0.62*l.prefill + (0.04+0.16*l.fill)*decode)
	g.dram += d * (0.28*l.prefill + (0.72-0.1*l.fill)*decode)
}

// second closes the account of a second.
func (g *gpu) second() {
	cut := func(v float64) float64 { return min(max(v, 0), 1) }
	n := &g.now
	n.Utilization, n.SM, n.Tensor, n.DRAM = cut(g.busy), cut(g.sm), cut(g.tensor), cut(g.dram)
	g.busy, g.sm, g.tensor, g.dram = 0, 0, 0, 0
	idle := g.spec.PowerLimit * 0.12
	wish := idle + g.spec.PowerLimit*(0.18*n.Utilization+0.15*n.SM+0.75*n.Tensor+0.35*n.DRAM)
	n.Power = min(wish, g.spec.PowerLimit)
	n.SMClock, n.MemoryClock = g.spec.MaxClock, g.spec.MemoryClock
	switch {
	case n.Utilization == 0:
		n.SMClock = g.spec.MaxClock * 0.17
	case wish > g.spec.PowerLimit:
		n.SMClock = g.spec.MaxClock * math.Cbrt(g.spec.PowerLimit/wish) // power grows with about the cube of the clock
	}
	n.Energy += n.Power
	n.Temperature += (30 + 0.055*n.Power - n.Temperature) * 0.05
}

func (g *gpu) view(engine string, up bool) GPU {
	v := g.now
	v.Engine, v.UUID, v.Model = engine, g.uuid, g.spec.Model
	v.PowerLimit, v.MemoryTotal = g.spec.PowerLimit, g.spec.MemoryBytes
	if up {
		v.MemoryUsed = int64(gpuMemoryShare * float64(g.spec.MemoryBytes))
	}
	return v
}
