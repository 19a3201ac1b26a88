package dcgmreceiver

import (
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/dcgmlib"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/nvmllib"
)

// newDCGMSource makes a source that talks to a host engine through libdcgm.
func newDCGMSource(cfg *Config, endpoint string, plan *gpu.Plan) gpu.Source {
	address, unix, _ := hostEngine(endpoint) // checked by Validate
	return dcgmlib.New(dcgmlib.Options{
		Address: address, UnixSocket: unix, Embedded: cfg.Embedded, Health: cfg.Health,
		Interval: cfg.CollectionInterval, Profiling: cfg.ProfilingInterval, Plan: plan,
		MIGUUIDs: nvmllib.MIGUUIDs,
	})
}

func newNVMLSource(cfg *Config, plan *gpu.Plan) gpu.Source {
	return nvmllib.New(nvmllib.Options{Interval: cfg.CollectionInterval, Plan: plan})
}
