package chains

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/spanmetricsconnector"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/attributesprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/redactionprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/batchprocessor"

	"github.com/otelcol-llm/otelcol-llm/connector/llmspanconnector"
	"github.com/otelcol-llm/otelcol-llm/processor/llmspanprocessor"
)

type (
	object = map[string]any
	list   = []any
)

// encoder is the end of a chain: it encodes what arrives, as an exporter does.
type encoder struct{ spans, records, points atomic.Int64 }

func (*encoder) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (e *encoder) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	e.spans.Add(int64(td.SpanCount()))
	_, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	return err
}

func (e *encoder) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	e.records.Add(int64(ld.LogRecordCount()))
	_, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	return err
}

func (e *encoder) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	e.points.Add(int64(md.DataPointCount()))
	_, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	return err
}

// fan gives data to several consumers as the service's fan-out does: one that changes data gets a copy, unless it is the only one. A
// connector counts as changing data when what comes after it does, as batch does (and an exporter's sending_queue::batch): this copy of
// every span is part of what a connector costs beside others, in ours and in the stock chain.
type fan struct{ mutable, readonly []consumer.Traces }

func fanOut(to ...consumer.Traces) fan {
	var f fan
	for _, c := range to {
		if c.Capabilities().MutatesData {
			f.mutable = append(f.mutable, c)
		} else {
			f.readonly = append(f.readonly, c)
		}
	}
	return f
}

func (f fan) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: len(f.mutable) > 0 && len(f.readonly) == 0}
}

func (f fan) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	for i, c := range f.mutable {
		own := td
		if i < len(f.mutable)-1 || len(f.readonly) > 0 {
			own = ptrace.NewTraces()
			td.CopyTo(own)
		}
		if err := c.ConsumeTraces(ctx, own); err != nil {
			return err
		}
	}
	if len(f.readonly) > 1 {
		td.MarkReadOnly()
	}
	for _, c := range f.readonly {
		if err := c.ConsumeTraces(ctx, td); err != nil {
			return err
		}
	}
	return nil
}

// changing is a consumer before one that changes data, to which it passes on what it is given.
type changing struct{ consumer.Traces }

func (changing) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// chain is a pipeline of real components, made by their factories.
type chain struct {
	head  consumer.Traces
	end   *encoder
	parts []component.Component
}

func (c *chain) start(p component.Component, err error) error {
	if err != nil {
		return err
	}
	c.parts = append(c.parts, p)
	return p.Start(context.Background(), componenttest.NewNopHost())
}

