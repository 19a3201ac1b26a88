//go:build !cgo || !linux || nodcgm

package nvmllib

import (
	"context"
	"errors"
	"time"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// New makes a source that cannot be opened.
func New(Options) gpu.Source { return stub{} }

type stub struct{}

func (stub) Name() string { return "nvml" }

func (stub) Open(context.Context) error {
	return &gpu.Down{Condition: gpu.SourceNotBuilt, Err: errors.New("this build has no NVML support (it needs linux and cgo); use source: dcgm_exporter")}
}

func (s stub) Read(ctx context.Context, _ time.Time) (*gpu.Reading, error) { return nil, s.Open(ctx) }
func (stub) Close() error                                                  { return nil }

// MIGUUIDs knows none.
func MIGUUIDs() map[gpu.MIGKey]string { return nil }
