//go:build cgo && linux && !nodcgm

package nvmllib

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/simlib"
)

const start = 1767225600

const busy, idle = "GPU-00000000-0000-0000-0000-000000000001", "GPU-00000000-0000-0000-0000-000000000002"

type rig struct {
	t       *testing.T
	src     *source
	tracker *gpu.Tracker
	text    string
	at      float64
}

func h100s(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "two_h100.nvml"))
	require.NoError(t, err)
	return string(b)
}

func newRig(t *testing.T, text string) *rig {
	t.Helper()
	r := &rig{t: t, text: text}
	plan := gpu.NewPlan(nil, nil)
	r.src = New(Options{Interval: 10 * time.Second, Plan: plan, Now: r.now}).(*source)
	r.tracker = gpu.NewTracker(plan)
	r.world(0)
	t.Cleanup(func() {
		require.NoError(t, r.src.Close())
		assert.Equal(t, "inits:0;sets:0;samples:0", leftovers(t))
	})
	return r
}

func (r *rig) world(s float64, edits ...string) {
	r.t.Helper()
	r.at = s
	r.text = simlib.Edit(r.text, append([]string{"now ", fmt.Sprintf("now %d", int64((start+s)*1e6))}, edits...)...)
	simlib.NVML(r.t, r.text)
}

func (r *rig) now() time.Time { return time.UnixMicro(int64((start + r.at) * 1e6)) }

func (r *rig) open() { r.t.Helper(); require.NoError(r.t, r.src.Open(context.Background())) }

func (r *rig) step(s float64, edits ...string) *gpu.Report {
	r.t.Helper()
	r.world(s, edits...)
	in, err := r.src.Read(context.Background(), r.now())
	require.NoError(r.t, err)
	rep := r.tracker.Take(in)
	sum := rep.Used
	for _, n := range rep.Dropped {
		sum += n
	}
	require.Equal(r.t, rep.Values, sum)
	return rep
}

func value(rep *gpu.Report, id, metric string, kv ...string) (float64, bool) {
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
	v, ok := value(rep, id, metric, kv...)
	if assert.True(t, ok, "no %s %v for %s", metric, kv, id) {
		assert.InDelta(t, expected, v, 1e-6*max(1, expected), "%s %v", metric, kv)
	}
}

func absent(t *testing.T, rep *gpu.Report, id, metric string) {
	t.Helper()
	v, ok := value(rep, id, metric)
	assert.False(t, ok, "%s for %s is %v", metric, id, v)
}

// leftovers are what the driver still has of ours, besides the use of it that asks.
func leftovers(t *testing.T) string {
	t.Helper()
	v, ret := nvml.SystemGetNVMLVersion()
	require.Equal(t, nvml.SUCCESS, ret)
	return v
}

func TestTwoGPUs(t *testing.T) {
	r := newRig(t, h100s(t))
	r.open()
	rep := r.step(10)
	require.Len(t, rep.Devices, 2)
	assert.Equal(t, gpu.Device{
		ID: busy, UUID: busy, Index: 0, Minor: 0, Instance: gpu.None, Name: "nvidia0", Model: "NVIDIA H100 80GB HBM3",
		Serial: "1651423000000", Driver: "580.65.06", BusID: "00000000:1A:00.0",
	}, *rep.Devices[0].Device)
	want(t, 0.97, rep, busy, "hw.gpu.utilization", gpu.AttrTask, "general")
	want(t, 73728*1048576, rep, busy, "hw.gpu.memory.usage")
	want(t, 612.5, rep, busy, "hw.power")
	want(t, 72, rep, busy, "hw.temperature", gpu.AttrSensor, "memory")
	want(t, 3, rep, busy, "hw.errors", gpu.AttrErrorType, "corrected")
	want(t, 1, rep, busy, "nvidia.gpu.nvlink.link.up", gpu.AttrNVLink, "1")
	want(t, 1, rep, busy, "hw.status", gpu.AttrState, gpu.HWOK)
	absent(t, rep, busy, "nvidia.gpu.sm.utilization")
	absent(t, rep, busy, "nvidia.gpu.health")
	rep = r.step(20)
	want(t, 0.88, rep, busy, "nvidia.gpu.sm.utilization")
	want(t, 0, rep, busy, "hw.gpu.io", gpu.AttrDirection, "transmit", gpu.AttrLink, "pcie")
	rep = r.step(30)
	want(t, 12e9, rep, busy, "hw.gpu.io", gpu.AttrDirection, "transmit", gpu.AttrLink, "pcie")
}

func TestWhatIsNotSupportedIsLeftAloneAfterAWhile(t *testing.T) {
	r := newRig(t, regexp.MustCompile(`(?m)^set \d (fan|enc|gpm\d*|spare|fv173) .*\n`).ReplaceAllString(h100s(t), ""))
	r.open()
	first := r.step(10)
	require.Positive(t, first.Dropped[gpu.ReasonNotSupported])
	var rep *gpu.Report
	for s := 20.0; s < 60; s += 10 {
		rep = r.step(s)
	}
	assert.Empty(t, rep.Dropped)
	absent(t, rep, busy, "nvidia.gpu.sm.utilization")
	in, err := r.src.Read(context.Background(), r.now())
	require.NoError(t, err)
	require.Len(t, in.Notes, 1, "an older GPU has no hardware counters here; said once")
	assert.Contains(t, in.Notes[0].Message, "need a DCGM host engine")
}

