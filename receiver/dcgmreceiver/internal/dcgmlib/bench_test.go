//go:build cgo && linux && !nodcgm

package dcgmlib

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/simlib"
)

// BenchmarkRead reads every default field of 8 GPUs: the latest values, ten samples of each hardware counter, health and
// XIDs. The simulated engine's own time is part of it; a real one spends that in another process.
func BenchmarkRead(b *testing.B) {
	text := h100s(b)
	var all strings.Builder
	all.WriteString(regexp.MustCompile(`(?m)^(gpu|field (gpu|link):1\S*) .*\n`).ReplaceAllString(text, ""))
	for g := range 8 {
		fmt.Fprintf(&all, "gpu %d\n", g)
		if g == 0 {
			continue
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "field gpu:0 ") || strings.HasPrefix(line, "field link:0/") {
				line = strings.Replace(strings.Replace(line, "gpu:0", fmt.Sprint("gpu:", g), 1), "link:0", fmt.Sprint("link:", g), 1)
				all.WriteString(strings.Replace(line, "000000000001", fmt.Sprintf("%012d", g+1), 1))
			}
		}
	}
	scenario := all.String()
	at := 0
	world := func() {
		simlib.DCGM(b, simlib.Edit(scenario, "now ", fmt.Sprintf("now %d", int64(start+at)*1e6)))
	}
	world()
	plan := gpu.NewPlan(nil, nil)
	now := func() time.Time { return time.Unix(int64(start+at), 0) }
	src := New(Options{Address: "localhost:5555", Health: true, Interval: 10 * time.Second, Profiling: time.Second, Plan: plan, Now: now})
	if err := src.Open(context.Background()); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	tracker := gpu.NewTracker(plan)
	points := 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		at += 10
		world()
		b.StartTimer()
		in, err := src.Read(context.Background(), now())
		if err != nil {
			b.Fatal(err)
		}
		rep := tracker.Take(in)
		points = 0
		for i := range rep.Devices {
			points += len(rep.Devices[i].Points)
		}
	}
	b.ReportMetric(float64(points), "points/op")
}
