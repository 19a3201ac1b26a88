package split

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/dialect"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/dimension"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/quality"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/slo"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/warmup"
)

// Business is what requests are assessed by. The zero value assesses nothing.
type Business struct {
	// Objectives are held against requests; warm-up requests are left out with SkipWarmup.
	Objectives slo.Objectives
	SkipWarmup bool
	// Prices is the price table of the moment; nil, or a nil table, is none.
	Prices   func() *cost.Table
	Currency string
	// Dimensions finds labels; nil finds none.
	Dimensions *dimension.Resolver
	// Quality assesses answers; nil does not.
	Quality *quality.Assessor
	// Warmup marks the first requests of engines; nil marks none.
	Warmup *warmup.Tracker
	// Oversize is the number of tokens beyond which a request is marked; 0 marks none.
	Oversize int64
}

func (o *Business) any() bool {
	return len(o.Objectives) > 0 || o.Prices != nil || o.Dimensions != nil || o.Quality != nil || o.Warmup != nil || o.Oversize > 0
}

// arrive assesses what can be told of a span only as it arrives: the quality of its text, which is removed behind this, and the warm-up
// of its engine, which goes by the order of arrival.
func (b *batch) arrive(o *Options, f *Facts) {
	if o.Quality != nil {
		for i := range b.items {
			if it := b.items[i]; !it.req.Processed && !it.req.LayerOnly {
				it.req.Quality |= o.Quality.Assess(it.span, &it.req)
				f.issues(it.req.Quality)
			}
		}
	}
	if o.Warmup == nil {
		return
	}
	for _, s := range b.starts {
		o.Warmup.Started(o.Now, s.source, s.at)
	}
	for i := range b.items {
		it := b.items[i]
		if it.req.Processed || it.req.Layer != request.LayerEngine {
			continue
		}
		it.req.Warmup, it.req.ColdStart = o.Warmup.Request(o.Now, &it.req)
		if it.req.Warmup {
			f.Warmup++
		}
	}
}

// start is the start of an engine, told by a span of its own.
type start struct {
	source *request.Source
	at     pcommon.Timestamp
}

// assess holds the requests of a batch against objectives and prices and finds their labels. The layers around them are known as far as
// they are in the batch.
func (b *batch) assess(td ptrace.Traces, o *Options, calls []*call, f *Facts, whole bool) {
	if !o.any() {
		return
	}
	if o.Dimensions != nil {
		b.labels(td, o, f, whole)
	}
	inCall := map[*item]bool{}
	for _, c := range calls {
		for _, it := range c.sequences {
			inCall[it] = true
		}
		b.assessCall(c.sequences, o, f)
	}
	covered := b.covered()
	for i := range b.items {
		it := b.items[i]
		switch {
		case inCall[it] || it.req.Tentative || it.req.LayerOnly:
		case it.req.Layer == request.LayerEngine, !covered[it]:
			b.assessCall([]*item{it}, o, f)
		default:
			// The layer is a part of a request that another span stands for.
			clear := &it.req.Business
			clear.Outcome, clear.Violated, clear.Unpriced = request.OutcomeNone, 0, false
			clear.Price = nil
			if !clear.Reported {
				clear.Cost = request.Opt[cost.Amount]{}
			}
		}
	}
}

// covered are the layers below which another span stands for the request.
func (b *batch) covered() map[*item]bool {
	if !b.outers || b.parents == nil {
		return nil
	}
	layers := map[id]*item{}
	for i := range b.items {
		if it := b.items[i]; it.req.Layer != request.LayerEngine {
			layers[id{it.req.TraceID, it.req.SpanID}] = it
		}
	}
	out := map[*item]bool{}
	for i := range b.items {
		it := b.items[i]
		if it.req.LayerOnly || it.req.Tentative {
			continue
		}
		at := id{it.req.TraceID, it.req.ParentID}
		for range maxDepth {
			if l, ok := layers[at]; ok {
				if out[l] {
					break // and so is what stands above it
				}
				out[l] = true
			}
			p, ok := b.parents[at]
			if !ok || p.IsEmpty() {
				break
			}
			at.span = p
		}
	}
	return out
}

// assessCall assesses one logical request: the engine's spans of a call, or the one span that stands for it.
func (b *batch) assessCall(sequences []*item, o *Options, f *Facts) {
	first := &sequences[0].req
	if first.Processed && !b.whole && (first.Outcome != request.OutcomeNone || first.Cost.Known) {
		return // it was assessed by the llmspan before this
	}
	usage := first.Usage()
	if len(sequences) > 1 {
		reqs := make([]*request.Request, len(sequences))
		for i, it := range sequences {
			reqs[i] = &it.req
		}
		usage = join.Usage(reqs)
	}
	if o.Oversize > 0 && usage.Input+usage.Output > o.Oversize {
		f.Oversize++
		for _, it := range sequences {
			it.req.Oversize = true
		}
	}
	if len(o.Objectives) > 0 {
		b.objectives(sequences, o)
	}
	if o.Prices != nil {
		if table := o.Prices(); table != nil {
			charge(sequences, usage, table, o, f)
		}
	}
}

