// Package nvmllib reads GPUs through libnvidia-ml, the driver's own library, and NVIDIA's go-nvml binding.
//
// It needs neither a host engine nor privileges. Hardware counters are there on Hopper and later (GPM). Without cgo, or
// with the build tag nodcgm, a stub says so.
package nvmllib

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// Options say what to read.
type Options struct {
	Interval time.Duration // between two reads
	Plan     *gpu.Plan
	Library  string           // path of the library; "" means the loader's libnvidia-ml.so.1
	Now      func() time.Time // our clock; nil means time.Now
}
