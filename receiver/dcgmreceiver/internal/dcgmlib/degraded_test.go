//go:build cgo && linux && !nodcgm

package dcgmlib

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/simlib"
)

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
		require.Len(t, rep.Devices, 2, "under the name it had, not under a new one")
		assert.Equal(t, "NVIDIA H100 80GB HBM3", rep.Devices[1].Device.Model)
	}
	r.step(100, "gpu 1", "gpu 1 status=1")
	r.step(110)
	rep = r.step(120)
	want(t, 1, rep, idle, "hw.status", gpu.AttrState, gpu.HWOK)
	want(t, 33, rep, idle, "hw.temperature", gpu.AttrSensor, "gpu")
}

func TestAllSentinelsAndStatuses(t *testing.T) {
	text := h100s(t)
	bad := []string{
		"i 9223372036854775792", "i 9223372036854775793", "i 9223372036854775794", "i 9223372036854775795", "d 140737488355328", "d 140737488355331",
		"i 2147483632", "i 2147483635", "i 5 status=-6", "i 5 status=-14", "i 5 status=-16", "i 5 status=-17", "i 5 status=-18", "i 5 status=-13", "i 5 status=-3", "s text", "i 5 age=60000000",
	}
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