func (c *chain) shutdown() error {
	for i := len(c.parts) - 1; i >= 0; i-- { // first in, first stopped
		if err := c.parts[i].Shutdown(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

func configured(cfg component.Config, m object) (component.Config, error) {
	return cfg, confmap.NewFromStringMap(m).Unmarshal(cfg)
}

func (c *chain) processor(f processor.Factory, m object, next consumer.Traces) (consumer.Traces, error) {
	cfg, err := configured(f.CreateDefaultConfig(), m)
	if err != nil {
		return nil, err
	}
	set := processor.Settings{ID: component.NewID(f.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	p, err := f.CreateTraces(context.Background(), set, cfg, next)
	return p, c.start(p, err)
}

// connectors makes and starts the instances of a connector for some of its outputs, of one configuration, as the service does.
func (c *chain) connectors(f connector.Factory, m object, outputs ...pipeline.Signal) ([]consumer.Traces, error) {
	cfg, err := configured(f.CreateDefaultConfig(), m)
	if err != nil {
		return nil, err
	}
	set := connector.Settings{ID: component.NewID(f.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	var out []consumer.Traces
	for _, o := range outputs {
		var x connector.Traces
		changes := false
		switch o {
		case pipeline.SignalMetrics:
			x, err = f.CreateTracesToMetrics(context.Background(), set, cfg, c.end)
		case pipeline.SignalLogs:
			x, err = f.CreateTracesToLogs(context.Background(), set, cfg, c.end)
		default:
			var batched consumer.Traces
			if batched, err = c.processor(batchprocessor.NewFactory(), object{}, c.end); err != nil {
				return nil, err
			}
			x, err = f.CreateTracesToTraces(context.Background(), set, cfg, batched)
			changes = batched.Capabilities().MutatesData
		}
		if err := c.start(x, err); err != nil {
			return nil, err
		}
		if changes {
			out = append(out, changing{x})
		} else {
			out = append(out, x)
		}
	}
	return out, nil
}

// The stock chain: rename and drop some keys, hash two or search all values for three patterns, metrics, tail sampling.
var (
	transform = object{"error_mode": "ignore", "trace_statements": list{
		`set(span.attributes["llm.tenant"], span.attributes["tenant"]) where span.attributes["tenant"] != nil`,
		`set(span.attributes["gen_ai.system"], span.attributes["gen_ai.provider.name"]) where span.attributes["gen_ai.system"] == nil`,
		`set(span.attributes["llm.total_tokens"], span.attributes["gen_ai.usage.input_tokens"] + span.attributes["gen_ai.usage.output_tokens"]) where span.attributes["gen_ai.usage.input_tokens"] != nil`,
		`delete_key(span.attributes, "session.id")`,
		`delete_matching_keys(span.attributes, "^http\\.request\\..*")`,
		`replace_pattern(span.attributes["user.id"], "^u-", "user-")`,
	}}
	stockHash = object{"actions": list{
		object{"key": "gen_ai.input.messages", "action": "hash"},
		object{"key": "gen_ai.output.messages", "action": "hash"},
	}}
	stockRedact = object{"allow_all_keys": true, "summary": "silent", "blocked_values": list{
		`[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}`, `4[0-9]{12}(?:[0-9]{3})?`, `sk-[A-Za-z0-9]{20,}`,
	}}
	spanMetrics = object{
		"histogram":  object{"explicit": object{"buckets": list{"100ms", "250ms", "500ms", "1s", "2s", "5s", "10s"}}},
		"dimensions": list{object{"name": "gen_ai.request.model"}, object{"name": "gen_ai.operation.name"}, object{"name": "tenant"}},
	}
)

func tailSampling(wait string) object {
	return object{"decision_wait": wait, "num_traces": 200000, "expected_new_traces_per_sec": 20000, "policies": list{
		object{"name": "err", "type": "status_code", "status_code": object{"status_codes": list{"ERROR"}}},
		object{"name": "slow", "type": "latency", "latency": object{"threshold_ms": 4150}},
		object{"name": "p5", "type": "probabilistic", "probabilistic": object{"sampling_percentage": 5}},
	}}
}

func hashKey(mode string) object {
	if mode == "hash" {
		return object{"mode": mode, "hash_key": "0123456789abcdef0123456789abcdef"}
	}
	return object{"mode": mode}
}

// llmspan is our processor's configuration; e2e keeps the same share of traces as the stock chain's latency policy.
func llmspan(mode string, sampling bool, delay string) object {
	m := object{"content": hashKey(mode)}
	if sampling {
		m["sampling"] = object{"enabled": true, "decision_delay": delay, "slow": object{"e2e": "4150ms"}}
	}
	return m
}

// chains are what is compared, in order; the first is what the others are compared with.
var chains = []string{"pass", "stock, hash", "stock, redaction", "ours, strip", "ours, hash", "ours, strip, sampling", "ours, hash, sampling"}

// parts are what our chain is made of.
var parts = []string{"decode", "pass", "processor alone", "processor and metrics", "processor and records", "processor, metrics and records", "processor with sampling, alone"}

// build makes a chain by its name.
func build(name string) (*chain, error) {
	c := &chain{end: &encoder{}}
	var err error
	switch name {
	case "pass":
		c.head, err = c.processor(batchprocessor.NewFactory(), object{}, c.end)
	case "stock, hash", "stock, redaction":
		err = c.stock(name == "stock, hash")
	case "ours, strip":
		err = c.ours(llmspan("strip", false, ""))
	case "ours, hash":
		err = c.ours(llmspan("hash", false, ""))
	case "ours, strip, sampling":
		err = c.ours(llmspan("strip", true, "2s"))
	case "ours, hash, sampling":
		err = c.ours(llmspan("hash", true, "2s"))
	case "decode":
		c.head = fan{}
	case "processor alone":
		c.head, err = c.processor(llmspanprocessor.NewFactory(), llmspan("strip", false, ""), fan{})
	case "processor and metrics":
		err = c.measured(pipeline.SignalMetrics)
	case "processor and records":
		err = c.measured(pipeline.SignalLogs)
	case "processor, metrics and records":
		err = c.measured(pipeline.SignalMetrics, pipeline.SignalLogs)
	case "processor with sampling, alone":
		c.head, err = c.processor(llmspanprocessor.NewFactory(), llmspan("strip", true, "2s"), fan{})
	default:
		return nil, fmt.Errorf("no chain %q", name)
	}
	return c, err
}

func (c *chain) stock(hash bool) error {
	batched, err := c.processor(batchprocessor.NewFactory(), object{}, c.end)
	if err != nil {
		return err
	}
	tail, err := c.processor(tailsamplingprocessor.NewFactory(), tailSampling("2s"), batched)
	if err != nil {
		return err
	}
	metrics, err := c.connectors(spanmetricsconnector.NewFactory(), spanMetrics, pipeline.SignalMetrics)
	if err != nil {
		return err
	}
	var private consumer.Traces
	if hash {
		private, err = c.processor(attributesprocessor.NewFactory(), stockHash, fanOut(append(metrics, changing{tail})...))
	} else {
		private, err = c.processor(redactionprocessor.NewFactory(), stockRedact, fanOut(append(metrics, changing{tail})...))
	}
	if err != nil {
		return err
	}
	c.head, err = c.processor(transformprocessor.NewFactory(), transform, private)
	return err
}

func (c *chain) ours(m object) error {
	outputs, err := c.connectors(llmspanconnector.NewFactory(), object{}, pipeline.SignalMetrics, pipeline.SignalLogs, pipeline.SignalTraces)
	if err != nil {
		return err
	}
	c.head, err = c.processor(llmspanprocessor.NewFactory(), m, fanOut(outputs...))
	return err
}

// measured is our chain without its traces.
func (c *chain) measured(outputs ...pipeline.Signal) error {
	to, err := c.connectors(llmspanconnector.NewFactory(), object{}, outputs...)
	if err != nil {
		return err
	}
	c.head, err = c.processor(llmspanprocessor.NewFactory(), llmspan("strip", false, ""), fanOut(to...))
	return err
}
