//go:build cgo && linux && !nodcgm

package dcgmlib

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

const (
	// How often a host engine updates what it watches.
	coreUpdate = time.Second
	slowUpdate = 30 * time.Second

	rediscoverEvery = 30 * time.Second // MIG instances and bound GPUs come and go
	profilingRetry  = 5 * time.Minute  // a refusal is another client's, Nsight's or a privilege's: it may end
	quietReads      = 3                // reads after which a field that a model lacks is no longer asked for
)

// source reads a host engine. One goroutine calls it, except that Close may come beside a call that hangs.
type source struct {
	opts   Options
	fields map[gpu.Class][]gpu.Field

	// Kept over reconnects.
	identities map[uint]gpu.Device // by DCGM GPU id: a lost GPU cannot be asked for its name any more
	xidCursor  time.Time           // engine's clock

	// Of one connection.
	devices    []device
	watches    []*watch
	health     *dcgm.GroupHandle
	skew       time.Duration // engine's clock less ours
	discovered time.Time
	again      bool // discover again at the next read
	notes      map[string]gpu.Note
	learnt     map[string]map[gpu.Field]*verdict // by model
	models     map[string]profilingTargets
	refused    []string  // models whose profiling is refused
	profAt     time.Time // when to try them again
	blankReads int

	busy   atomic.Int32 // calls in the library
	broken atomic.Bool  // the connection is of no more use
}

// verdict is what the reads of one field on one model have shown so far.
type verdict struct{ good, unsupported int }

// device is a GPU or a MIG instance with the entities its fields are read from.
type device struct {
	id       gpu.Device
	entity   dcgm.GroupEntityPair
	compute  []dcgm.GroupEntityPair // compute instances of a MIG instance: framebuffer fields exist there
	links    []int                  // NVLink links of a GPU
	model    string
	gpuID    uint // of the GPU, or of the MIG instance's parent
	state    gpu.State
	rejected bool // status says that DCGM cannot read it; it is listed but not watched
}

// New makes a source for a host engine. Nothing is opened.
func New(o Options) gpu.Source {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &source{opts: o, identities: map[uint]gpu.Device{}, notes: map[string]gpu.Note{}}
	s.fields = map[gpu.Class][]gpu.Field{}
	for c := gpu.ClassCore; c <= gpu.ClassExtra; c++ {
		s.fields[c] = o.Plan.Fields(c, false)
	}
	return s
}

func (s *source) Name() string { return "dcgm" }

func (s *source) address() string {
	if s.opts.Embedded {
		return "embedded"
	}
	return s.opts.Address
}

// Open connects, lists the devices and watches their fields.
func (s *source) Open(ctx context.Context) error {
	if err := process.acquire(s); err != nil {
		return err
	}
	s.devices, s.watches, s.health = nil, nil, nil
	s.notes, s.learnt = map[string]gpu.Note{}, map[string]map[gpu.Field]*verdict{}
	s.blankReads, s.again = 0, false
	s.broken.Store(false)
	return s.do(ctx, func() error {
		if _, err := dcgm.GetHostengineVersionInfo(); err != nil {
			return err
		}
		return s.rebuild(s.opts.Now())
	})
}

// Close lets go of the connection, and with it of every group and watch: the engine removes them. When another source
// shares the connection, only the watches go.
func (s *source) Close() error {
	broken := s.broken.Load() || s.busy.Load() > 0
	if !broken && process.shared(s) {
		_ = process.do(s, func() error { s.unwatchAll(); return nil })
	}
	return process.release(s, broken)
}

// do runs calls into the library and says of a failure whether the connection is to blame.
func (s *source) do(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.busy.Add(1)
	err := process.do(s, f)
	s.busy.Add(-1)
	switch {
	case err == nil:
		return nil
	case lostConnection(err):
		s.broken.Store(true)
		return &gpu.Down{Condition: gpu.SourceLost, Err: fmt.Errorf("lost the host engine at %q: %w", s.address(), err)}
	}
	return fmt.Errorf("host engine at %q: %w", s.address(), err)
}

// Read reads every device once.
func (s *source) Read(ctx context.Context, now time.Time) (*gpu.Reading, error) {
	var out *gpu.Reading
	err := s.do(ctx, func() error {
		if s.again || now.Sub(s.discovered) > rediscoverEvery {
			if err := s.refresh(now); err != nil {
				return err
			}
		}
		if !s.profAt.IsZero() && now.After(s.profAt) {
			if err := s.retryProfiling(now); err != nil {
				return err
			}
		}
		var err error
		out, err = s.read(now)
		return err
	})
	return out, err
}

// refresh lists the devices again and rebuilds the watches when they changed or when asked to.
func (s *source) refresh(now time.Time) error {
	found, err := s.discover()
	if err != nil {
		return err
	}
	s.discovered = now
	if !s.again && slices.EqualFunc(found, s.devices, sameDevice) {
		return nil
	}
	return s.rebuildFor(found, now)
}

func sameDevice(a, b device) bool {
	return a.id == b.id && a.entity == b.entity && a.rejected == b.rejected &&
		slices.Equal(a.compute, b.compute) && slices.Equal(a.links, b.links)
}

func (s *source) rebuild(now time.Time) error {
	found, err := s.discover()
	if err != nil {
		return err
	}
	s.discovered = now
	return s.rebuildFor(found, now)
}

// rebuildFor drops every watch and makes them anew for the devices.
func (s *source) rebuildFor(found []device, now time.Time) error {
	s.unwatchAll()
	s.again, s.profAt, s.refused = false, time.Time{}, nil
	s.models = map[string]profilingTargets{}
	s.devices = found
	clear(s.notes)
	s.learnt = map[string]map[gpu.Field]*verdict{}
	if err := s.watchAll(now); err != nil {
		return err
	}
	return s.watchHealth()
}

// note says something once for as long as it holds.
func (s *source) note(key, message, detail string) {
	s.notes[key] = gpu.Note{Key: key, Message: message, Detail: detail}
}

func (s *source) noteList() []gpu.Note {
	keys := slices.Sorted(maps.Keys(s.notes))
	out := make([]gpu.Note, 0, len(keys))
	for _, k := range keys {
		out = append(out, s.notes[k])
	}
	return out
}
