//go:build cgo && linux && !nodcgm

package dcgmlib

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

func TestTwoGPUs(t *testing.T) {
	r := newRig(t, h100s(t))
	r.open()
	rep := r.step(10)
	require.Len(t, rep.Devices, 2)
	d := rep.Devices[0].Device
	assert.Equal(t, gpu.Device{ID: busy, UUID: busy, Index: 0, Minor: 0, Instance: gpu.None, Name: "nvidia0", Model: "NVIDIA H100 80GB HBM3",
		Serial: "1651423000000", Driver: "580.65.06", BusID: "00000000:1A:00.0"}, *d)
	want(t, 0.97, rep, busy, "hw.gpu.utilization", gpu.AttrTask, "general")
	want(t, 0.83, rep, busy, "nvidia.gpu.memory.bandwidth.utilization")
	want(t, 73728*1048576, rep, busy, "hw.gpu.memory.usage")
	want(t, 612.5, rep, busy, "hw.power")
	want(t, 1, rep, busy, "hw.status", gpu.AttrState, gpu.HWOK)
	want(t, 0, rep, busy, "nvidia.gpu.health", gpu.AttrSystem, "thermal")
	want(t, 1, rep, busy, "nvidia.gpu.nvlink.link.up", gpu.AttrNVLink, "1")
	absent(t, rep, busy, "nvidia.gpu.nvlink.link.up", gpu.AttrNVLink, "2")
	want(t, 0, rep, idle, "nvidia.gpu.sm.utilization")
	rep = r.step(20)
	want(t, 24e9, rep, busy, "hw.gpu.io", gpu.AttrDirection, "transmit", gpu.AttrLink, "pcie")
}

func TestFieldsThatNeverWorkAreNoLongerReadAfterAWhile(t *testing.T) {
	r := newRig(t, h100s(t))
	r.open()
	first := r.step(10)
	require.Positive(t, first.Dropped[gpu.ReasonNotSupported])
	var rep *gpu.Report
	for s := 20.0; s <= 60; s += 10 {
		rep = r.step(s)
	}
	assert.Zero(t, rep.Dropped[gpu.ReasonNotSupported], "learnt, by model")
	want(t, 0.97, rep, busy, "hw.gpu.utilization", gpu.AttrTask, "general")
}

func TestLibraryMissing(t *testing.T) {
	// The linker cannot find it only if this process has not loaded it: ask for the symbols of one that lacks some.
	old := symbols
	defer func() { symbols = old }()
	symbols = append(slices.Clone(old), "dcgmNotThere")
	r := newRig(t, h100s(t))
	err := r.src.Open(context.Background())
	assert.Equal(t, gpu.SourceNoLibrary, gpu.ConditionOf(err))
	assert.ErrorContains(t, err, "libdcgm.so.4 lacks dcgmNotThere")
}

func TestEngineDownThenUp(t *testing.T) {
	r := newRig(t, h100s(t))
	r.world(0, "engine ", "engine down")
	for range 5 {
		err := r.src.Open(context.Background())
		require.Equal(t, gpu.SourceUnreachable, gpu.ConditionOf(err))
		require.ErrorContains(t, err, `cannot connect to "localhost:5555"`)
		require.NoError(t, r.src.Close())
	}
	r.world(1, "engine ", "engine up")
	r.open()
	want(t, 0.97, r.step(10), busy, "hw.gpu.utilization", gpu.AttrTask, "general")
}

func TestEngineRestart(t *testing.T) {
	r := newRig(t, h100s(t))
	r.open()
	r.step(10)
	before := r.step(20)
	r.world(30, "epoch ", "epoch 2")
	_, err := r.src.Read(context.Background(), r.now())
	require.Equal(t, gpu.SourceLost, gpu.ConditionOf(err))
	require.NoError(t, r.src.Close())
	r.open()
	after := r.step(40)
	counter := func(rep *gpu.Report) float64 {
		v, ok := value(t, rep, busy, "hw.gpu.io", gpu.AttrDirection, "transmit", gpu.AttrLink, "pcie")
		require.True(t, ok)
		return v
	}
	b, a := counter(before), counter(after)
	assert.GreaterOrEqual(t, a, b, "the counter goes on")
	assert.LessOrEqual(t, a-b, 1.2e9*10.5, "and counts nothing for the time without an engine")
	assert.Regexp(t, `handles:1$`, leftovers(t))
}