func TestAnOldDriverLacksFunctions(t *testing.T) {
	r := newRig(t, h100s(t))
	r.open()
	r.src.lib.has["nvmlDeviceGetMemoryInfo_v2"] = false // as if the loader had not found it
	r.src.lib.has["nvmlDeviceGetFieldValues"] = false
	rep := r.step(10)
	absent(t, rep, busy, "hw.gpu.memory.usage")
	want(t, 0.97, rep, busy, "hw.gpu.utilization", gpu.AttrTask, "general")
}

func TestLibraryAndDriverMissing(t *testing.T) {
	s := New(Options{Plan: gpu.NewPlan(nil, nil), Library: "/nonexistent/libnvidia-ml.so.1"})
	err := s.Open(context.Background())
	require.Equal(t, gpu.SourceNoLibrary, gpu.ConditionOf(err))
	require.NoError(t, s.Close())

	r := newRig(t, h100s(t)+"init 9\n")
	for range 3 {
		require.Equal(t, gpu.SourceNoDriver, gpu.ConditionOf(r.src.Open(context.Background())))
		require.NoError(t, r.src.Close())
	}
	r.world(10, "init ", "init 0")
	r.open()
	want(t, 0.97, r.step(20), busy, "hw.gpu.utilization", gpu.AttrTask, "general")
}

func TestLostGPU(t *testing.T) {
	r := newRig(t, h100s(t))
	r.open()
	r.step(10)
	rep := r.step(20, "lost ", "lost 1")
	for s := 30.0; s <= 90; s += 10 {
		want(t, 1, rep, idle, "hw.status", gpu.AttrState, gpu.HWFailed)
		absent(t, rep, idle, "hw.temperature")
		want(t, 0.97, rep, busy, "hw.gpu.utilization", gpu.AttrTask, "general")
		rep = r.step(s)
	}
	r.text = strings.ReplaceAll(r.text, "lost 1", "")
	r.step(130)
	want(t, 1, r.step(140), idle, "hw.status", gpu.AttrState, gpu.HWOK)
}

func TestXIDs(t *testing.T) {
	r := newRig(t, h100s(t)+"xid 1 0 31\n")
	r.open()
	assert.Empty(t, r.step(10).XIDs, "before we came")
	r.text += "xid 2 0 79\nxid 3 1 31\nxid 4 1 31\n"
	rep := r.step(20)
	require.Len(t, rep.XIDs, 3)
	want(t, 1, rep, busy, gpu.MetricXID, gpu.AttrXID, "79")
	want(t, 2, rep, idle, gpu.MetricXID, gpu.AttrXID, "31")
	assert.Empty(t, r.step(30).XIDs)
}

func TestMIG(t *testing.T) {
	text := h100s(t) + "mig 0 0 gi=7\nmig 0 1 gi=8\nmig 0 2 gi=9\nmig 0 3 gi=9\n" +
		"set 0/0 uuid MIG-7\nset 0/0 name NVIDIA H100 80GB HBM3 MIG 1g.10gb\nset 0/0 total 9984\nset 0/0 used 2048\nset 0/0 free 7000\nset 0/0 reserved 10\n" +
		"set 0/0 gpm2 50\nset 0/1 uuid MIG-8\nset 0/2 uuid MIG-9a\nset 0/3 uuid MIG-9b\n"
	r := newRig(t, text)
	r.open()
	r.step(10)
	rep := r.step(20)
	require.Len(t, rep.Devices, 5)
	want(t, 2048*1048576, rep, "MIG-7", "hw.gpu.memory.usage")
	want(t, 0.5, rep, "MIG-7", "nvidia.gpu.sm.utilization")
	d := rep.Devices[1].Device
	assert.Equal(t, busy, d.Parent)
	assert.Equal(t, 7, d.Instance)
	assert.Equal(t, "1g.10gb", d.Profile)
	assert.Equal(t, busy+"/gi/9", rep.Devices[3].Device.ID, "two compute instances share one GPU instance: neither UUID is its own")
	assert.Equal(t, map[gpu.MIGKey]string{{GPU: busy, Instance: 7}: "MIG-7", {GPU: busy, Instance: 8}: "MIG-8"}, MIGUUIDs())

	r.text += "xid 2 0 13 gi=8\n"
	require.Equal(t, "MIG-8", r.step(30).XIDs[0].Event.DeviceID)

	r.text = regexp.MustCompile(`(?m)^(mig .*|set 0/.*|xid .*)\n`).ReplaceAllString(r.text, "")
	r.step(70)
	require.Len(t, r.step(80).Devices, 2)
}

func TestRestartsLeakNothing(t *testing.T) {
	r := newRig(t, h100s(t))
	for i := range 240 {
		r.open()
		r.step(float64(30 * i))
		require.Equal(t, "inits:1;sets:1;samples:4", leftovers(t))
		require.NoError(t, r.src.Close())
		require.NoError(t, r.src.Close(), "twice is harmless")
	}
}

func TestCloseLeavesAHungCallAlone(t *testing.T) {
	r := newRig(t, h100s(t))
	r.open()
	r.world(10, "hang ", "hang nvmlDeviceGetUtilizationRates")
	done := make(chan error, 1)
	go func() {
		_, err := r.src.Read(context.Background(), r.now())
		done <- err
	}()
	require.Eventually(t, func() bool {
		if r.src.mu.TryLock() {
			r.src.mu.Unlock()
			return false
		}
		return true
	}, 10*time.Second, time.Microsecond)
	require.NoError(t, r.src.Close(), "nothing can end the call, and unloading the library under it would be worse")
	assert.Empty(t, done)
	simlib.NVML(t, h100s(t))
	require.NoError(t, <-done)
}
