//go:build cgo && linux && !nodcgm

package dcgmlib

import (
	"errors"
	"fmt"
	"slices"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// Fields that identify a GPU. They are read live: no watch is needed, and dcgmGetDeviceAttributes and its kin fail
// when library and binding differ by a minor version.
var identity = []dcgm.Short{1, 50, 52, 53, 54, 55, 57}

const maxLinks = 18 // NVLink links of a GPU that are looked for

// discover lists GPUs and MIG instances with their identities, GPUs first.
func (s *source) discover() ([]device, error) {
	ids, err := dcgm.GetEntityGroupEntities(dcgm.FE_GPU)
	if err != nil {
		return nil, s.withCode(err)
	}
	slices.Sort(ids)
	entities := make([]dcgm.GroupEntityPair, len(ids))
	out := make([]device, len(ids))
	for i, id := range ids {
		entities[i] = dcgm.GroupEntityPair{EntityGroupId: dcgm.FE_GPU, EntityId: id}
		out[i] = device{entity: entities[i], gpuID: id, id: gpu.Device{Index: gpu.None, Minor: gpu.None, Instance: gpu.None}}
		out[i].state, out[i].rejected = s.status(id)
	}
	strings, err := liveValues(entities, identity)
	if err != nil {
		return nil, err
	}
	for i := range out {
		s.identify(&out[i], strings)
	}
	if err := s.findLinks(out); err != nil {
		return nil, err
	}
	instances, err := s.discoverMIG(out)
	if err != nil {
		return nil, err
	}
	return slices.Concat(out, instances), nil
}

// status is a GPU's condition as the engine has it.
func (s *source) status(id uint) (state gpu.State, rejected bool) {
	switch dcgm.GetGPUStatus(id) {
	case dcgm.EntityStatusLost, dcgm.EntityStatusDetached:
		return gpu.StateLost, false
	case dcgm.EntityStatusUnsupported, dcgm.EntityStatusInaccessible, dcgm.EntityStatusDisabled:
		return gpu.StateUnknown, true
	}
	return gpu.StateOK, false
}

// identify fills in what the engine says of a GPU. A GPU that is lost cannot be asked, so the last known answer stands.
func (s *source) identify(d *device, live []dcgm.FieldValue_v2) {
	known, hasKnown := s.identities[d.gpuID]
	for i := range live {
		v := &live[i]
		if v.EntityID != d.gpuID || v.Status != 0 {
			continue
		}
		switch f := gpu.Field(v.FieldID); {
		case v.FieldType == dcgm.DCGM_FT_STRING && v.StringValue != nil:
			text, _ := gpu.CleanString(*v.StringValue)
			switch f {
			case gpu.FieldDriverVersion:
				d.id.Driver = text
			case gpu.FieldName:
				d.id.Model = text
			case gpu.FieldSerial:
				d.id.Serial = text
			case gpu.FieldUUID:
				d.id.UUID = text
			case gpu.FieldPCIBusID:
				d.id.BusID = text
			}
		case v.FieldType == dcgm.DCGM_FT_INT64:
			n := gpu.Int(v.Int64())
			if n.Check() != gpu.ReasonOK || n.Int < 0 {
				continue
			}
			switch f {
			case 52:
				d.id.Index = int(n.Int)
			case 55:
				d.id.Minor = int(n.Int)
				d.id.Name = fmt.Sprintf("nvidia%d", n.Int)
			}
		}
	}
	switch {
	case d.id.UUID != "":
		d.id.ID = d.id.UUID
		s.identities[d.gpuID] = d.id
	case hasKnown:
		d.id = known
	default:
		d.id.ID = fmt.Sprintf("dcgm/gpu/%d", d.gpuID)
	}
	d.model = d.id.Model
}

// discoverMIG lists MIG instances with their compute instances. An engine or GPU without MIG has none.
func (s *source) discoverMIG(gpus []device) ([]device, error) {
	h, err := dcgm.GetGPUInstanceHierarchy()
	if err != nil {
		if err = s.withCode(err); lostConnection(err) {
			return nil, err
		}
		return nil, nil
	}
	var out []device
	byEntity := map[uint]int{}
	for i := range min(h.Count, dcgm.MAX_HIERARCHY_INFO) {
		e := &h.EntityList[i]
		if e.Entity.EntityGroupId != dcgm.FE_GPU_I {
			continue
		}
		p := slices.IndexFunc(gpus, func(d device) bool { return d.gpuID == e.Parent.EntityId })
		if p < 0 || gpus[p].id.UUID == "" {
			continue
		}
		parent := gpus[p].id
		d := device{entity: e.Entity, gpuID: e.Parent.EntityId, model: parent.Model, state: gpus[p].state, id: parent}
		d.id.Parent, d.id.UUID, d.id.Instance = parent.UUID, "", int(e.Info.NvmlInstanceId)
		d.id.Profile = fmt.Sprintf("%dg", e.Info.NvmlProfileSlices)
		byEntity[e.Entity.EntityId] = len(out)
		out = append(out, d)
	}
	if len(out) == 0 {
		return nil, nil
	}
	for i := range min(h.Count, dcgm.MAX_HIERARCHY_INFO) {
		e := &h.EntityList[i]
		if j, ok := byEntity[e.Parent.EntityId]; ok && e.Entity.EntityGroupId == dcgm.FE_GPU_CI {
			out[j].compute = append(out[j].compute, e.Entity)
		}
	}
	uuids := map[gpu.MIGKey]string{}
	if s.opts.MIGUUIDs != nil {
		uuids = s.opts.MIGUUIDs()
	}
	entities := make([]dcgm.GroupEntityPair, len(out))
	for i := range out {
		entities[i] = out[i].entity
	}
	names, err := liveValues(entities, []dcgm.Short{dcgm.Short(gpu.FieldName)})
	if err != nil {
		return nil, err
	}
	for i := range out {
		d := &out[i]
		d.id.UUID = uuids[gpu.MIGKey{GPU: d.id.Parent, Instance: d.id.Instance}]
		d.id.ID = gpu.InstanceID(d.id.UUID, d.id.Parent, d.id.Instance)
		for j := range names {
			if v := &names[j]; v.EntityID == d.entity.EntityId && v.Status == 0 && v.StringValue != nil {
				if p := gpu.ProfileOf(*v.StringValue); p != "" {
					d.id.Profile = p
				}
			}
		}
	}
	return out, nil
}

// findLinks asks each GPU which of its NVLink links exist. Engines before 4.5 do not know the field.
func (s *source) findLinks(gpus []device) error {
	links := s.known(s.fields[gpu.ClassLink])
	if len(links) == 0 || len(gpus) == 0 {
		return nil
	}
	var entities []dcgm.GroupEntityPair
	for i := range gpus {
		if gpus[i].state == gpu.StateOK && !gpus[i].rejected {
			for n := range maxLinks {
				entities = append(entities, linkEntity(gpus[i].gpuID, n))
			}
		}
	}
	values, err := liveValues(entities, links[:1])
	if err != nil {
		return err
	}
	for i := range values {
		v := &values[i]
		if v.Status != 0 || gpu.Int(v.Int64()).Check() != gpu.ReasonOK {
			continue
		}
		id, n := linkOf(v.EntityID)
		for j := range gpus {
			if gpus[j].gpuID == id {
				gpus[j].links = append(gpus[j].links, n)
			}
		}
	}
	return nil
}

// linkEntity packs a GPU's link as dcgm_link_t does: entity group, link index, GPU id.
func linkEntity(id uint, link int) dcgm.GroupEntityPair {
	return dcgm.GroupEntityPair{EntityGroupId: dcgm.FE_LINK, EntityId: uint(dcgm.FE_GPU)&0xff | uint(link)&0xffff<<8 | id&0xff<<24}
}

func linkOf(entity uint) (id uint, link int) { return entity >> 24 & 0xff, int(entity >> 8 & 0xffff) }

// known keeps the fields that the library has metadata for.
func (s *source) known(fields []gpu.Field) []dcgm.Short {
	var out []dcgm.Short
	for _, f := range fields {
		if _, err := dcgm.FieldGetByID(dcgm.Short(f)); err == nil {
			out = append(out, dcgm.Short(f))
		}
	}
	return out
}

// liveValues asks the driver now, without a watch. Errors other than a lost connection mean that there is nothing.
func liveValues(entities []dcgm.GroupEntityPair, fields []dcgm.Short) ([]dcgm.FieldValue_v2, error) {
	var out []dcgm.FieldValue_v2
	for chunk := range slices.Chunk(entities, max(1, valuesACall/len(fields))) {
		values, err := dcgm.EntitiesGetLatestValues(chunk, fields, dcgm.DCGM_FV_FLAG_LIVE_DATA)
		if lostConnection(err) {
			return nil, err
		}
		out = append(out, values...)
	}
	return out, nil
}

// withCode gives an error whose code the binding dropped the code of a call that keeps it, if that fails too.
func (s *source) withCode(err error) error {
	if code(err) != 0 {
		return err
	}
	if _, probe := dcgm.GetSupportedDevices(); probe != nil {
		return errors.Join(err, probe)
	}
	return err
}