func TestTwoHoursOfRestartsLeakNothing(t *testing.T) {
	r := newRig(t, h100s(t))
	var first string
	for i := range 240 { // every 30 s
		s := float64(i * 30)
		r.world(s, "epoch ", fmt.Sprintf("epoch %d", i+1))
		if err := r.src.Open(context.Background()); err != nil {
			require.NoError(t, r.src.Close())
			r.open()
		}
		r.step(s + 10)
		left := leftovers(t)
		if first == "" {
			first = left
		}
		require.Equal(t, first, left, "after restart %d", i)
		r.world(s+20, "epoch ", fmt.Sprintf("epoch %d", i+1000))
		_, err := r.src.Read(context.Background(), r.now())
		require.Error(t, err)
		require.NoError(t, r.src.Close())
	}
}

func TestRebuildingLeaksNothing(t *testing.T) {
	r := newRig(t, h100s(t))
	r.open()
	r.step(10)
	first := leftovers(t)
	for i := range 50 {
		r.src.again = true
		r.step(float64(20 + 10*i))
		require.Equal(t, first, leftovers(t))
	}
}

func TestLostGPUIsReportedWithItsName(t *testing.T) {
	r := newRig(t, h100s(t))
	r.open()
	r.step(10)
	rep := r.step(20, "gpu 1", "gpu 1 status=4")
	want(t, 1, rep, idle, "hw.status", gpu.AttrState, gpu.HWFailed)
	absent(t, rep, idle, "hw.temperature")
	want(t, 0.97, rep, busy, "hw.gpu.utilization", gpu.AttrTask, "general")
	for s := 30.0; s < 100; s += 10 {
		rep = r.step(s)
		want(t, 1, rep, idle, "hw.status", gpu.AttrState, gpu.HWFailed)
	}
	rep = r.step(100, "gpu 1", "gpu 1 status=1")
	rep = r.step(110)
	rep = r.step(120)
	want(t, 1, rep, idle, "hw.status", gpu.AttrState, gpu.HWOK)
	want(t, 33, rep, idle, "hw.temperature", gpu.AttrSensor, "gpu")
}

func TestMIGReconfigured(t *testing.T) {
	mig := func(text string, ids ...int) string {
		text = regexp.MustCompile(`(?m)^(gi|ci) .*\n`).ReplaceAllString(text, "")
		for i, id := range ids {
			text += fmt.Sprintf("gi %d gpu=0 nvml=%d slices=1\nci %d gi=%d\n", id, i+7, id+100, id)
		}
		return text
	}
	base := h100s(t) + "field gi:* 50 s NVIDIA H100 80GB HBM3 MIG 1g.10gb\nfield gi:* 1002 d 0.5\nfield ci:* 252 i 2048\nfield ci:* 251 i 7000\nfield ci:* 250 i 9984\n"
	uuids := map[gpu.MIGKey]string{{GPU: busy, Instance: 8}: "MIG-8"}
	r := newRig(t, mig(base, 1, 2), func(o *Options) { o.MIGUUIDs = func() map[gpu.MIGKey]string { return uuids } })
	r.open()
	rep := r.step(10)
	require.Len(t, rep.Devices, 4)
	first := busy + "/gi/7"
	want(t, 0.5, rep, first, "nvidia.gpu.sm.utilization")
	want(t, 2048*1048576, rep, first, "hw.gpu.memory.usage")
	want(t, 0.5, rep, "MIG-8", "nvidia.gpu.sm.utilization")
	assert.Equal(t, gpu.Device{ID: "MIG-8", UUID: "MIG-8", Parent: busy, Index: 0, Minor: 0, Instance: 8, Name: "nvidia0", Model: "NVIDIA H100 80GB HBM3",
		Serial: "1651423000000", Driver: "580.65.06", BusID: "00000000:1A:00.0", Profile: "1g.10gb"}, *rep.Devices[3].Device)

	r.text = mig(r.text, 5)
	rep = r.step(50)
	rep = r.step(60)
	require.Len(t, rep.Devices, 3)
	want(t, 0.5, rep, first, "nvidia.gpu.sm.utilization")
	r.text = mig(r.text)
	r.step(100)
	rep = r.step(110)
	require.Len(t, rep.Devices, 2)
	assert.NotContains(t, leftovers(t), "watches:0")
}

