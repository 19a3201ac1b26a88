package llmsimextension

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver"
)

// gpuSeries are the values of one scrape by GPU, then by metric and attribute value.
func gpuSeries(md pmetric.Metrics) map[string]map[string]float64 {
	out := map[string]map[string]float64{}
	for _, rm := range md.ResourceMetrics().All() {
		id, ok := rm.Resource().Attributes().Get("hw.id")
		if !ok {
			continue
		}
		of := map[string]float64{}
		out[id.Str()] = of
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				var points pmetric.NumberDataPointSlice
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					points = m.Gauge().DataPoints()
				case pmetric.MetricTypeSum:
					points = m.Sum().DataPoints()
				default:
					continue
				}
				for _, dp := range points.All() {
					name := m.Name()
					for k, v := range dp.Attributes().All() {
						if k != "hw.id" && k != "hw.type" {
							name += " " + v.AsString()
						}
					}
					of[name] = dp.DoubleValue() + float64(dp.IntValue())
				}
			}
		}
	}
	return out
}

// The dcgm receiver reads the simulator as it reads a dcgm-exporter: the engine that serves has a busy GPU, the other one rests.
func TestTheDCGMReceiverSeesTheGPUsUnderLoad(t *testing.T) {
	s, url := started(t, "", nil, func(c *Config) {
		c.Rate = 200
		c.Engines = append([]EngineConfig{}, c.Engines...)
		c.Engines[0].Weight, c.Engines[1].Weight = 1, 0.000001
		c.Engines[0].GPU.UUID, c.Engines[1].GPU.UUID = "GPU-busy", "GPU-idle"
	})
	t.Cleanup(func() { require.NoError(t, s.Shutdown(context.Background())) })
	require.NoError(t, s.Ready())

	f := dcgmreceiver.NewFactory()
	cfg := f.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"source": "dcgm_exporter", "endpoint": url + "/dcgm/metrics", "collection_interval": "1s", "pod_resources_socket": "",
	}).Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	sink := &consumertest.MetricsSink{}
	r, err := f.CreateMetrics(t.Context(), receivertest.NewNopSettings(f.Type()), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })

	var got map[string]map[string]float64
	require.Eventually(t, func() bool {
		all := sink.AllMetrics()
		if len(all) == 0 {
			return false
		}
		got = gpuSeries(all[len(all)-1])
		return got["GPU-busy"]["hw.gpu.utilization general"] > 0.1
	}, time.Minute, 50*time.Millisecond, "last scrape: %v", &got)

	busy, idle := got["GPU-busy"], got["GPU-idle"]
	for _, name := range []string{
		"hw.gpu.utilization general", "nvidia.gpu.engine.utilization", "nvidia.gpu.sm.utilization", "nvidia.gpu.pipe.utilization tensor",
		"nvidia.gpu.memory.bandwidth.utilization",
	} {
		assert.Positive(t, busy[name], name)
		v, ok := idle[name]
		assert.True(t, ok, name)
		assert.Zero(t, v, name)
	}
	assert.Greater(t, busy["hw.power"], 1.3*idle["hw.power"])
	assert.Greater(t, busy["nvidia.gpu.clock.frequency sm"], idle["nvidia.gpu.clock.frequency sm"])

	// Units: the simulator's own view is in bytes and watts.
	var truth []sim.GPU
	_, body := get(t, url+"/sim/gpu")
	require.NoError(t, json.Unmarshal([]byte(body), &truth))
	require.Len(t, truth, 2)
	for _, g := range truth {
		of := got[g.UUID]
		assert.InDelta(t, g.MemoryTotal, of["hw.gpu.memory.limit"], 1<<20)
		assert.InDelta(t, g.MemoryUsed, of["hw.gpu.memory.usage"], 1<<20)
		assert.InDelta(t, g.PowerLimit, of["nvidia.gpu.power.limit"], 0.001)
		assert.InDelta(t, g.MemoryClock, of["nvidia.gpu.clock.frequency memory"], 1e6)
		for _, doubt := range []string{"profiling_zero", "counter_backwards", "shared", "frozen"} {
			v, ok := of["nvidia.gpu.suspect "+doubt]
			assert.True(t, ok, doubt)
			assert.Zero(t, v, doubt)
		}
	}
}