// objectives judges a call by its first token, its slowest sequence and its last token.
func (b *batch) objectives(sequences []*item, o *Options) {
	if o.SkipWarmup && sequences[0].req.Warmup {
		for _, it := range sequences {
			it.req.Outcome, it.req.Violated = request.OutcomeNone, 0
		}
		return
	}
	var f slo.Figures
	for i, it := range sequences {
		r := &it.req
		if i == 0 {
			f = slo.Figures{Model: r.Model, UserTTFT: r.UserTTFT}
		}
		f.Status = request.Worse(f.Status, r.Status)
		ttft, tpot, e2e := figures(r)
		least(&f.TTFT, ttft)
		most(&f.TPOT, tpot)
		most(&f.E2E, e2e)
	}
	for _, it := range sequences {
		if it.req.KVTransfer.Known && len(sequences) > 1 {
			f.TTFT = it.req.TTFT // of a disaggregated pair the decode side answers
		}
	}
	outcome, violated := o.Objectives.Judge(&f)
	for _, it := range sequences {
		it.req.Outcome, it.req.Violated = outcome, violated
	}
}

// figures are the times of one span: the engine's, and without an engine's span what the layer itself saw.
func figures(r *request.Request) (ttft, tpot, e2e request.Seconds) {
	ttft, tpot, e2e = r.TTFT, r.TPOT(), r.E2E
	if !e2e.Known && r.End >= r.Start {
		e2e = request.Some(r.Duration())
	}
	if r.Layer == request.LayerEngine {
		return ttft, tpot, e2e
	}
	if !ttft.Known {
		ttft = r.UserTTFT
	}
	if r.UserE2E.Known {
		e2e = r.UserE2E
	}
	if n := r.OutputTokens.Or(0); !tpot.Known && ttft.Known && n >= 2 && r.Duration() >= ttft.Value {
		tpot = request.Some((r.Duration() - ttft.Value) / float64(n-1))
	}
	return ttft, tpot, e2e
}

func least(to *request.Seconds, v request.Seconds) {
	if v.Known && (!to.Known || v.Value < to.Value) {
		*to = v
	}
}

func most(to *request.Seconds, v request.Seconds) {
	if v.Known && v.Value > to.Or(-1) {
		*to = v
	}
}

// charge prices a call and gives each of its spans a share, so that the shares add up to the cost of the call: the first sequence of a
// prompt bears the prompt, the first of all what a request costs beside its tokens. The spans of a beam search repeat tokens, so that the
// first bears all. What the source itself says wins.
func charge(sequences []*item, usage cost.Usage, table *cost.Table, o *Options, f *Facts) {
	first := &sequences[0].req
	entry := table.Find(first.Model, time.Unix(0, int64(first.Start)))
	if entry == nil {
		if !first.Reported && usage != (cost.Usage{}) {
			f.unpriced(first.Model)
			for _, it := range sequences {
				it.req.Unpriced = it.req.Price == nil
			}
		}
		return
	}
	price := &entry.Price
	if entry.GPU != nil {
		price = entry.GPU.Price(o.Now, o.Currency)
		entry.GPU.Measure(o.Now, usage, first.Layer == request.LayerEngine)
	}
	prompts := map[string]bool{}
	for i, it := range sequences {
		r := &it.req
		r.Price, r.Unpriced = price, false
		if r.Reported || first.Reported {
			continue
		}
		share := r.Usage()
		switch {
		case r.Beam && i == 0:
			share = usage
		case r.Beam:
			share = cost.Usage{}
		case len(sequences) > 1:
			_, prompt := dialect.BaseID(r.RequestID)
			if r.Dialect == "sglang" && r.Sequences > 1 {
				prompt = "n"
			}
			if prompt != "" && prompts[prompt] {
				share.Input, share.Cached, share.Written = 0, 0, 0
			}
			prompts[prompt] = true
		}
		total, _ := price.Tokens(share)
		if i == 0 {
			total = total.Add(price.Request)
		}
		if i == 0 && !r.InputTokens.Known && !r.OutputTokens.Known && price.Request.IsZero() {
			continue // nobody counted: the cost is unknown, not nothing
		}
		r.Cost, r.Currency = request.Some(total), price.Currency
	}
}

// unpriced counts a request of a model without a price.
func (f *Facts) unpriced(model string) {
	if f.Unpriced == nil {
		f.Unpriced = map[string]int{}
	}
	f.Unpriced[model]++
}

func (f *Facts) issues(q request.Flags) {
	if q == 0 {
		return
	}
	for i := range request.Issues {
		if q&(1<<i) != 0 {
			f.Issues[i]++
		}
	}
}