func TestAllSentinelsAndStatuses(t *testing.T) {
	text := h100s(t)
	bad := []string{"i 9223372036854775792", "i 9223372036854775793", "i 9223372036854775794", "i 9223372036854775795", "d 140737488355328", "d 140737488355331",
		"i 2147483632", "i 2147483635", "i 5 status=-6", "i 5 status=-14", "i 5 status=-16", "i 5 status=-17", "i 5 status=-18", "i 5 status=-13", "i 5 status=-3", "s text", "i 5 age=60000000"}
	fields := []int{203, 204, 206, 207, 100, 101, 102, 140, 150, 190, 252, 251, 253, 254, 155, 113, 112}
	for i, b := range bad {
		for g := range 2 {
			text = simlib.Edit(text, fmt.Sprintf("field gpu:%d %d ", g, fields[i]), fmt.Sprintf("field gpu:%d %d %s", g, fields[i], b))
		}
	}
	text = simlib.Edit(text, "field gpu:* 113 ", "field gpu:* 113 s text")
	r := newRig(t, text)
	r.open()
	rep := r.step(10)
	for _, m := range []string{"hw.gpu.utilization", "nvidia.gpu.clock.frequency", "hw.temperature", "nvidia.gpu.performance_state", "hw.gpu.memory.usage", "hw.power", "nvidia.gpu.clock.event.active"} {
		absent(t, rep, busy, m)
	}
	absent(t, rep, busy, "nvidia.gpu.clock.limit", gpu.AttrClock, "sm")
	for _, why := range []gpu.Reason{gpu.ReasonBlank, gpu.ReasonNotFound, gpu.ReasonNotSupported, gpu.ReasonNoPermission, gpu.ReasonUnwatched, gpu.ReasonLost, gpu.ReasonOther, gpu.ReasonStale, gpu.ReasonRange} {
		assert.GreaterOrEqual(t, rep.Dropped[why], 2, why)
	}
	want(t, 3, rep, busy, "hw.errors", gpu.AttrErrorType, "corrected")
}

func TestOldEngineLacksFields(t *testing.T) {
	text := h100s(t)
	for _, f := range []int{1420, 1421, 1422, 1423, 1424, 1501, 1507, 1508, 1523, 1603, 1604, 1605, 1611, 1612, 1091, 1092} {
		text += fmt.Sprintf("unknown %d\n", f)
	}
	r := newRig(t, text)
	r.open()
	rep := r.step(10)
	absent(t, rep, busy, "nvidia.gpu.clock.event.duration")
	absent(t, rep, busy, "nvidia.gpu.nvlink.link.up")
	v, ok := value(t, rep, busy, "nvidia.gpu.violation.duration", gpu.AttrReason, "power")
	assert.True(t, ok, "older drivers' form of the same")
	assert.Greater(t, v, 120.0)
	want(t, 0.97, rep, busy, "hw.gpu.utilization", gpu.AttrTask, "general")
}

