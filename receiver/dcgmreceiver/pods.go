package dcgmreceiver

import (
	"context"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/metadata"
)

type podLookup struct{}

func newPodLookup(*Config) *podLookup                                               { return &podLookup{} }
func (p *podLookup) close()                                                         {}
func (p *podLookup) fill(context.Context, *gpu.Reading, *metadata.TelemetryBuilder) {}
