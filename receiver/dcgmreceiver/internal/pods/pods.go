// Package pods finds out which container holds which GPU, from what a kubelet tells of devices.
//
// Device plugins name devices in many ways; this package knows them and does no I/O.
package pods

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// Holding is one device of one container, as the kubelet names it.
type Holding struct {
	Owner    gpu.Owner
	DeviceID string
}

// Ref is what a device id says. Either UUID is set, or Minor with or without Instance, or nothing.
type Ref struct {
	UUID     string // of the GPU or of the MIG instance; with Instance, of the GPU
	Minor    int    // N of /dev/nvidiaN
	Instance int    // GPU instance id
}

var (
	uuid      = regexp.MustCompile(`(?i)\b(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	oldMIG    = regexp.MustCompile(`^MIG-(GPU-[0-9A-Za-z-]+)/(\d+)/(\d+)$`)
	gkeDevice = regexp.MustCompile(`^nvidia(\d+)(?:/gi(\d+))?(?:/vgpu\d+)?$`)
	draDevice = regexp.MustCompile(`^gpu-(\d+)$`)
)

// Parse reads a device id. Known forms, from NVIDIA's device plugin (also time-sliced and MPS replicas ::N), GKE's
// plugin, and NVIDIA's DRA driver with its CDI names:
//
//	GPU-<uuid>  MIG-<uuid>  GPU-<uuid>::3  MIG-<uuid>::0  MIG-GPU-<uuid>/<gi>/<ci>
//	nvidia0  nvidia0/gi1  nvidia0/vgpu3  nvidia0/gi1/vgpu0  gpu-0  k8s.gpu.nvidia.com/device=gpu-0
func Parse(id string) (Ref, bool) {
	ref := Ref{Minor: gpu.None, Instance: gpu.None}
	if i := strings.LastIndex(id, "::"); i >= 0 {
		id = id[:i] // a replica of a shared device
	}
	if m := oldMIG.FindStringSubmatch(id); m != nil {
		ref.UUID, ref.Instance = m[1], number(m[2])
		return ref, ref.Instance >= 0
	}
	if m := gkeDevice.FindStringSubmatch(id); m != nil {
		ref.Minor = number(m[1])
		if m[2] != "" {
			ref.Instance = number(m[2])
		}
		return ref, ref.Minor >= 0
	}
	if strings.HasPrefix(id, "GPU-") || strings.HasPrefix(id, "MIG-") {
		ref.UUID = id
		return ref, true
	}
	if u := uuid.FindString(id); u != "" {
		ref.UUID = strings.ToUpper(u[:3]) + strings.ToLower(u[3:])
		return ref, true
	}
	name := id[strings.LastIndexAny(id, "=/")+1:]
	if m := draDevice.FindStringSubmatch(name); m != nil {
		ref.Minor = number(m[1])
		return ref, ref.Minor >= 0
	}
	return ref, false
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return gpu.None
	}
	return n
}

// Assign gives devices their owners and returns how many holdings are of no device it knows. A device that the kubelet
// knows owners of loses those it had before; several holdings of one container count once.
func Assign(holdings []Holding, devices []gpu.DeviceReading) (unknown int) {
	owners := map[int][]gpu.Owner{}
	for i := range holdings {
		h := &holdings[i]
		ref, ok := Parse(h.DeviceID)
		at := -1
		if ok {
			at = slices.IndexFunc(devices, func(d gpu.DeviceReading) bool { return ref.is(&d.Device) })
		}
		switch {
		case at < 0:
			unknown++
		case !slices.Contains(owners[at], h.Owner):
			owners[at] = append(owners[at], h.Owner)
		}
	}
	for at, o := range owners {
		slices.SortFunc(o, func(a, b gpu.Owner) int {
			return strings.Compare(a.Namespace+"\x00"+a.Pod+"\x00"+a.Container, b.Namespace+"\x00"+b.Pod+"\x00"+b.Container)
		})
		devices[at].Owners = o
	}
	return unknown
}

func (r *Ref) is(d *gpu.Device) bool {
	switch {
	case r.Instance >= 0 && (d.Instance != r.Instance || !d.IsMIG()):
		return false
	case r.Instance >= 0 && r.UUID != "":
		return strings.EqualFold(d.Parent, r.UUID)
	case r.UUID != "":
		return strings.EqualFold(d.UUID, r.UUID)
	case r.Instance < 0 && d.IsMIG():
		return false
	}
	return r.Minor >= 0 && d.Minor == r.Minor
}