func TestOneBadFieldOrGPUStopsNothingElse(t *testing.T) {
	t.Run("fields", func(t *testing.T) {
		r := newRig(t, h100s(t)+"failfield 140 -6\nfailfield 310 -6\n")
		r.open()
		in := r.read()
		rep := r.step(10)
		absent(t, rep, busy, "hw.temperature", gpu.AttrSensor, "memory")
		absent(t, rep, busy, "hw.errors", gpu.AttrErrorType, "corrected")
		want(t, 58, rep, busy, "hw.temperature", gpu.AttrSensor, "gpu")
		want(t, 0, rep, busy, "hw.errors", gpu.AttrErrorType, "uncorrected")
		assert.Len(t, in.Notes, 2, "said once for each class")
		var groups, fieldGroups, watches, handles int
		_, err := fmt.Sscanf(leftovers(t), "groups:%d;fieldgroups:%d;watches:%d;handles:%d", &groups, &fieldGroups, &watches, &handles)
		require.NoError(t, err)
		assert.Equal(t, len(r.src.watches), watches, "trials leave nothing behind")
		assert.Equal(t, len(r.src.watches), fieldGroups)
		assert.Equal(t, len(r.src.watches)+1, groups, "and one for health")
	})
	t.Run("GPU", func(t *testing.T) {
		r := newRig(t, h100s(t)+"failentity gpu:1 -3\n")
		r.open()
		rep := r.step(10)
		want(t, 0.97, rep, busy, "hw.gpu.utilization", gpu.AttrTask, "general")
		require.Len(t, rep.Devices, 2)
	})
	t.Run("unsupported GPU", func(t *testing.T) {
		r := newRig(t, simlib.Edit(h100s(t), "gpu 1", "gpu 1 status=2"))
		r.open()
		rep := r.step(10)
		want(t, 0.97, rep, busy, "hw.gpu.utilization", gpu.AttrTask, "general")
		absent(t, rep, idle, "hw.gpu.utilization")
	})
	t.Run("models", func(t *testing.T) {
		r := newRig(t, simlib.Edit(h100s(t), "field gpu:1 50", "field gpu:1 50 s NVIDIA A30"))
		r.open()
		rep := r.step(10)
		want(t, 0.97, rep, busy, "hw.gpu.utilization", gpu.AttrTask, "general")
		want(t, 33, rep, idle, "hw.temperature", gpu.AttrSensor, "gpu")
	})
}

func TestProfilingRefusedDegradesAndRecovers(t *testing.T) {
	for code, hint := range map[int]string{-36: "does not offer it", -37: "Nsight", -33: "profiling module", -17: "CAP_SYS_ADMIN", -29: "CAP_SYS_ADMIN"} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			r := newRig(t, h100s(t)+fmt.Sprintf("prof %d\n", code))
			r.open()
			rep := r.step(10)
			absent(t, rep, busy, "nvidia.gpu.sm.utilization")
			want(t, 0.97, rep, busy, "hw.gpu.utilization", gpu.AttrTask, "general")
			notes := r.read().Notes
			require.Len(t, notes, 1)
			assert.Contains(t, notes[0].Detail, hint)

			rep = r.step(200, "prof ", "prof 0")
			absent(t, rep, busy, "nvidia.gpu.sm.utilization")
			r.step(310)
			rep = r.step(320)
			want(t, 0.88, rep, busy, "nvidia.gpu.sm.utilization")
			assert.Empty(t, r.read().Notes)
		})
	}
}

func TestMultiPassReadsWhatFitsOnePass(t *testing.T) {
	text := regexp.MustCompile(`(?m)^profgroup .*\n`).ReplaceAllString(h100s(t), "") +
		"multipass\nprofgroup 1 1 1001 1002 1003 1004 1005\nprofgroup 1 2 1006 1007 1008\nprofgroup 2 1 1009 1010\n"
	r := newRig(t, text)
	r.open()
	in := r.read()
	require.Len(t, in.Notes, 1)
	assert.Contains(t, in.Notes[0].Message, "cannot count all profiling fields at once")
	rep := r.step(10)
	want(t, 0.88, rep, busy, "nvidia.gpu.sm.utilization")
	absent(t, rep, busy, "nvidia.gpu.pipe.utilization", gpu.AttrPipe, "fp64")
	want(t, 0.42, rep, busy, "nvidia.gpu.pipe.utilization", gpu.AttrPipe, "tensor")
	rep = r.step(20)
	_, ok := value(t, rep, busy, "hw.gpu.io", gpu.AttrLink, "pcie")
	assert.True(t, ok, "another major group runs beside it")
}

