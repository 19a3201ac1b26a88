package pods

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

const full = "GPU-0a1b2c3d-0000-1111-2222-333344445555"

func devices() []gpu.DeviceReading {
	return []gpu.DeviceReading{
		{Device: gpu.Device{ID: full, UUID: full, Minor: 0, Index: 0, Instance: gpu.None}},
		{Device: gpu.Device{ID: "GPU-b", UUID: "GPU-b", Minor: 1, Index: 1, Instance: gpu.None}},
		{Device: gpu.Device{ID: "MIG-c", UUID: "MIG-c", Parent: "GPU-b", Minor: 1, Index: 1, Instance: 7}},
		{Device: gpu.Device{ID: "GPU-b/gi/9", Parent: "GPU-b", Minor: 1, Index: 1, Instance: 9}},
	}
}

func TestEveryFormOfADeviceIDFindsItsDevice(t *testing.T) {
	for _, tc := range []struct {
		id   string
		want int // index into devices, -1 for none
	}{
		{full, 0},
		{full + "::0", 0},
		{full + "::15", 0},
		{"GPU-b", 1},
		{"MIG-c", 2},
		{"MIG-c::1", 2},
		{"MIG-GPU-b/9/0", 3},
		{"MIG-GPU-b/7/0", 2},
		{"MIG-GPU-b/3/0", -1},
		{"nvidia0", 0},
		{"nvidia0/vgpu3", 0},
		{"nvidia1", 1},
		{"nvidia1/gi7", 2},
		{"nvidia1/gi9/vgpu0", 3},
		{"nvidia0/gi1", -1},
		{"nvidia7", -1},
		{"gpu-0", 0},
		{"k8s.gpu.nvidia.com/device=gpu-1", 1},
		{"k8s.gpu.nvidia.com/claim=4be2-gpu-0a1b2c3d-0000-1111-2222-333344445555", 0},
		{"GPU-unknown", -1},
		{"", -1},
		{"0000:1a:00.0", -1},
		{"nvidia99999999999999999999", -1},
	} {
		t.Run(tc.id, func(t *testing.T) {
			ds := devices()
			unknown := Assign([]Holding{{Owner: gpu.Owner{Namespace: "n", Pod: "p", Container: "c"}, DeviceID: tc.id}}, ds)
			got := -1
			for i := range ds {
				if len(ds[i].Owners) > 0 {
					got = i
				}
			}
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.want < 0, unknown == 1)
		})
	}
}

func TestSharedDevicesHaveSeveralOwnersEachOnce(t *testing.T) {
	ds := devices()
	ds[0].Owners = []gpu.Owner{{Pod: "what a page said"}}
	var hs []Holding
	for i := range 4 {
		hs = append(hs, Holding{Owner: gpu.Owner{Namespace: "n", Pod: fmt.Sprint("p", 3-i%2), Container: "c"}, DeviceID: fmt.Sprintf("%s::%d", full, i)})
	}
	assert.Zero(t, Assign(hs, ds))
	assert.Equal(t, []gpu.Owner{{Namespace: "n", Pod: "p2", Container: "c"}, {Namespace: "n", Pod: "p3", Container: "c"}}, ds[0].Owners)
	assert.Empty(t, ds[1].Owners)
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{full, full + "::1", "MIG-GPU-b/9/0", "nvidia0/gi1/vgpu0", "gpu-0", "::", "nvidia"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		ref, ok := Parse(id)
		if ok && ref.UUID == "" && ref.Minor < 0 {
			t.Fatalf("%q says nothing and is accepted", id)
		}
		Assign([]Holding{{DeviceID: id}}, devices())
	})
}
