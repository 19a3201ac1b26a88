//go:build cgo && linux && !nodcgm

package dcgmlib

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// watch is one group of entities whose fields the engine updates. Models and classes have watches of their own, since
// the engine undoes a whole watch when any field of it fails on any GPU of it.
type watch struct {
	class    gpu.Class
	model    string
	event    bool // XIDs
	entities []dcgm.GroupEntityPair
	fields   []dcgm.Short
	group    dcgm.GroupHandle
	fgroup   dcgm.FieldHandle
	since    bool // read all samples since cursor, else the latest
	cursor   time.Time
}

// watchAll watches every wanted field of every device.
func (s *source) watchAll(now time.Time) error {
	models := map[string]bool{}
	for i := range s.devices {
		models[s.devices[i].model] = true
	}
	for _, model := range slices.Sorted(maps.Keys(models)) {
		if err := s.watchModel(model, now); err != nil {
			return err
		}
	}
	if err := s.measureSkew(now); err != nil {
		return err
	}
	for _, w := range s.watches {
		if w.since {
			w.cursor = now.Add(s.skew)
		}
	}
	if s.xidCursor.IsZero() {
		s.xidCursor = now.Add(s.skew) // older XIDs were somebody else's to count
	}
	return nil
}

// watchModel watches the GPUs of one model and their MIG instances.
func (s *source) watchModel(model string, now time.Time) error {
	var gpus, instances, computes, links []dcgm.GroupEntityPair
	for i := range s.devices {
		d := &s.devices[i]
		if d.model != model || d.rejected || d.state == gpu.StateLost {
			continue
		}
		if d.id.IsMIG() {
			instances = append(instances, d.entity)
			computes = append(computes, d.compute...)
			continue
		}
		gpus = append(gpus, d.entity)
		for _, n := range d.links {
			links = append(links, linkEntity(d.gpuID, n))
		}
	}
	events := watch{class: gpu.ClassCore, event: true, model: model, entities: slices.Concat(gpus, instances), since: true}
	steps := []struct {
		watch
		fields []gpu.Field
		freq   time.Duration
	}{
		{watch{class: gpu.ClassCore, model: model, entities: gpus}, s.fields[gpu.ClassCore], coreUpdate},
		{watch{class: gpu.ClassSlow, model: model, entities: gpus}, s.fields[gpu.ClassSlow], slowUpdate},
		{watch{class: gpu.ClassExtra, model: model, entities: gpus}, s.fields[gpu.ClassExtra], coreUpdate},
		{watch{class: gpu.ClassCore, model: model, entities: slices.Concat(instances, computes)}, s.opts.Plan.Fields(gpu.ClassCore, true), coreUpdate},
		{watch{class: gpu.ClassSlow, model: model, entities: slices.Concat(instances, computes)}, s.opts.Plan.Fields(gpu.ClassSlow, true), slowUpdate},
		{watch{class: gpu.ClassLink, model: model, entities: links}, s.fields[gpu.ClassLink], slowUpdate},
		{events, []gpu.Field{gpu.FieldXID}, coreUpdate},
	}
	for _, st := range steps {
		w := st.watch
		w.fields = s.known(st.fields)
		if err := s.watchMost(&w, st.freq); err != nil {
			return err
		}
	}
	s.models[model] = profilingTargets{gpus, instances}
	return s.watchProfiling(model, now)
}

// watchMost watches w, or as much of it as the engine accepts: first it looks for entities that spoil it, then for
// fields. What is refused is noted once and not tried again until the devices change.
func (s *source) watchMost(w *watch, freq time.Duration) error {
	if len(w.entities) == 0 || len(w.fields) == 0 {
		return nil
	}
	err := s.tryWatch(w, freq, true)
	if err == nil || lostConnection(err) {
		return err
	}
	first := err
	var good, bad []dcgm.GroupEntityPair
	if len(w.entities) > 1 {
		for _, e := range w.entities {
			one := *w
			one.entities = []dcgm.GroupEntityPair{e}
			switch err := s.tryWatch(&one, freq, false); {
			case err == nil:
				good = append(good, e)
			case lostConnection(err):
				return err
			default:
				bad = append(bad, e)
			}
		}
	} else {
		bad = w.entities
	}
	if len(good) > 0 {
		part := *w
		part.entities = good
		if err := s.tryWatch(&part, freq, true); err != nil {
			if lostConnection(err) {
				return err
			}
			bad = w.entities
		}
	}
	rest := *w
	rest.entities = bad
	fields, err := s.goodFields(&rest, rest.fields, freq)
	if err != nil {
		return err
	}
	s.note("refused_"+w.class.String()+"_"+w.model, "the host engine refuses some fields; the rest is read",
		fmt.Sprintf("model %q, class %s, %d of %d entities, %d of their %d fields work: %v", w.model, w.class, len(bad), len(w.entities), len(fields), len(w.fields), first))
	if len(fields) == 0 {
		return nil
	}
	rest.fields = fields
	if err := s.tryWatch(&rest, freq, true); lostConnection(err) {
		return err
	}
	return nil
}

