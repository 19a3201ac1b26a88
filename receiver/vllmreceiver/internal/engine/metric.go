// Package engine knows what inference engines print and what it means: who owns a page, which of its families carries which concept, in which
// unit, and what an engine lacks. One file per engine, each a table; everything else here applies tables to a page.
//
// Facts and their sources: docs/engines.md, which is held against these tables by a test.
package engine

// Kind is how a metric behaves.
type Kind uint8

// A gauge is a value of now; a counter and a histogram run from a start time.
const (
	Gauge Kind = iota
	Counter
	Histogram
)

// Metric is one canonical metric: the same name, unit and meaning whatever the engine.
type Metric struct {
	Name, Unit, Description string
	Kind                    Kind
	// Int tells that every value is a whole number. Counters of tokens and requests are.
	Int bool
	// Ratio tells that a value lies in 0…1; what lies outside is not exported (-1 means "off" to some engines).
	Ratio bool
	// ZeroMeansOff tells that a value of 0 on every series means that the engine does not measure it, so that nothing is exported.
	ZeroMeansOff bool
	// Own tells that the receiver says it of the endpoint, and no page: a handful of series, outside the cap.
	Own bool

	id int
}

// Attribute keys of the points.
const (
	AttrModel        = "gen_ai.request.model"
	AttrRank         = "llm.engine.rank"
	AttrReplica      = "llm.engine.replica"
	AttrReason       = "llm.reason"
	AttrCache        = "llm.cache"
	AttrSource       = "llm.source"
	AttrFinishReason = "llm.finish_reason"
	AttrPosition     = "llm.position"
	AttrSleepLevel   = "llm.sleep_level"
	AttrConnector    = "llm.connector"
	AttrRoute        = "http.route"
	AttrStatusCode   = "http.response.status_code"
	AttrState        = "llm.engine.state"
)

var metrics []*Metric

func metric(kind Kind, name, unit, description string, opts ...func(*Metric)) *Metric {
	m := &Metric{Name: "llm.engine." + name, Unit: unit, Description: description, Kind: kind, id: len(metrics)}
	for _, o := range opts {
		o(m)
	}
	metrics = append(metrics, m)
	return m
}

func whole(m *Metric)        { m.Int = true }
func ratio(m *Metric)        { m.Ratio = true }
func own(m *Metric)          { m.Own = true }
func zeroMeansOff(m *Metric) { m.ZeroMeansOff = true }

// ID is the metric's place in Metrics.
func (m *Metric) ID() int { return m.id }

// Metrics lists every canonical metric in the order of the documentation.
func Metrics() []*Metric { return metrics }

