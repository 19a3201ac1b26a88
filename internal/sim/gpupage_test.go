package sim

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gpuSample is a line of a page: name, labels, value.
var (
	gpuSample    = regexp.MustCompile(`^(DCGM_\w+)\{(.*)\} (\S+)$`)
	gpuLabelName = regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)
)

func labelNames(s string) (names []string) {
	for _, m := range gpuLabelName.FindAllStringSubmatch(s, -1) {
		names = append(names, m[1])
	}
	return names
}

// gpuShape is what a page says beside its values: HELP and TYPE by family, the number of decimals of its values, and the label names of its series.
func gpuShape(page string) (heads map[string][]string, decimals map[string]int, labels map[string][]string) {
	heads, decimals, labels = map[string][]string{}, map[string]int{}, map[string][]string{}
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		if m := gpuSample.FindStringSubmatch(line); m != nil {
			_, fraction, _ := strings.Cut(m[3], ".")
			decimals[m[1]], labels[m[1]] = len(fraction), labelNames(m[2])
		} else if f := strings.Fields(line); len(f) > 2 && f[0] == "#" {
			heads[f[2]] = append(heads[f[2]], line)
		}
	}
	return heads, decimals, labels
}

func TestGPUPageIsADCGMExportersPage(t *testing.T) {
	raw, err := os.ReadFile("testdata/dcgm-exporter-fragments.prom")
	require.NoError(t, err)
	wantHeads, wantDecimals, wantLabels := gpuShape(string(raw))
	w, err := New(DefaultConfig(), start)
	require.NoError(t, err)
	w.Advance(10 * time.Second)
	heads, decimals, labels := gpuShape(string(w.GPUPage()))
	require.Len(t, heads, len(gpuFamilies))
	compared := 0
	for name, want := range wantHeads {
		if heads[name] == nil {
			continue
		}
		compared++
		assert.Equal(t, want, heads[name])
		assert.Equal(t, wantDecimals[name], decimals[name], "decimals of %s", name)
	}
	assert.Equal(t, 4, compared)
	// Every label is one that the exporter has, and in its order.
	order := wantLabels["DCGM_FI_PROF_GR_ENGINE_ACTIVE"]
	for name, got := range labels {
		at := 0
		for _, l := range got {
			for at < len(order) && order[at] != l {
				at++
			}
			assert.Less(t, at, len(order), "%s: label %s", name, l)
		}
		assert.Equal(t, labels["DCGM_FI_DEV_GPU_UTIL"], got, name)
	}
}

func TestGPUPageEscapesWhatTheConfigurationNames(t *testing.T) {
	page := string(gpuPage([]GPU{{UUID: "a\"b\\c\nd", Model: "m"}}))
	assert.Contains(t, page, `UUID="a\"b\\c\nd",`)
	assert.Equal(t, 3*len(gpuFamilies), strings.Count(page, "\n"), "no line is torn")
}

// gpuValues are the values of each GPU by family.
func gpuValues(t *testing.T, page []byte) map[string][]float64 {
	t.Helper()
	out := map[string][]float64{}
	for line := range strings.Lines(string(page)) {
		if m := gpuSample.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			v, err := strconv.ParseFloat(m[3], 64)
			require.NoError(t, err)
			out[m[1]] = append(out[m[1]], v)
		}
	}
	return out
}

// watchGPU reads the page of the first GPU after each second and returns the sum by family, and the last page.
func watchGPU(t *testing.T, w *World, n int) (sum map[string]float64, last map[string][]float64) {
	t.Helper()
	sum = map[string]float64{}
	for range n {
		w.Advance(w.Now() + time.Second)
		last = gpuValues(t, w.GPUPage())
		for name, v := range last {
			sum[name] += v[0]
		}
	}
	return sum, last
}

// calls is a world with one engine without jitter that gets n equal calls at once.
func calls(t *testing.T, n, prompt, out int) *World {
	t.Helper()
	w, err := New(only(func(c *Config) { c.Engines[0].StepJitter = 0 }), start)
	require.NoError(t, err)
	for range n {
		_, err := w.Submit(plain(w.engines[0].Model, prompt, out))
		require.NoError(t, err)
	}
	return w
}

