//go:build cgo && linux && !nodcgm

package nvmllib

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

const (
	rediscoverEvery = 30 * time.Second
	maxEvents       = 1024 // XIDs taken in one read; the rest waits for the next
)

var errClosed = errors.New("the library was closed")

// source reads NVML. One goroutine calls it, except that Close may come beside a call that hangs; nothing can end such
// a call, so Close then leaves the library as it is.
type source struct {
	opts       Options
	identities map[int]gpu.Device // by index: a lost GPU cannot be asked for its name any more

	mu         sync.Mutex // held by a call; Close only tries it
	lib        *library
	devices    []*device
	events     nvml.EventSet
	discovered time.Time
	notes      map[string]gpu.Note
}

// New makes a source for the driver's library. Nothing is opened.
func New(o Options) gpu.Source {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &source{opts: o, identities: map[int]gpu.Device{}, notes: map[string]gpu.Note{}}
}

func (s *source) Name() string { return "nvml" }

// Open loads the library and lists the devices.
func (s *source) Open(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	lib, err := load(s.opts.Library)
	if err != nil {
		return err
	}
	s.lib = lib
	process.RLock()
	err = s.list(s.opts.Now())
	process.RUnlock()
	if err != nil {
		s.close()
	}
	return err
}

// Close frees what was taken and unloads the library.
func (s *source) Close() error {
	if !s.mu.TryLock() {
		return nil // a call hangs in the driver: unloading under it would be worse
	}
	defer s.mu.Unlock()
	s.close()
	return nil
}

func (s *source) close() {
	if s.lib == nil {
		return
	}
	process.RLock()
	s.release()
	process.RUnlock()
	s.lib.unload()
	s.lib = nil
}

func (s *source) release() {
	for _, d := range s.devices {
		if d.gpm != nil {
			d.gpm.free()
		}
	}
	s.devices = nil
	if s.events != nil {
		_ = s.events.Free()
		s.events = nil
	}
}

// list finds the devices anew, with their counters and their XID events.
func (s *source) list(now time.Time) error {
	found, err := discover(s.lib, s.identities)
	if err != nil {
		return err
	}
	s.release()
	clear(s.notes)
	s.devices, s.discovered = found, now
	for _, d := range found {
		s.openGPM(d)
	}
	s.listen()
	return nil
}

// listen registers for XIDs. Without them, the rest is read.
func (s *source) listen() {
	if !s.opts.Plan.Wants(gpu.FieldXID) || !s.lib.can("nvmlEventSetCreate") || !s.lib.can("nvmlDeviceRegisterEvents") {
		return
	}
	set, ret := s.lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		s.note("xid", "XIDs cannot be read", text(ret))
		return
	}
	registered := false
	for _, d := range s.devices {
		if d.id.IsMIG() || d.lost {
			continue
		}
		if ret := d.handle.RegisterEvents(nvml.EventTypeXidCriticalError, set); ret == nvml.SUCCESS {
			registered = true
		} else {
			s.note("xid", "XIDs of some GPUs cannot be read", text(ret))
		}
	}
	if !registered {
		_ = set.Free()
		return
	}
	s.events = set
}

// Read reads every device once.
func (s *source) Read(_ context.Context, now time.Time) (*gpu.Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lib == nil {
		return nil, &gpu.Down{Condition: gpu.SourceLost, Err: errClosed}
	}
	process.RLock()
	defer process.RUnlock()
	// XIDs first: listing anew makes a new event set, and what the old one holds would be gone with it.
	events := s.takeEvents(now)
	if now.Sub(s.discovered) > rediscoverEvery {
		if err := s.refresh(now); err != nil {
			return nil, err
		}
	}
	out := &gpu.Reading{At: now, Clock: now, Source: "nvml", Step: s.opts.Interval, Endpoint: "libnvidia-ml.so.1", Events: events}
	lost := map[string]bool{}
	for _, d := range s.devices {
		dr := gpu.DeviceReading{Device: d.id, State: gpu.StateOK}
		if d.lost || lost[d.id.Parent] && d.id.IsMIG() {
			dr.State = gpu.StateLost
		} else {
			var gone bool
			if dr.Samples, gone = s.readDevice(d, now); gone {
				dr.State = gpu.StateLost
				s.discovered = time.Time{} // list anew at the next read, in case it comes back
			}
		}
		lost[d.id.ID] = dr.State == gpu.StateLost
		out.Devices = append(out.Devices, dr)
	}
	for _, k := range slices.Sorted(maps.Keys(s.notes)) {
		out.Notes = append(out.Notes, s.notes[k])
	}
	return out, nil
}

// refresh lists the devices again and starts over only when they changed: starting over costs the counters a sample.
func (s *source) refresh(now time.Time) error {
	found, err := discover(s.lib, s.identities)
	if err != nil {
		return err
	}
	s.discovered = now
	same := slices.EqualFunc(found, s.devices, func(a, b *device) bool { return a.id == b.id && a.lost == b.lost })
	if same {
		return nil
	}
	return s.list(now)
}

// takeEvents takes the XIDs that have come since the last read. It does not wait.
func (s *source) takeEvents(now time.Time) []gpu.Event {
	if s.events == nil {
		return nil
	}
	var out []gpu.Event
	for range maxEvents {
		data, ret := s.events.Wait(0)
		if ret != nvml.SUCCESS {
			break
		}
		if data.EventType&nvml.EventTypeXidCriticalError == 0 {
			continue
		}
		out = append(out, gpu.Event{DeviceID: s.deviceOf(&data), At: now, XID: int64(data.EventData)})
	}
	return out
}

func (s *source) deviceOf(data *nvml.EventData) string {
	id := "unknown"
	for _, d := range s.devices {
		if !d.id.IsMIG() && d.handle == data.Device {
			id = d.id.ID
		}
		if d.id.IsMIG() && d.parent == data.Device && data.GpuInstanceId != ^uint32(0) && d.id.Instance == int(data.GpuInstanceId) {
			return d.id.ID
		}
	}
	return id
}

func (s *source) note(key, message, detail string) {
	s.notes[key] = gpu.Note{Key: key, Message: message, Detail: detail}
}
