package dcgmreceiver

import (
	"testing"
	"time"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// BenchmarkReport digests a reading of every default field of 8 GPUs and writes it as pdata.
func BenchmarkReport(b *testing.B) {
	plan := gpu.NewPlan(nil, nil)
	tracker := gpu.NewTracker(plan)
	now := time.Unix(scenarioStart, 0)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(10 * time.Second)
		in := &gpu.Reading{At: now, Clock: now, Step: time.Second}
		for g := range 8 {
			d := gpu.DeviceReading{Device: gpu.Device{ID: string(rune('a' + g)), Index: g, Minor: g, Instance: gpu.None, Model: "H100"}, State: gpu.StateOK, HealthKnown: true}
			for i := range plan.Mappings {
				m := &plan.Mappings[i]
				samples := 1
				if m.Class == gpu.ClassProfiling {
					samples = 10
				}
				for k := range samples {
					d.Samples = append(d.Samples, gpu.Sample{Field: m.Field, Link: gpu.None, At: now.Add(time.Duration(k-samples+1) * time.Second), Value: gpu.Int(1)})
				}
			}
			in.Devices = append(in.Devices, d)
		}
		n = toMetrics(tracker.Take(in), "1").DataPointCount()
	}
	b.ReportMetric(float64(n), "points/op")
}
