package distribution_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// series are the values of the page's lines with this name, by the value of a label.
func series(page, name, label string) map[string]string {
	out := map[string]string{}
	line := regexp.MustCompile(`(?m)^` + name + `\{(?:[^}]*,)?` + label + `="([^"]*)"[^}]*\} (\S+)`)
	for _, m := range line.FindAllStringSubmatch(page, -1) {
		out[m[1]] = m[2]
	}
	return out
}

// Without a GPU or an engine the demonstration has the figures of all three on one page: requests, engines, and the GPUs under them.
func TestDemoShowsRequestsEnginesAndGPUs(t *testing.T) {
	s := startConfig(t, binary(t), "demo", nil)
	busy := func(v string) bool { return v != "0" && v != "0.0" && v != "" }
	var page string
	require.Eventually(t, func() bool {
		code, body, err := get(s.metrics)
		page = body
		if err != nil || code != http.StatusOK || sum(body, "llm_requests_total") == 0 {
			return false
		}
		gpus := series(body, "nvidia_gpu_sm_utilization_ratio", "hw_id")
		for _, v := range gpus {
			if !busy(v) {
				return false
			}
		}
		return len(gpus) == 2 && len(series(body, "llm_engine_output_tokens_total", "service_instance_id")) == 2
	}, patience, 200*time.Millisecond, "requests, two engines, and two busy GPUs at /metrics")
	for _, name := range []string{
		"hw_gpu_utilization_ratio", "nvidia_gpu_memory_bandwidth_utilization_ratio", "nvidia_gpu_pipe_utilization_ratio", "hw_power_watts", "hw_energy_joules_total",
		"hw_temperature_celsius", "hw_gpu_memory_usage_bytes", "hw_gpu_memory_limit_bytes", "nvidia_gpu_clock_frequency_hertz",
	} {
		of := series(page, name, "hw_id")
		assert.Len(t, of, 2, name)
		for id, v := range of {
			assert.True(t, busy(v), "%s of %s is %s", name, id, v)
		}
	}
	assert.Equal(t, map[string]string{"ok": "1"}, series(page, "dcgm_up_ratio", "dcgm_state"))
	assert.Equal(t, map[string]string{"ok": "1"}, series(page, "llm_engine_up_ratio", "llm_engine_state"))
	_, truth, err := get(s.sim + "/sim/gpu")
	require.NoError(t, err)
	for id := range series(page, "hw_power_watts", "hw_id") {
		assert.Contains(t, truth, id)
	}
	s.stop(t)
	assert.Empty(t, strings.TrimSpace(s.Output()), "nothing to warn about")
}
