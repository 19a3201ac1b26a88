//go:build cgo && linux && !nodcgm

package dcgmlib

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

func TestTwoGPUs(t *testing.T) {
	r := newRig(t, h100s(t))
	r.open()
	rep := r.step(10)
	require.Len(t, rep.Devices, 2)
	d := rep.Devices[0].Device
	assert.Equal(t, gpu.Device{
		ID: busy, UUID: busy, Index: 0, Minor: 0, Instance: gpu.None, Name: "nvidia0", Model: "NVIDIA H100 80GB HBM3",
		Serial: "1651423000000", Driver: "580.65.06", BusID: "00000000:1A:00.0",
	}, *d)
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

func TestExtraFields(t *testing.T) {
	usage := &gpu.Metric{Name: "nvidia.gpu.bar1.usage", Unit: "By", Kind: gpu.KindUpDown, Integer: true}
	plan := gpu.NewPlan(map[string]bool{"hw.power": false}, []gpu.Mapping{{Field: 93, Metric: usage, Scale: 1 << 20, Class: gpu.ClassExtra}})
	r := newRig(t, h100s(t)+"field gpu:* 93 i 5\n", func(o *Options) { o.Plan = plan })
	r.open()
	rep := r.step(10)
	want(t, 5<<20, rep, busy, "nvidia.gpu.bar1.usage")
	absent(t, rep, busy, "hw.power")
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
	assert.Equal(t, gpu.Device{
		ID: "MIG-8", UUID: "MIG-8", Parent: busy, Index: 0, Minor: 0, Instance: 8, Name: "nvidia0", Model: "NVIDIA H100 80GB HBM3",
		Serial: "1651423000000", Driver: "580.65.06", BusID: "00000000:1A:00.0", Profile: "1g.10gb",
	}, *rep.Devices[3].Device)

	r.text = mig(r.text, 5)
	r.step(50)
	rep = r.step(60)
	require.Len(t, rep.Devices, 3)
	want(t, 0.5, rep, first, "nvidia.gpu.sm.utilization")
	r.text = mig(r.text)
	r.step(100)
	rep = r.step(110)
	require.Len(t, rep.Devices, 2)
	assert.NotContains(t, leftovers(t), "watches:0")
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