// goodFields finds the fields that can be watched, by halving.
func (s *source) goodFields(w *watch, fields []dcgm.Short, freq time.Duration) ([]dcgm.Short, error) {
	if len(fields) == 0 || len(w.entities) == 0 {
		return nil, nil
	}
	one := *w
	one.fields = fields
	switch err := s.tryWatch(&one, freq, false); {
	case err == nil:
		return fields, nil
	case lostConnection(err):
		return nil, err
	case len(fields) == 1:
		return nil, nil
	}
	left, err := s.goodFields(w, fields[:len(fields)/2], freq)
	if err != nil {
		return nil, err
	}
	right, err := s.goodFields(w, fields[len(fields)/2:], freq)
	return slices.Concat(left, right), err
}

// tryWatch makes the group, the field group and the watch. A trial, and a failure, leaves nothing behind.
func (s *source) tryWatch(w *watch, freq time.Duration, keep bool) (err error) {
	name := s.newName()
	if w.group, err = dcgm.CreateGroup(name); err != nil {
		return s.withCode(err)
	}
	made, watched := false, false
	defer func() {
		if err == nil && keep {
			s.watches = append(s.watches, w)
			return
		}
		if watched {
			_ = dcgm.UnwatchFields(w.fgroup, w.group)
		}
		if made {
			_ = dcgm.FieldGroupDestroy(w.fgroup)
		}
		_ = dcgm.DestroyGroup(w.group)
	}()
	for _, e := range w.entities {
		if err := dcgm.AddEntityToGroup(w.group, e.EntityGroupId, e.EntityId); err != nil {
			return s.withCode(err)
		}
	}
	if w.fgroup, err = dcgm.FieldGroupCreate(name, w.fields); err != nil {
		return s.withCode(err)
	}
	made = true
	keepAge := 3 * max(s.opts.Interval, freq)
	watched = true // a failure after the watch itself, in the first update, leaves it set
	if err := dcgm.WatchFieldsWithGroupEx(w.fgroup, w.group, freq.Microseconds(), keepAge.Seconds(), 0); err != nil {
		return s.withCode(err)
	}
	return nil
}

// newName makes a name for a group: the engine refuses a second field group of the same name.
func (s *source) newName() string {
	return fmt.Sprintf("otelcol-llm-%d-%d", os.Getpid(), sequence.Add(1))
}

var sequence atomic.Uint64

func (s *source) unwatchAll() {
	for _, w := range s.watches {
		_ = dcgm.UnwatchFields(w.fgroup, w.group)
		_ = dcgm.FieldGroupDestroy(w.fgroup)
		_ = dcgm.DestroyGroup(w.group)
	}
	s.watches = nil
	if s.health != nil {
		_ = dcgm.DestroyGroup(*s.health)
		s.health = nil
	}
}

// measureSkew compares the newest sample, which the engine has just taken, with our clock. On one machine they agree.
func (s *source) measureSkew(now time.Time) error {
	s.skew = 0
	for _, w := range s.watches {
		if w.class != gpu.ClassCore || w.event {
			continue
		}
		values, err := dcgm.EntitiesGetLatestValues(w.entities[:1], w.fields[:min(len(w.fields), 16)], 0)
		if err != nil {
			if lostConnection(err) {
				return err
			}
			continue
		}
		var newest int64
		for i := range values {
			if values[i].Status == 0 {
				newest = max(newest, values[i].TS)
			}
		}
		if skew := time.UnixMicro(newest).Sub(now); newest > 0 && (skew > 2*time.Second || skew < -2*time.Second) {
			s.skew = skew
		}
		return nil
	}
	return nil
}