func TestAnIdleGPURests(t *testing.T) {
	w := calls(t, 0, 0, 0)
	sum, last := watchGPU(t, w, 60)
	for _, name := range []string{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"} {
		assert.Zero(t, sum[name], name)
	}
	spec := w.engines[0].GPU
	assert.Less(t, last["DCGM_FI_DEV_POWER_USAGE"][0], 0.2*spec.PowerLimit)
	assert.Less(t, last["DCGM_FI_DEV_SM_CLOCK"][0], 0.5*spec.MaxClock/1e6)
	assert.InDelta(t, gpuMemoryShare*float64(spec.MemoryBytes)/mebi, last["DCGM_FI_DEV_FB_USED"][0], 1, "vLLM has taken its memory")
}

// The GPU is busy exactly while the engine computes: its seconds of utilisation are the prefill and the decode of the truth.
func TestUtilisationIsTheTimeThatTheEngineComputes(t *testing.T) {
	w := calls(t, 1, 400, 1500)
	sum, last := watchGPU(t, w, 30)
	truths := w.Drain().Truths
	require.Len(t, truths, 1)
	q := truths[0].Sequences[0]
	computed := (q.Prefill + q.Decode).Float()
	require.Greater(t, computed, 5.0)
	assert.InEpsilon(t, computed, sum["DCGM_FI_PROF_GR_ENGINE_ACTIVE"], 0.01)
	assert.InEpsilon(t, computed, sum["DCGM_FI_DEV_GPU_UTIL"]/100, 0.02)
	assert.InEpsilon(t, sum["DCGM_FI_DEV_POWER_USAGE"]*1e3, last["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"][0], 0.001, "energy is power over time")
	assert.InDelta(t, last["DCGM_FI_DEV_FB_TOTAL"][0], last["DCGM_FI_DEV_FB_USED"][0]+last["DCGM_FI_DEV_FB_FREE"][0], 1)
}

func TestPrefillWorksTheTensorCoresAndDecodeTheMemory(t *testing.T) {
	busy := func(w *World) func(name string) float64 {
		sum, _ := watchGPU(t, w, 120)
		require.Positive(t, sum["DCGM_FI_PROF_GR_ENGINE_ACTIVE"])
		return func(name string) float64 { return sum[name] / sum["DCGM_FI_PROF_GR_ENGINE_ACTIVE"] }
	}
	prefill, decode, full := busy(calls(t, 200, 6000, 2)), busy(calls(t, 1, 20, 1500)), busy(calls(t, 200, 20, 1500))
	assert.Greater(t, prefill("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), 3*decode("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"))
	assert.Greater(t, decode("DCGM_FI_PROF_DRAM_ACTIVE"), 2*prefill("DCGM_FI_PROF_DRAM_ACTIVE"))
	assert.Greater(t, full("DCGM_FI_PROF_SM_ACTIVE"), 1.5*decode("DCGM_FI_PROF_SM_ACTIVE"), "a full batch against one sequence")
	assert.Greater(t, prefill("DCGM_FI_PROF_SM_ACTIVE"), full("DCGM_FI_PROF_SM_ACTIVE"))
}

func TestADeadEngineLeavesItsGPU(t *testing.T) {
	w, err := New(only(func(c *Config) {
		c.Rate = 20
		c.Faults = []Fault{{Kind: FaultEngineCrash, At: 10 * time.Second, For: 10 * time.Second}}
	}), start)
	require.NoError(t, err)
	_, before := watchGPU(t, w, 9)
	_, dead := watchGPU(t, w, 6)
	_, after := watchGPU(t, w, 20)
	for name, alive := range map[string]map[string][]float64{"before": before, "after": after} {
		assert.Positive(t, alive["DCGM_FI_DEV_GPU_UTIL"][0], name)
		assert.Positive(t, alive["DCGM_FI_DEV_FB_USED"][0], name)
	}
	assert.Zero(t, dead["DCGM_FI_DEV_GPU_UTIL"][0])
	assert.Zero(t, dead["DCGM_FI_DEV_FB_USED"][0])
	assert.InDelta(t, dead["DCGM_FI_DEV_FB_TOTAL"][0], dead["DCGM_FI_DEV_FB_FREE"][0], 1)
}
