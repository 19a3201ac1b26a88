//go:build cgo && linux && !nodcgm

package nvmllib

import (
	"fmt"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// device is a GPU or a MIG instance.
type device struct {
	id     gpu.Device
	handle nvml.Device // of a MIG instance, its first compute instance's handle
	parent nvml.Device // of a MIG instance
	lost   bool
	misses map[string]int // reads in a row that a getter was not supported
	gpm    *gpmState
}

// discover lists GPUs with their MIG instances. A GPU that is lost keeps the identity it had, by index.
func discover(l *library, known map[int]gpu.Device) ([]*device, error) {
	count, ret := l.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("NVML cannot count GPUs: %s", text(ret))
	}
	driver, _ := l.SystemGetDriverVersion()
	var out []*device
	for i := range count {
		handle, ret := l.DeviceGetHandleByIndex(i)
		d := &device{handle: handle, misses: map[string]int{}, lost: ret == nvml.ERROR_GPU_IS_LOST, id: gpu.Device{
			Index: i, Minor: gpu.None, Instance: gpu.None, Driver: driver,
		}}
		if ret == nvml.SUCCESS {
			d.lost = identify(d) == nvml.ERROR_GPU_IS_LOST
		} else if !d.lost {
			continue // no permission, e.g. a GPU of another container
		}
		switch before, ok := known[i]; {
		case d.id.UUID != "":
			d.id.ID = d.id.UUID
			known[i] = d.id
		case ok:
			d.id = before
		default:
			d.id.ID = fmt.Sprintf("nvml/gpu/%d", i)
		}
		out = append(out, d)
		if !d.lost {
			out = append(out, instances(l, d)...)
		}
	}
	return out, nil
}

func identify(d *device) nvml.Return {
	uuid, ret := d.handle.GetUUID()
	if ret != nvml.SUCCESS {
		return ret
	}
	d.id.UUID = uuid
	d.id.Model, _ = d.handle.GetName()
	if serial, ret := d.handle.GetSerial(); ret == nvml.SUCCESS {
		d.id.Serial = serial
	}
	if minor, ret := d.handle.GetMinorNumber(); ret == nvml.SUCCESS {
		d.id.Minor, d.id.Name = minor, fmt.Sprintf("nvidia%d", minor)
	}
	if pci, ret := d.handle.GetPciInfo(); ret == nvml.SUCCESS {
		d.id.BusID = cString(pci.BusId[:])
	}
	return nvml.SUCCESS
}

// instances lists the MIG instances of a GPU. NVML lists compute instances; those of one GPU instance are one device
// here, and it has a UUID of its own when it has one compute instance.
func instances(l *library, d *device) []*device {
	if !l.can("nvmlDeviceGetMigMode") {
		return nil
	}
	if mode, _, ret := d.handle.GetMigMode(); ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return nil
	}
	most, ret := d.handle.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return nil
	}
	var out []*device
	byInstance := map[int]*device{}
	for i := range most {
		handle, ret := d.handle.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue
		}
		n, ret := handle.GetGpuInstanceId()
		if ret != nvml.SUCCESS {
			continue
		}
		if other := byInstance[n]; other != nil {
			other.id.UUID = ""
			continue
		}
		m := &device{id: d.id, handle: handle, parent: d.handle, misses: map[string]int{}}
		m.id.Parent, m.id.Instance = d.id.UUID, n
		m.id.UUID, _ = handle.GetUUID()
		if name, ret := handle.GetName(); ret == nvml.SUCCESS {
			m.id.Profile = gpu.ProfileOf(name)
		}
		byInstance[n] = m
		out = append(out, m)
	}
	for _, m := range out {
		m.id.ID = gpu.InstanceID(m.id.UUID, m.id.Parent, m.id.Instance)
	}
	return out
}

// MIGUUIDs finds the UUIDs of MIG instances, for a source that cannot tell them. Without a driver there are none.
func MIGUUIDs() map[gpu.MIGKey]string {
	l, err := load("")
	if err != nil {
		return nil
	}
	defer l.unload()
	process.RLock()
	defer process.RUnlock()
	devices, err := discover(l, map[int]gpu.Device{})
	if err != nil {
		return nil
	}
	out := map[gpu.MIGKey]string{}
	for _, d := range devices {
		if d.id.IsMIG() && d.id.UUID != "" {
			out[gpu.MIGKey{GPU: d.id.Parent, Instance: d.id.Instance}] = d.id.UUID
		}
	}
	return out
}

func cString(b []int8) string {
	out := make([]byte, 0, len(b))
	for _, c := range b {
		if c == 0 {
			break
		}
		out = append(out, byte(c))
	}
	return string(out)
}

// fieldValue reads the union of nvmlFieldValue_t by its type.
func fieldValue(v *nvml.FieldValue) gpu.Value {
	p := unsafe.Pointer(&v.Value[0])
	switch nvml.ValueType(v.ValueType) {
	case nvml.VALUE_TYPE_DOUBLE:
		return gpu.Double(*(*float64)(p))
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return gpu.Int(int64(*(*uint32)(p)))
	case nvml.VALUE_TYPE_SIGNED_INT:
		return gpu.Int(int64(*(*int32)(p)))
	case nvml.VALUE_TYPE_UNSIGNED_SHORT:
		return gpu.Int(int64(*(*uint16)(p)))
	}
	return gpu.Int(*(*int64)(p)) // long, long long: 8 bytes on 64-bit Linux
}
