//go:build cgo && linux && !nodcgm

package dcgmlib

import (
	"slices"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// valuesACall bounds the values of one call: up to here the binding reuses its buffers, of 4 KiB a value.
const valuesACall = 256

// read reads the state, the values, the events and the health of every device.
func (s *source) read(now time.Time) (*gpu.Reading, error) {
	out := &gpu.Reading{
		At: now, Clock: now.Add(s.skew), Source: "dcgm", Step: s.opts.Profiling, Endpoint: s.address(),
		Devices: make([]gpu.DeviceReading, len(s.devices)),
	}
	// What the engine updates every second is stale when it was taken before our previous read.
	out.MaxAge[gpu.ClassCore] = max(s.opts.Interval, 5*coreUpdate)
	out.MaxAge[gpu.ClassExtra] = out.MaxAge[gpu.ClassCore]
	out.MaxAge[gpu.ClassProfiling] = max(s.opts.Interval, 5*s.opts.Profiling)
	out.MaxAge[gpu.ClassSlow] = max(5*slowUpdate/2, 5*s.opts.Interval/2)
	out.MaxAge[gpu.ClassLink] = out.MaxAge[gpu.ClassSlow]

	states := map[uint]gpu.State{}
	for i := range s.devices {
		d := &s.devices[i]
		state, asked := states[d.gpuID]
		if !asked {
			var rejected bool
			state, rejected = s.status(d.gpuID)
			states[d.gpuID] = state
			s.again = s.again || rejected != d.rejected || (state == gpu.StateOK) != (d.state == gpu.StateOK)
		}
		out.Devices[i] = gpu.DeviceReading{Device: d.id, State: state}
	}
	for _, w := range s.watches {
		if err := s.readWatch(w, out); err != nil {
			return nil, err
		}
	}
	// One cursor serves all models, so it moves when all have been read. It outlives the connection: an engine that is
	// found again still has what happened meanwhile, if another client watches.
	for _, e := range out.Events {
		if after := e.At.Add(time.Microsecond); after.After(s.xidCursor) {
			s.xidCursor = after
		}
	}
	s.prune()
	s.lookForFreeze(out)
	if err := s.checkHealth(out); err != nil {
		return nil, err
	}
	out.Notes = s.noteList()
	return out, nil
}

// readWatch reads one watch. An error that is not the connection's means that the devices have changed.
func (s *source) readWatch(w *watch, out *gpu.Reading) error {
	if w.since {
		return s.readSince(w, out)
	}
	for chunk := range slices.Chunk(w.entities, max(1, valuesACall/len(w.fields))) {
		values, err := dcgm.EntitiesGetLatestValues(chunk, w.fields, 0)
		if err != nil {
			if lostConnection(err) {
				return err
			}
			s.again = true
			continue
		}
		s.take(w, values, out)
	}
	return nil
}

func (s *source) readSince(w *watch, out *gpu.Reading) error {
	from := w.cursor
	if w.event {
		from = s.xidCursor
	}
	values, next, err := dcgm.GetValuesSince(w.group, w.fgroup, from)
	if err != nil {
		if err = s.withCode(err); lostConnection(err) {
			return err
		}
		s.again = true
		return nil
	}
	if w.event {
		s.takeEvents(values, out)
	} else {
		s.take(w, values, out)
		if next.After(w.cursor) {
			w.cursor = next
		}
	}
	return nil
}

// take files values under their devices. Framebuffer fields of a MIG instance are read from the instance, or from its
// compute instances where the engine has them only there.
func (s *source) take(w *watch, values []dcgm.FieldValue_v2, out *gpu.Reading) {
	unwatched := 0
	for i := range values {
		v := &values[i]
		at, link := s.find(v)
		if at < 0 {
			continue
		}
		sample := gpu.Sample{Field: gpu.Field(v.FieldID), Link: link, At: time.UnixMicro(v.TS), Reason: reasonOf(v.Status)}
		switch v.FieldType {
		case dcgm.DCGM_FT_INT64, dcgm.DCGM_FT_TIMESTAMP:
			sample.Value = gpu.Int(v.Int64())
		case dcgm.DCGM_FT_DOUBLE:
			sample.Value = gpu.Double(v.Float64())
		default:
			if sample.Reason == gpu.ReasonOK {
				sample.Reason = gpu.ReasonRange // text or a blob is no measurement
			}
		}
		if sample.Reason == gpu.ReasonUnwatched {
			unwatched++
		}
		d := &out.Devices[at]
		if v.EntityGroupId == dcgm.FE_GPU_CI {
			mergeCompute(d, sample)
			continue
		}
		d.Samples = append(d.Samples, sample)
		s.learn(w, &sample)
	}
	if unwatched > 0 && unwatched == len(values) {
		s.again = true // the engine no longer knows our watches
	}
}

// mergeCompute takes a compute instance's value for one its MIG instance does not have.
func mergeCompute(d *gpu.DeviceReading, sample gpu.Sample) {
	for i := range d.Samples {
		have := &d.Samples[i]
		if have.Field != sample.Field {
			continue
		}
		if (have.Reason != gpu.ReasonOK || have.Value.Check() != gpu.ReasonOK) && sample.Reason == gpu.ReasonOK && sample.Value.Check() == gpu.ReasonOK {
			*have = sample
		}
		return
	}
	d.Samples = append(d.Samples, sample)
}

// find is the index of the device a value belongs to, and the link it is about.
func (s *source) find(v *dcgm.FieldValue_v2) (at, link int) {
	if v.EntityGroupId == dcgm.FE_LINK {
		id, n := linkOf(v.EntityID)
		at := slices.IndexFunc(s.devices, func(d device) bool { return !d.id.IsMIG() && d.gpuID == id })
		return at, n
	}
	return slices.IndexFunc(s.devices, func(d device) bool {
		if v.EntityGroupId == dcgm.FE_GPU_CI {
			return slices.ContainsFunc(d.compute, func(e dcgm.GroupEntityPair) bool { return e.EntityId == v.EntityID })
		}
		return d.entity.EntityGroupId == v.EntityGroupId && d.entity.EntityId == v.EntityID
	}), gpu.None
}

// takeEvents turns samples of the XID field into events: a sample exists only when an XID happens, so each counts once.
func (s *source) takeEvents(values []dcgm.FieldValue_v2, out *gpu.Reading) {
	for i := range values {
		v := &values[i]
		at, _ := s.find(v)
		ts := time.UnixMicro(v.TS)
		if at < 0 || v.Status != 0 || gpu.Int(v.Int64()).Check() != gpu.ReasonOK || v.Int64() <= 0 {
			continue
		}
		out.Events = append(out.Events, gpu.Event{DeviceID: s.devices[at].id.ID, At: ts, XID: v.Int64()})
	}
}

// learn keeps what each field does on each model.
func (s *source) learn(w *watch, sample *gpu.Sample) {
	m := s.learnt[w.model]
	if m == nil {
		m = map[gpu.Field]*verdict{}
		s.learnt[w.model] = m
	}
	v := m[sample.Field]
	if v == nil {
		v = &verdict{}
		m[sample.Field] = v
	}
	switch why := sample.Reason; {
	case why == gpu.ReasonOK && sample.Value.CheckCounter() == gpu.ReasonOK && sample.Value.Check() == gpu.ReasonOK:
		v.good++
	case why == gpu.ReasonNotSupported, why == gpu.ReasonOK && sample.Value.Check() == gpu.ReasonNotSupported:
		v.unsupported++
	}
}

// prune stops reading, for a model, fields that it never supports and fields that only stand in for others which work.
// They stay watched, which costs us nothing, and are tried again when the devices change.
func (s *source) prune() {
	for _, w := range s.watches {
		if w.since {
			continue
		}
		m := s.learnt[w.model]
		keep := w.fields[:0:0]
		for _, f := range w.fields {
			v := m[gpu.Field(f)]
			hopeless := v != nil && v.good == 0 && v.unsupported >= quietReads*len(w.entities)
			standIn := slices.ContainsFunc(s.opts.Plan.Alternatives(gpu.Field(f)), func(a gpu.Field) bool {
				return m[a] != nil && m[a].good >= quietReads*len(w.entities)
			})
			if !hopeless && !standIn {
				keep = append(keep, f)
			}
		}
		if len(keep) > 0 {
			w.fields = keep
		}
	}
}

// lookForFreeze notes an engine that answers but no longer asks the driver: after some faults it returns blanks until it
// is restarted.
func (s *source) lookForFreeze(out *gpu.Reading) {
	values, blank := 0, 0
	for i := range out.Devices {
		if out.Devices[i].State == gpu.StateLost {
			continue
		}
		for j := range out.Devices[i].Samples {
			sm := &out.Devices[i].Samples[j]
			values++
			if sm.Reason == gpu.ReasonBlank || (sm.Reason == gpu.ReasonOK && sm.Value.Check() == gpu.ReasonBlank) {
				blank++
			}
		}
	}
	if values == 0 || blank*10 < values*9 {
		s.blankReads = 0
		delete(s.notes, "frozen")
		return
	}
	if s.blankReads++; s.blankReads >= quietReads {
		s.note("frozen", "the host engine answers but has no values; restart it", "nearly all values are blank; after an XID it may have stopped asking the driver")
	}
}

// watchHealth asks the engine to check its GPUs. Older engines and some modules refuse: then there is no health.
func (s *source) watchHealth() error {
	if !s.opts.Health || (!s.opts.Plan.On(gpu.MetricHealth) && !s.opts.Plan.On(gpu.MetricStatus)) {
		return nil
	}
	var gpus []dcgm.GroupEntityPair
	for i := range s.devices {
		if d := &s.devices[i]; !d.id.IsMIG() && !d.rejected && d.state == gpu.StateOK {
			gpus = append(gpus, d.entity)
		}
	}
	if len(gpus) == 0 {
		return nil
	}
	group, err := dcgm.CreateGroup(s.newName())
	if err == nil {
		for _, e := range gpus {
			if err == nil {
				err = dcgm.AddEntityToGroup(group, e.EntityGroupId, e.EntityId)
			}
		}
		if err == nil {
			err = dcgm.HealthSet(group, 1<<len(gpu.HealthSystems)-1)
		}
		if err == nil {
			_, err = dcgm.HealthCheck(group) // the first check only sets the starting point
		}
		if err == nil {
			s.health = &group
			return nil
		}
		_ = dcgm.DestroyGroup(group)
	}
	if err = s.withCode(err); lostConnection(err) {
		return err
	}
	s.note("health", "the host engine refuses health checks; hw.status goes by other evidence", err.Error())
	return nil
}

func (s *source) checkHealth(out *gpu.Reading) error {
	if s.health == nil {
		return nil
	}
	resp, err := dcgm.HealthCheck(*s.health)
	if err != nil {
		if lostConnection(err) {
			return err
		}
		s.again = true
		return nil
	}
	for i := range s.devices {
		if d := &s.devices[i]; !d.id.IsMIG() && !d.rejected && out.Devices[i].State == gpu.StateOK {
			out.Devices[i].HealthKnown = true
		}
	}
	for i := range resp.Incidents {
		in := &resp.Incidents[i]
		at, _ := s.find(&dcgm.FieldValue_v2{EntityGroupId: in.EntityInfo.EntityGroupId, EntityID: in.EntityInfo.EntityId})
		if at < 0 || !out.Devices[at].HealthKnown {
			continue
		}
		for bit, system := range gpu.HealthSystems {
			if in.System&(1<<bit) != 0 {
				out.Devices[at].Health = append(out.Devices[at].Health, gpu.Health{System: system, Result: int(in.Health)})
			}
		}
	}
	return nil
}
