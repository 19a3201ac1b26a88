package llmspanprocessor

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/internal/interval"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/assemble"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/content"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/sampling"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/split"
)

// numShards is the number of parts that trace ids are spread over, by their low bits: some SDKs begin their ids with the time.
const numShards = 8

// tickInterval is how often waits are looked at.
const tickInterval = 200 * time.Millisecond

// assembler is the processor with sampling on: it holds the spans of traces until they are whole, decides, and passes on. What arrives
// is recognised and redacted before it is held.
type assembler struct {
	*llmSpan
	next   consumer.Traces
	now    func() time.Time
	shards [numShards]*shard
	outbox outbox
	// matches are the attributes of sampling.rules.
	matches []split.Match

	closing atomic.Bool
	loop    interval.Loop // looks which traces are due
}

// errClosing is returned for data that comes while the processor ends: the sender keeps it.
var errClosing = errors.New("llmspan is shutting down; send again")

func newAssembler(set processor.Settings, cfg *Config, next consumer.Traces) (*assembler, error) {
	p, err := newLLMSpan(set, cfg)
	if err != nil {
		return nil, err
	}
	if err := p.assess(cfg); err != nil {
		return nil, err
	}
	a := &assembler{llmSpan: p, next: next, now: time.Now, matches: cfg.Sampling.matches()}
	a.loop = interval.Loop{Every: tickInterval, Run: a.tick}
	a.outbox = outbox{next: next, logger: set.Logger, telemetry: p.telemetry, maxBytes: int(cfg.Sampling.MaxBytes) / 4}
	sc := &cfg.Sampling
	links, services := split.NewLinks(), split.NewServices()
	keys := commonKeys()
	for i := range a.shards {
		a.shards[i] = &shard{
			buffer:    assemble.New(sc.buffer(numShards, keys)),
			keys:      keys,
			decisions: assemble.NewDecisions(sc.KeptCache/numShards, sc.DroppedCache/numShards),
			sampler:   sampling.New(sc.sampler(numShards)),
			tag:       sc.Apply == ApplyTag,
			whole: split.NewWhole(split.WholeOptions{
				Options: p.options, FoldChunks: cfg.Stages.FoldChunks, ClientErrors: sc.ClientErrors, Tag: sc.Apply == ApplyTag, Links: links, Services: services,
			}),
		}
	}
	held := func(f func(*assemble.Buffer) int) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			n := 0
			for _, s := range a.shards {
				s.mu.Lock()
				n += f(s.buffer)
				s.mu.Unlock()
			}
			o.Observe(int64(n))
			return nil
		}
	}
	return a, errors.Join(
		p.telemetry.RegisterProcessorLlmspanHeldSpansCallback(held((*assemble.Buffer).Spans)),
		p.telemetry.RegisterProcessorLlmspanHeldTracesCallback(held((*assemble.Buffer).Traces)),
		p.telemetry.RegisterProcessorLlmspanHeldBytesCallback(held((*assemble.Buffer).Bytes)),
		p.telemetry.RegisterProcessorLlmspanUndeliveredSpansCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(a.outbox.spans()))
			return nil
		}),
	)
}

// commonKeys are the attribute keys that are known: those that the redaction names, and our own.
func commonKeys() *assemble.Keys {
	own := make([]string, 0, len(names.SpanAttributes))
	for _, a := range names.SpanAttributes {
		own = append(own, a.Key)
	}
	return assemble.NewKeys(own, content.Keys())
}

// Capabilities implements processor.Traces.
func (*assembler) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// Start implements component.Component.
func (a *assembler) Start(ctx context.Context, host component.Host) error {
	if err := a.start(ctx, host); err != nil {
		return err
	}
	a.loop.Start()
	return nil
}

// Shutdown refuses what still comes, decides on everything that is held and passes it on.
func (a *assembler) Shutdown(ctx context.Context) error {
	if a.closing.Swap(true) {
		return nil
	}
	a.loop.Stop()
	a.release(ctx, a.now(), (*shard).drain)
	a.outbox.close(ctx)
	return a.shutdown(ctx)
}

// ConsumeTraces implements processor.Traces. It refuses what comes while what was decided cannot be passed on: the sender then keeps
// it, and memory stays bounded.
func (a *assembler) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if a.closing.Load() {
		return errClosing
	}
	if err := a.outbox.full(); err != nil {
		a.telemetry.ProcessorLlmspanSpansRefused.Add(ctx, int64(td.SpanCount()))
		return err
	}
	in := td.SpanCount()
	split.Matches(td, a.matches)
	facts := split.Recognise(td, a.optionsAt(a.now()))
	var redacted content.Facts
	a.redactor.Traces(td, &redacted)
	a.record(ctx, &facts)
	a.recordRedacted(ctx, "traces", &redacted)
	a.telemetry.ProcessorLlmspanSpansIn.Add(ctx, int64(in))

	arrived := make([]arrival, 0, in)
	var has [numShards]bool
	assemble.EachSpan(td, func(span ptrace.Span, o *assemble.Origin) {
		i := span.TraceID()[15] % numShards
		arrived = append(arrived, arrival{span, o, i})
		has[i] = true
	})
	now := a.now()
	for i, s := range a.shards {
		if !has[i] {
			continue
		}
		o := s.add(now, uint8(i), arrived)
		a.count(ctx, &o)
		a.outbox.put(ctx, o.batches)
	}
	return nil
}

// tick decides what is due and offers again what was refused.
func (a *assembler) tick(ctx context.Context) {
	now := a.now()
	a.release(ctx, now, (*shard).due)
	a.outbox.offer(ctx)
}

// release passes on what the shards let go, batch by batch: a batch is gone before the next is made.
func (a *assembler) release(ctx context.Context, now time.Time, from func(*shard, time.Time) (outcome, bool)) {
	for _, s := range a.shards {
		for more := true; more; {
			var o outcome
			o, more = from(s, now)
			a.count(ctx, &o)
			a.outbox.put(ctx, o.batches)
		}
	}
}

// count turns what a shard did into telemetry.
func (a *assembler) count(ctx context.Context, o *outcome) {
	t := a.telemetry
	add := func(c metric.Int64Counter, n int, kv ...attribute.KeyValue) {
		if n > 0 {
			c.Add(ctx, int64(n), metric.WithAttributes(kv...))
		}
	}
	for r, n := range o.released {
		add(t.ProcessorLlmspanTracesReleased, n, attribute.String("reason", assemble.Reason(r).String()))
	}
	for rule, n := range o.facts.Kept {
		add(t.ProcessorLlmspanTracesDecided, n, attribute.String("decision", "keep"), attribute.String("rule", rule))
	}
	for rule, n := range o.facts.DroppedTraces {
		add(t.ProcessorLlmspanTracesDecided, n, attribute.String("decision", "drop"), attribute.String("rule", rule))
	}
	add(t.ProcessorLlmspanSpansDropped, o.facts.Chunks, attribute.String("reason", "chunk_folded"))
	add(t.ProcessorLlmspanSpansDropped, o.facts.Dropped, attribute.String("reason", "sampled_out"))
	add(t.ProcessorLlmspanSpansDropped, o.duplicates, attribute.String("reason", "duplicate"))
	add(t.ProcessorLlmspanSpansLate, o.late)
	add(t.ProcessorLlmspanTracesUpgraded, o.upgraded)
	add(t.ProcessorLlmspanStageSpans, o.facts.StageSpans)
	add(t.ProcessorLlmspanClockSkew, o.facts.Skewed)
	a.recordBusiness(ctx, &o.facts.Facts)
}
