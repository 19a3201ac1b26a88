//go:build cgo && linux && !nodcgm

package dcgmlib

import (
	"fmt"
	"slices"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// profilingTargets are the entities of one model.
type profilingTargets struct{ gpus, instances []dcgm.GroupEntityPair }

// retryProfiling tries the models again that were refused.
func (s *source) retryProfiling(now time.Time) error {
	models := s.refused
	s.refused, s.profAt = nil, time.Time{}
	for _, m := range models {
		delete(s.notes, "profiling_"+m)
		before := len(s.watches)
		if err := s.watchProfiling(m, now); err != nil {
			return err
		}
		for _, w := range s.watches[before:] {
			w.cursor = now.Add(s.skew)
		}
	}
	return nil
}

// watchProfiling watches the hardware counters of one model. Who may read them differs by generation, privilege and
// who else does: a refusal costs these fields only, is said once and is tried again every few minutes.
func (s *source) watchProfiling(model string, now time.Time) error {
	gpus, instances := s.models[model].gpus, s.models[model].instances
	wanted := s.known(s.fields[gpu.ClassProfiling])
	if len(wanted) == 0 || len(gpus) == 0 {
		return nil
	}
	groups, err := dcgm.GetSupportedMetricGroups(gpus[0].EntityId)
	if err != nil {
		if lostConnection(err) {
			return err
		}
		s.refuseProfiling(model, err, now)
		return nil
	}
	offered := func(fields []dcgm.Short) []dcgm.Short {
		return slices.DeleteFunc(slices.Clone(fields), func(f dcgm.Short) bool {
			return !slices.ContainsFunc(groups, func(g dcgm.MetricGroup) bool { return slices.Contains(g.FieldIds, uint(f)) })
		})
	}
	fields := offered(wanted)
	if len(fields) == 0 {
		s.refuseProfiling(model, fmt.Errorf("no metric group has a wanted field"), now)
		return nil
	}
	targets := []watch{
		{class: gpu.ClassProfiling, model: model, entities: gpus, fields: fields, since: true},
		{class: gpu.ClassProfiling, model: model, entities: instances, fields: offered(s.known(s.opts.Plan.Fields(gpu.ClassProfiling, true))), since: true},
	}
	for i := range targets {
		w := &targets[i]
		if len(w.entities) == 0 || len(w.fields) == 0 {
			continue
		}
		err := s.tryWatch(w, s.opts.Profiling, true)
		if err == nil {
			continue
		}
		if lostConnection(err) {
			return err
		}
		// Up to Ampere, groups of one major id exclude each other: one of each fits a single pass.
		w.fields = singlePass(groups, w.fields)
		if again := s.tryWatch(w, s.opts.Profiling, true); again == nil {
			s.note("multi_pass_"+model, "the GPU cannot count all profiling fields at once; some are left out",
				fmt.Sprintf("model %q reads %d of %d fields: %v", model, len(w.fields), len(fields), err))
			continue
		} else if lostConnection(again) {
			return again
		}
		s.refuseProfiling(model, err, now)
	}
	return nil
}

// singlePass picks of each major group the minor one with the most wanted fields. The number of metric groups is small.
func singlePass(groups []dcgm.MetricGroup, wanted []dcgm.Short) []dcgm.Short {
	best := map[uint][]dcgm.Short{}
	var majors []uint
	for _, g := range groups {
		have := slices.DeleteFunc(slices.Clone(wanted), func(f dcgm.Short) bool { return !slices.Contains(g.FieldIds, uint(f)) })
		if _, ok := best[g.Major]; !ok {
			majors = append(majors, g.Major)
		}
		if len(have) > len(best[g.Major]) || best[g.Major] == nil {
			best[g.Major] = have
		}
	}
	var out []dcgm.Short
	for _, major := range majors {
		for _, f := range best[major] {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

func (s *source) refuseProfiling(model string, err error, now time.Time) {
	s.profAt = now.Add(profilingRetry)
	if !slices.Contains(s.refused, model) {
		s.refused = append(s.refused, model)
	}
	hint := "it may be in use by another client"
	switch code(err) {
	case codeProfNotSupported, codeNotSupported:
		hint = "this GPU does not offer it, or the package datacenter-gpu-manager-4-proprietary is missing beside the host engine"
	case codeNoPermission, codeRequiresRoot:
		hint = "run the host engine as root or with CAP_SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"
	case codeProfLibrary:
		hint = "another host engine or Nsight holds the counters; stop it, or run dcgmi profile --pause there"
	case codeModuleNotLoaded:
		hint = "the host engine has no profiling module; install datacenter-gpu-manager-4-proprietary beside it"
	}
	s.note("profiling_"+model, "profiling is refused; SM, pipe, DRAM and PCIe activity are missing, all else is read",
		fmt.Sprintf("model %q: %v; %s; trying again every %s", model, err, hint, profilingRetry))
}