func TestXIDBurst(t *testing.T) {
	text := h100s(t)
	at := func(s float64) int64 { return int64((start + s) * 1e6) }
	text += fmt.Sprintf("xid gpu:0 %d 31\n", at(-5)) // before we came: somebody else's
	for i := range 40 {
		text += fmt.Sprintf("xid gpu:0 %d 13\n", at(3)+int64(i))
	}
	text += fmt.Sprintf("xid gpu:1 %d 79\nxid gpu:0 %d 31\nxid gpu:0 %d 31\n", at(4), at(15), at(15)+1)
	r := newRig(t, text)
	r.open()
	rep := r.step(10)
	assert.Len(t, rep.XIDs, 41)
	want(t, 40, rep, busy, gpu.MetricXID, gpu.AttrXID, "13")
	want(t, 1, rep, idle, gpu.MetricXID, gpu.AttrXID, "79")
	absent(t, rep, busy, gpu.MetricXID, gpu.AttrXID, "31")
	rep = r.step(20)
	assert.Len(t, rep.XIDs, 2, "each once, also when one repeats")
	want(t, 2, rep, busy, gpu.MetricXID, gpu.AttrXID, "31")
	assert.Empty(t, r.step(30).XIDs)
}

func TestHealth(t *testing.T) {
	r := newRig(t, h100s(t)+"health 0 7 10\nhealth 1 4 20\nhealth 1 1 10\n")
	r.open()
	rep := r.step(10)
	want(t, 10, rep, busy, gpu.MetricHealth, gpu.AttrSystem, "thermal")
	want(t, 1, rep, busy, gpu.MetricStatus, gpu.AttrState, gpu.HWDegraded)
	want(t, 20, rep, idle, gpu.MetricHealth, gpu.AttrSystem, "mem")
	want(t, 10, rep, idle, gpu.MetricHealth, gpu.AttrSystem, "nvlink")
	want(t, 1, rep, idle, gpu.MetricStatus, gpu.AttrState, gpu.HWFailed)

	r = newRig(t, h100s(t)+"fail dcgmHealthSet -33\n")
	r.open()
	assert.Contains(t, r.read().Notes[0].Message, "refuses health checks")
	absent(t, r.step(10), busy, gpu.MetricHealth)
}

func TestAnEngineThatAnswersBlanksIsSaidToBeFrozen(t *testing.T) {
	blank := regexp.MustCompile(`(?m)^(field gpu:\S+ \d\d\d+) ([id]) .*$`).ReplaceAllStringFunc(h100s(t), func(l string) string {
		p := strings.Fields(l)
		return strings.Join(p[:3], " ") + map[string]string{"i": " i 9223372036854775792", "d": " d 140737488355328"}[p[3]]
	})
	r := newRig(t, blank+"unknown 1611\nunknown 1612\nunknown 1603\nunknown 1604\nunknown 1605\nunknown 157\nunknown 160\nunknown 191\nunknown 390\nunknown 391\nunknown 392\nunknown 498\nunknown 499\nunknown 1201\nunknown 1203\n")
	r.open()
	for s := 10.0; s <= 40; s += 10 {
		r.step(s)
	}
	notes := r.read().Notes
	require.NotEmpty(t, notes)
	assert.True(t, slices.ContainsFunc(notes, func(n gpu.Note) bool { return n.Key == "frozen" }), "%v", notes)
}

func TestTwoSources(t *testing.T) {
	a := newRig(t, h100s(t))
	a.open()
	other := newRig(t, h100s(t), func(o *Options) { o.Address = "gpu-2:5555" })
	err := other.src.Open(context.Background())
	require.Equal(t, gpu.SourceConflict, gpu.ConditionOf(err), "another endpoint would silently read the first engine")

	b := newRig(t, h100s(t))
	b.open()
	alone := leftovers(t)
	want(t, 0.97, b.step(10), busy, "hw.gpu.utilization", gpu.AttrTask, "general")
	require.NoError(t, b.src.Close())
	assert.NotEqual(t, alone, leftovers(t), "its watches are gone")
	want(t, 0.97, a.step(20), busy, "hw.gpu.utilization", gpu.AttrTask, "general")

	b.open()
	a.world(30, "epoch ", "epoch 2")
	_, err = a.src.Read(context.Background(), a.now())
	require.Equal(t, gpu.SourceLost, gpu.ConditionOf(err))
	require.NoError(t, a.src.Close())
	b.text, b.at = a.text, a.at
	_, err = b.src.Read(context.Background(), b.now())
	require.Equal(t, gpu.SourceLost, gpu.ConditionOf(err), "the other one notices")
	require.NoError(t, b.src.Close())
	a.open()
	b.open()
	want(t, 0.97, a.step(40), busy, "hw.gpu.utilization", gpu.AttrTask, "general")
	b.text = a.text
	want(t, 0.97, b.step(40), busy, "hw.gpu.utilization", gpu.AttrTask, "general")
}

