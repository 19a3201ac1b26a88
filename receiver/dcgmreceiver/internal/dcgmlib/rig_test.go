//go:build cgo && linux && !nodcgm

package dcgmlib

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/simlib"
)

// The scenario's clock: 2026-01-01T00:00:00Z. Tests move it and their own with it.
const start = 1767225600

const busy, idle = "GPU-00000000-0000-0000-0000-000000000001", "GPU-00000000-0000-0000-0000-000000000002"

func h100s(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "two_h100.scenario"))
	require.NoError(t, err)
	return string(b)
}

// rig is a source on a simulated engine, with a tracker behind it.
type rig struct {
	t       *testing.T
	src     *source
	tracker *gpu.Tracker
	text    string
	at      float64
}

func newRig(t *testing.T, text string, opts ...func(*Options)) *rig {
	t.Helper()
	plan := gpu.NewPlan(nil, nil)
	o := Options{Address: "localhost:5555", Health: true, Interval: 10 * time.Second, Profiling: time.Second, Plan: plan}
	for _, f := range opts {
		f(&o)
	}
	r := &rig{t: t, text: text, tracker: gpu.NewTracker(o.Plan)}
	o.Now = r.now
	r.src = New(o).(*source)
	t.Cleanup(func() { require.NoError(t, r.src.Close()) })
	r.world(0)
	return r
}

// world moves the clock to second s after the start and replaces lines of the scenario.
func (r *rig) world(s float64, edits ...string) {
	r.t.Helper()
	r.at = s
	r.text = simlib.Edit(r.text, append([]string{"now ", fmt.Sprintf("now %d", int64((start+s)*1e6))}, edits...)...)
	simlib.DCGM(r.t, r.text)
}

func (r *rig) now() time.Time { return time.UnixMicro(int64((start + r.at) * 1e6)) }

func (r *rig) open() { r.t.Helper(); require.NoError(r.t, r.src.Open(context.Background())) }

func (r *rig) read() *gpu.Reading {
	r.t.Helper()
	out, err := r.src.Read(context.Background(), r.now())
	require.NoError(r.t, err)
	return out
}

// step moves the clock and reads.
func (r *rig) step(s float64, edits ...string) *gpu.Report {
	r.t.Helper()
	r.world(s, edits...)
	rep := r.tracker.Take(r.read())
	sum := rep.Used
	for _, n := range rep.Dropped {
		sum += n
	}
	require.Equal(r.t, rep.Values, sum, "values in = used + dropped")
	return rep
}

func value(t *testing.T, rep *gpu.Report, id, metric string, kv ...string) (float64, bool) {
	t.Helper()
	for _, d := range rep.Devices {
		if d.Device.ID != id {
			continue
		}
	next:
		for _, p := range d.Points {
			if p.Metric.Name != metric {
				continue
			}
			for i := 0; i < len(kv); i += 2 {
				if !slices.ContainsFunc(p.Attrs, func(a gpu.Attr) bool {
					return a.Key == kv[i] && (a.Str == kv[i+1] || a.IsInt && fmt.Sprint(a.Int) == kv[i+1])
				}) {
					continue next
				}
			}
			return p.Value.Float(), true
		}
	}
	return 0, false
}

func want(t *testing.T, expected float64, rep *gpu.Report, id, metric string, kv ...string) {
	t.Helper()
	v, ok := value(t, rep, id, metric, kv...)
	if assert.True(t, ok, "no %s %v for %s", metric, kv, id) {
		assert.InDelta(t, expected, v, 1e-6*max(1, expected), "%s %v", metric, kv)
	}
}

func absent(t *testing.T, rep *gpu.Report, id, metric string, kv ...string) {
	t.Helper()
	v, ok := value(t, rep, id, metric, kv...)
	assert.False(t, ok, "%s %v for %s is %v", metric, kv, id, v)
}

// leftovers are what the engine still has of ours.
func leftovers(t *testing.T) string {
	t.Helper()
	v, err := dcgm.GetHostengineVersionInfo()
	require.NoError(t, err)
	return strings.TrimPrefix(v.RawBuildInfoString, "version:4.6.1;")
}