// The canonical metrics.
var (
	Up = metric(Gauge, "up", "1", "1 when the endpoint answers with the page of an inference engine, else 0.", whole, own)

	ActiveSequences   = metric(Gauge, "active_sequences", "{sequence}", "Sequences in the batch that the engine computes now.", whole)
	QueueRequests     = metric(Gauge, "queue.requests", "{request}", "Requests that wait to be scheduled.", whole)
	QueueByReason     = metric(Gauge, "queue.requests_by_reason", "{request}", "Requests that wait, by what they wait for; sums to queue.requests.", whole)
	KVCacheUsage      = metric(Gauge, "kv_cache.usage", "1", "Part of the KV cache in use, 0 to 1.", ratio)
	KVCacheCapacity   = metric(Gauge, "kv_cache.capacity", "{token}", "Tokens the KV cache holds.", whole)
	PrefixQueries     = metric(Counter, "prefix_cache.queries", "{token}", "Prompt tokens looked up in the prefix cache.", whole)
	PrefixHits        = metric(Counter, "prefix_cache.hits", "{token}", "Prompt tokens found in the prefix cache.", whole)
	MMQueries         = metric(Counter, "mm_cache.queries", "{item}", "Multi-modal items looked up in the cache.", whole)
	MMHits            = metric(Counter, "mm_cache.hits", "{item}", "Multi-modal items found in the cache.", whole)
	Preemptions       = metric(Counter, "preemptions", "{preemption}", "Sequences that lost their place in the batch for want of KV cache.", whole)
	InputTokens       = metric(Counter, "input_tokens", "{token}", "Prompt tokens, cached ones and those of cancelled requests included.", whole)
	InputBySource     = metric(Counter, "input_tokens_by_source", "{token}", "Prompt tokens by where their KV entries came from.", whole)
	InputCached       = metric(Counter, "input_tokens.cached", "{token}", "Prompt tokens that did not have to be computed.", whole)
	OutputTokens      = metric(Counter, "output_tokens", "{token}", "Generated tokens.", whole)
	Requests          = metric(Counter, "requests", "{request}", "Requests the engine finished, by reason where it tells.", whole)
	RequestsRejected  = metric(Counter, "requests.rejected", "{request}", "Requests refused before they were queued.", whole)
	RequestsStarted   = metric(Counter, "requests.started", "{request}", "Requests that got a first token. Started less finished less running is what was cancelled.", whole)
	RequestsAborted   = metric(Counter, "requests.aborted", "{request}", "Requests that the engine itself counts as cancelled; part of requests where the engine finishes them there.", whole)
	TimeToFirstToken  = metric(Histogram, "time_to_first_token", "s", "Arrival at the engine to first token.")
	InterTokenLatency = metric(Histogram, "inter_token_latency", "s", "Time between two tokens of a request.")
	TimePerOutput     = metric(Histogram, "time_per_output_token", "s", "Mean time per output token after the first, one value a request.")
	RequestDuration   = metric(Histogram, "request.duration", "s", "Arrival at the engine to last token.")
	QueueDuration     = metric(Histogram, "queue.duration", "s", "Time a request waited to be scheduled.")
	PrefillDuration   = metric(Histogram, "prefill.duration", "s", "Scheduled to first token.")
	DecodeDuration    = metric(Histogram, "decode.duration", "s", "First to last token.")
	InferenceDuration = metric(Histogram, "inference.duration", "s", "Scheduled to last token.")
	ReqInputTokens    = metric(Histogram, "request.input_tokens", "{token}", "Prompt tokens of a request.")
	ReqOutputTokens   = metric(Histogram, "request.output_tokens", "{token}", "Generated tokens of a request.")
	ReqMaxTokens      = metric(Histogram, "request.max_tokens", "{token}", "Token limit a request asked for.")
	ReqKVComputed     = metric(Histogram, "request.kv_computed_tokens", "{token}", "Prompt tokens of a request that had to be computed.")
	ReqPreemptions    = metric(Histogram, "request.preemptions", "{preemption}", "Preemptions of a request.")
	ReqN              = metric(Histogram, "request.n", "{sequence}", "Sequences a request asked for.")
	IterationTokens   = metric(Histogram, "iteration.tokens", "{token}", "Tokens computed in one step of the engine.")
	SpecDrafts        = metric(Counter, "spec_decode.drafts", "{draft}", "Drafts proposed by speculative decoding.", whole)
	SpecDraftTokens   = metric(Counter, "spec_decode.draft_tokens", "{token}", "Tokens proposed by speculative decoding.", whole)
	SpecAccepted      = metric(Counter, "spec_decode.accepted_tokens", "{token}", "Proposed tokens that were accepted.", whole)
	SpecAcceptedByPos = metric(Counter, "spec_decode.accepted_tokens_by_position", "{token}", "Proposed tokens that were accepted, by position in the draft.", whole)
	Sleeping          = metric(Gauge, "sleeping", "1", "1 when the engine sleeps at this level.", whole)
	LoraRunning       = metric(Gauge, "lora.running", "{adapter}", "LoRA adapters in the running batch.", whole)
	LoraWaiting       = metric(Gauge, "lora.waiting", "{adapter}", "LoRA adapters that only waiting requests need.", whole)
	KVBlockLifetime   = metric(Histogram, "kv_block.lifetime", "s", "Allocation to eviction of a KV block (sampled).")
	KVBlockIdle       = metric(Histogram, "kv_block.idle", "s", "Last use to eviction of a KV block (sampled).")
	KVBlockReuseGap   = metric(Histogram, "kv_block.reuse_gap", "s", "Time between two uses of a KV block (sampled).")
	KVTransferTime    = metric(Histogram, "kv_transfer.duration", "s", "Duration of a KV transfer.")
	KVTransferBytes   = metric(Histogram, "kv_transfer.bytes", "By", "Size of a KV transfer.")
	KVTransferFailed  = metric(Counter, "kv_transfer.failures", "{failure}", "KV transfers that failed.", whole)
	Flops             = metric(Counter, "flops", "{operation}", "Floating-point operations per GPU, estimated by the engine.", zeroMeansOff)
	MemoryRead        = metric(Counter, "memory.read", "By", "Bytes read from GPU memory per GPU, estimated by the engine.", zeroMeansOff)
	MemoryWrite       = metric(Counter, "memory.write", "By", "Bytes written to GPU memory per GPU, estimated by the engine.", zeroMeansOff)
	HTTPRequests      = metric(Counter, "http.requests", "{request}", "HTTP requests to the engine's API, by route and status class.", whole)

	ScrapeDuration  = metric(Gauge, "scrape.duration", "s", "Time the last scrape of this endpoint took.", own)
	ScrapeSize      = metric(Gauge, "scrape.size", "By", "Size of the last page.", whole, own)
	FamiliesUnknown = metric(Gauge, "scrape.families.unknown", "{family}", "Families with the engine's own prefix that this version does not know: its names have moved.", whole, own)
	LinesBad        = metric(Gauge, "scrape.lines.bad", "{line}", "Lines of the last page that could not be read.", whole, own)
	SeriesDropped   = metric(Gauge, "scrape.series.dropped", "{series}", "Series of the last page that the cap kept out.", whole, own)
)
