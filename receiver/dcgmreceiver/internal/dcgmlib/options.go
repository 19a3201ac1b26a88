// Package dcgmlib reads GPUs through libdcgm and NVIDIA's go-dcgm binding.
//
// The binding keeps one process-wide connection and dies when a function is called that the loaded library lacks, so
// everything that touches it is in this package. Without cgo, or with the build tag nodcgm, a stub says so.
package dcgmlib

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// Options say what to connect to and what to read.
type Options struct {
	Address    string // host:port, or a path when UnixSocket, or vsock://...
	UnixSocket bool
	Embedded   bool          // run a host engine in this process instead of connecting
	Health     bool          // let the engine check its GPUs' health
	Interval   time.Duration // between two reads
	Profiling  time.Duration // between two samples of a hardware counter
	Plan       *gpu.Plan
	Now        func() time.Time // our clock; nil means time.Now

	// MIGUUIDs finds the UUIDs of MIG instances, which DCGM does not tell: by GPU UUID and instance id. May be nil.
	MIGUUIDs func() map[gpu.MIGKey]string
}
