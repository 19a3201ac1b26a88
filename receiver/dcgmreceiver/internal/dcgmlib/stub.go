//go:build !cgo || !linux || nodcgm

package dcgmlib

import (
	"context"
	"errors"
	"time"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// New makes a source that cannot be opened.
func New(Options) gpu.Source { return stub{} }

type stub struct{}

func (stub) Name() string { return "dcgm" }

func (stub) Open(context.Context) error {
	return &gpu.Down{Condition: gpu.SourceNotBuilt, Err: errors.New("this build has no DCGM support (it needs linux and cgo); use source: dcgm_exporter")}
}

func (s stub) Read(ctx context.Context, _ time.Time) (*gpu.Reading, error) { return nil, s.Open(ctx) }
func (stub) Close() error                                                  { return nil }
