package sim

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// maxExport is how many spans one export request has at most (the Python SDK's max_export_batch_size).
const maxExport = 512

// process is one emitter of spans: its resource, and what it has not exported yet.
type process struct {
	service  string
	resource func(pcommon.Map)
	full     []ptrace.Traces
	td       ptrace.Traces
	scopes   map[string]ptrace.ScopeSpans
	count    int
}

func newProcess(service string, resource func(pcommon.Map)) *process {
	return &process{service: service, resource: resource}
}

// scope is an instrumentation scope with its schema.
type scope struct{ name, version, schema string }

// span appends a span to be exported next.
func (p *process) span(s scope) ptrace.Span {
	if p.count == maxExport {
		p.full = append(p.full, p.td)
		p.scopes = nil
	}
	if p.scopes == nil {
		p.count = 0
		p.td, p.scopes = ptrace.NewTraces(), map[string]ptrace.ScopeSpans{}
		p.resource(p.td.ResourceSpans().AppendEmpty().Resource().Attributes())
	}
	ss, ok := p.scopes[s.name]
	if !ok {
		ss = p.td.ResourceSpans().At(0).ScopeSpans().AppendEmpty()
		ss.Scope().SetName(s.name)
		ss.Scope().SetVersion(s.version)
		ss.SetSchemaUrl(s.schema)
		p.scopes[s.name] = ss
	}
	p.count++
	return ss.Spans().AppendEmpty()
}

// drain returns the export requests since the last time.
func (p *process) drain() []ptrace.Traces {
	all := p.full
	if p.count > 0 {
		all = append(all, p.td)
	}
	p.full, p.scopes, p.count = nil, nil, 0
	return all
}

// Span flags as the Python SDK sets them: bit 8 says that the next is known, bit 9 that the parent is remote.
const (
	flagsLocal  = 0x100
	flagsRemote = 0x300
)

// pythonResource is the default resource of the Python SDK.
func pythonResource(m pcommon.Map, version, instance, service string) {
	m.PutStr("telemetry.sdk.language", "python")
	m.PutStr("telemetry.sdk.name", "opentelemetry")
	m.PutStr("telemetry.sdk.version", version)
	m.PutStr("service.instance.id", instance)
	m.PutStr("service.name", service)
}

func (w *World) engineProcess(e *engine) *process {
	instance := w.random.uuid()
	pid := strconv.Itoa(1000 + w.random.IntN(30000))
	return newProcess(e.Name, func(m pcommon.Map) {
		pythonResource(m, "1.45.2", instance, e.Name)
		m.PutStr("vllm.instrumenting_module_name", "vllm.llm_engine")
		m.PutStr("vllm.process_id", pid)
	})
}

func (w *World) gatewayResource() (string, func(pcommon.Map)) {
	instance, name := w.random.uuid(), w.cfg.Gateway.Name
	return name, func(m pcommon.Map) {
		pythonResource(m, "1.45.1", instance, name)
		m.PutStr("deployment.environment.name", "simulated")
	}
}

func (w *World) clientResource() (string, func(pcommon.Map)) {
	instance, name := w.random.uuid(), w.cfg.Client.Name
	return name, func(m pcommon.Map) { pythonResource(m, "1.45.2", instance, name) }
}
