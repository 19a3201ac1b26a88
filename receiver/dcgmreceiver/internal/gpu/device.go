package gpu

import (
	"fmt"
	"regexp"
	"strings"
)

// None marks an index that is not known.
const None = -1

// Device is the identity of a GPU or of a MIG instance. It never changes while the device exists.
type Device struct {
	ID       string // hw.id: the UUID, or "<uuid>/gi/<n>" for a MIG instance whose own UUID is not known
	UUID     string // of the GPU, or of the MIG instance where it is known
	Parent   string // UUID of the GPU a MIG instance belongs to; "" for a GPU
	Index    int    // index of the GPU (NVML order), None when unknown
	Minor    int    // N of /dev/nvidiaN, None when unknown
	Instance int    // GPU instance id of a MIG instance, None for a GPU
	Name     string // nvidiaN
	Model    string
	Serial   string
	Driver   string
	BusID    string // PCI bus id
	Profile  string // MIG profile, e.g. 1g.10gb
	Host     string // host.name, when the source says
}

// IsMIG reports whether the device is a MIG instance.
func (d *Device) IsMIG() bool { return d.Parent != "" }

// InstanceID is the hw.id of a MIG instance: its UUID, or one made of the GPU's UUID and the instance id.
func InstanceID(uuid, parent string, instance int) string {
	if uuid != "" {
		return uuid
	}
	return fmt.Sprintf("%s/gi/%d", parent, instance)
}

var profile = regexp.MustCompile(`\b\d+(c\.\d+)?g\.\d+gb(\+[a-z0-9.]+)*\b`)

// ProfileOf finds a MIG profile in a name such as "NVIDIA H100 80GB HBM3 MIG 1g.10gb".
func ProfileOf(name string) string { return profile.FindString(strings.ToLower(name)) }

// State is what a source says of a device as a whole.
type State uint8

const (
	StateUnknown State = iota // the source does not tell
	StateOK                   // the source reached it
	StateLost                 // fell off the bus, was detached, or is no longer listed
)

// Health is the result of the host engine's check of one system: 0 pass, 10 warning, 20 failure.
type Health struct {
	System string // pcie, nvlink, pmu, mcu, mem, sm, inforom, thermal, power, driver
	Result int
}

// HealthSystems are the systems a host engine checks on a GPU, in the order of its bits (dcgm_structs.h).
var HealthSystems = []string{"pcie", "nvlink", "pmu", "mcu", "mem", "sm", "inforom", "thermal", "power", "driver"}

// Owner is a container that holds a device or a share of it.
type Owner struct {
	Namespace string
	Pod       string
	Container string
}

// MIGKey names a MIG instance by the UUID of its GPU and its instance id.
type MIGKey struct {
	GPU      string
	Instance int
}