func TestCloseEndsAHungCall(t *testing.T) {
	r := newRig(t, h100s(t))
	r.open()
	r.world(10, "slow ", "slow dcgmEntitiesGetLatestValues 600000")
	done := make(chan error, 1)
	go func() {
		_, err := r.src.Read(context.Background(), r.now())
		done <- err
	}()
	require.Eventually(t, func() bool { return r.src.busy.Load() > 0 }, 10*time.Second, time.Millisecond)
	require.NoError(t, r.src.Close())
	assert.Equal(t, gpu.SourceLost, gpu.ConditionOf(<-done))
	r.world(20, "slow ", "# slow")
	r.open()
	want(t, 0.97, r.step(30), busy, "hw.gpu.utilization", gpu.AttrTask, "general")
}

func TestEmbeddedAndUnixSocket(t *testing.T) {
	r := newRig(t, h100s(t), func(o *Options) { o.Embedded = true })
	r.open()
	want(t, 0.97, r.step(10), busy, "hw.gpu.utilization", gpu.AttrTask, "general")
	require.NoError(t, r.src.Close())
	r = newRig(t, h100s(t), func(o *Options) { o.Address, o.UnixSocket = "/run/nv.sock", true })
	r.open()
	assert.Equal(t, "/run/nv.sock", r.read().Endpoint)
}

func TestEveryPinnedSymbolIsInTheBinding(t *testing.T) {
	// The list guards against exit 127 only if it is complete: every C.dcgm… that our calls reach must be on it.
	dir := filepath.Dir(goDCGM(t))
	called := map[string]bool{}
	ours := map[string]bool{}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\bdcgm\.([A-Z]\w+)\(`).FindAllStringSubmatch(string(b), -1) {
			ours[m[1]] = true
		}
	}
	bodies := map[string]string{}
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, f := range sources {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?ms)^func (\w+)\(.*?^}`).FindAllStringSubmatch(string(b), -1) {
			bodies[m[1]] = m[0]
		}
	}
	seen := map[string]bool{}
	var walk func(string)
	walk = func(fn string) {
		if seen[fn] {
			return
		}
		seen[fn] = true
		for _, m := range regexp.MustCompile(`\bC\.((?:dcgm|Dcgm|errorString)\w*)\(`).FindAllStringSubmatch(bodies[fn], -1) {
			called[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`\b(\w+)\(`).FindAllStringSubmatch(bodies[fn], -1) {
			if m[1] != fn && bodies[m[1]] != "" {
				walk(m[1])
			}
		}
	}
	delete(ours, "Short") // a conversion
	for fn := range ours {
		require.NotEmpty(t, bodies[fn], fn)
		walk(fn)
	}
	for _, notAFunction := range []string{"dcgmFieldValue_v1", "dcgmFieldValueEnumeration_f", "dcgmHealthSystems_t", "dcgmConnectV2Params_v2", "dcgm_field_entity_group_t", "dcgm_field_eid_t", "dcgmGpuGrp_t"} {
		delete(called, notAFunction)
	}
	// Guarded by dlsym in the binding, or reached only through modes that we do not use.
	delete(called, "dcgmConnect_v3")
	for c := range called {
		assert.Contains(t, symbols, c)
	}
	for _, s := range symbols {
		assert.True(t, called[s], "%s is pinned but not called", s)
	}
}

func goDCGM(t *testing.T) string {
	t.Helper()
	out, err := goList("github.com/NVIDIA/go-dcgm/pkg/dcgm")
	require.NoError(t, err)
	return filepath.Join(out, "x")
}

func TestOpenHonoursACancelledContext(t *testing.T) {
	r := newRig(t, h100s(t))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.True(t, errors.Is(r.src.Open(ctx), context.Canceled))
}
