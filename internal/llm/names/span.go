// Package names is the one table of attribute and metric names of this project, per signal. Code, metadata, documentation and tests
// take names from here. Names that OpenTelemetry defines are used as they are (GenAI semantic conventions, state of 2026-05); the
// llmspan.* and llm.* names are ours.
package names

// Span attributes that OpenTelemetry names.
const (
	InputTokens       = "gen_ai.usage.input_tokens"
	OutputTokens      = "gen_ai.usage.output_tokens"
	CacheReadTokens   = "gen_ai.usage.cache_read.input_tokens"
	CacheWriteTokens  = "gen_ai.usage.cache_creation.input_tokens"
	ReasoningTokens   = "gen_ai.usage.reasoning.output_tokens"
	RequestModel      = "gen_ai.request.model"
	ResponseModel     = "gen_ai.response.model"
	OperationName     = "gen_ai.operation.name"
	ProviderName      = "gen_ai.provider.name"
	RequestID         = "gen_ai.request.id"
	ResponseID        = "gen_ai.response.id"
	FinishReasons     = "gen_ai.response.finish_reasons"
	ErrorType         = "error.type"
	ServiceName       = "service.name"
	ServiceNamespace  = "service.namespace"
	ServiceInstanceID = "service.instance.id"
	DeploymentEnvName = "deployment.environment.name"
)

// Span attributes that llmspan adds.
const (
	Layer             = "llmspan.layer"
	Dialect           = "llmspan.dialect"
	Stage             = "llmspan.stage"
	Admission         = "llmspan.admission.duration"
	Queue             = "llmspan.queue.duration"
	Prefill           = "llmspan.prefill.duration"
	Decode            = "llmspan.decode.duration"
	Ingress           = "llmspan.ingress.duration"
	Return            = "llmspan.return.duration"
	KVTransfer        = "llmspan.kv_transfer.duration"
	TTFT              = "llmspan.ttft"
	TPOT              = "llmspan.tpot"
	E2E               = "llmspan.e2e"
	UserTTFT          = "llmspan.user.ttft"
	UserTTFTEstimated = "llmspan.user.ttft.estimated"
	UserE2E           = "llmspan.user.e2e"
	Status            = "llmspan.status"
	Invalid           = "llmspan.invalid"
	ClockSkew         = "llmspan.clock_skew"
	Beam              = "llmspan.beam"
	UserGapMax        = "llmspan.user.gap.max"
	Chunks            = "llmspan.chunks"
	SamplingDecision  = "llmspan.sampling.decision"
	SamplingReason    = "llmspan.sampling.reason"
	SamplingPartial   = "llmspan.sampling.partial"
	SamplingIncoming  = "llmspan.sampling.incoming_weight"

	SLOOutcome        = "llmspan.slo.outcome"
	SLOViolated       = "llmspan.slo.violated"
	Cost              = "llmspan.cost"
	CostCurrency      = "llmspan.cost.currency"
	CostReported      = "llmspan.cost.reported"
	Price             = "llmspan.price"
	Unpriced          = "llmspan.unpriced"
	Quality           = "llmspan.quality"
	Warmup            = "llmspan.warmup"
	ColdStart         = "llmspan.cold_start.duration"
	Oversize          = "llmspan.oversize"
	Wasted            = "llmspan.wasted"
	Part              = "llmspan.part"
	Dimension         = "llmspan.dimension."
	DimensionsDefault = "llmspan.dimensions.default"
	// DimensionKept is the beginning of the keys that hold a dimension's value while its trace is held; none leaves the process.
	DimensionKept = "llmspan.dimension_kept."
)

// SamplingMatched carries, from the arrival of a span to the decision on its trace, which sampling rules its attributes match, as bits: the
// attribute itself may be text that is removed on arrival. It never leaves the processor.
const SamplingMatched = "llmspan.sampling.matched"

// Values of SamplingDecision.
const (
	DecisionKeep = "keep"
	DecisionDrop = "drop"
)

// Attr describes one attribute that llmspan writes.
type Attr struct {
	Key, Type, Meaning string
}

// SpanAttributes are the attributes that the processor writes today, in the order of the documentation.
var SpanAttributes = []Attr{
	{Layer, "string", "layer of the request that the span belongs to: client, gateway or engine"},
	{Dialect, "string", "the source that was recognised"},
	{Admission, "double s", "arrival at the engine to the start of its queue: TTFT − queue − prefill"},
	{Queue, "double s", "the engine's own queue time"},
	{Prefill, "double s", "the engine's own prefill time"},
	{Decode, "double s", "the engine's own decode time"},
	{Ingress, "double s", "outermost layer's start to the engine's start"},
	{Return, "double s", "last token to the outermost layer's end"},
	{KVTransfer, "double s", "wait for a key-value cache from another engine"},
	{TTFT, "double s", "arrival at the engine to its first token"},
	{TPOT, "double s", "(e2e − TTFT) / (output tokens − 1); absent below two output tokens"},
	{E2E, "double s", "arrival at the engine to its last token, by the engine's clock"},
	{UserTTFT, "double s", "outermost layer's start to the first token there"},
	{UserTTFTEstimated, "bool", "true when the user's TTFT is ingress + engine TTFT, a lower bound"},
	{UserE2E, "double s", "length of the outermost layer"},
	{InputTokens, "int", "prompt tokens, cached ones included"},
	{OutputTokens, "int", "generated tokens, reasoning included"},
	{CacheReadTokens, "int", "prompt tokens that came from a cache"},
	{CacheWriteTokens, "int", "prompt tokens written to a provider's cache"},
	{ReasoningTokens, "int", "generated tokens that were reasoning"},
	{RequestModel, "string", "model asked for, folded from the source's spelling"},
	{ProviderName, "string", "provider, folded from gen_ai.system and old values"},
	{OperationName, "string", "chat, text_completion, embeddings, …"},
	{ResponseID, "string", "id that a client or gateway read from the answer"},
	{FinishReasons, "string[]", "why the answer ended, folded from the source's spelling; where the source has none, the enclosing layer's"},
	{Status, "string", "ok, error, cancelled or unknown"},
	{Invalid, "string[]", "names of the source's figures that were rejected"},
	{ClockSkew, "double s", "how far a layer had to be moved because hosts' clocks differ"},
	{Beam, "bool", "one step of a beam search"},
	{UserGapMax, "double s", "longest gap between two chunks at the outermost layer"},
	{Chunks, "int", "chunk spans folded into this span"},
	{SamplingDecision, "string", "keep or drop, on every span of a trace while sampling.apply is tag"},
	{SamplingReason, "string", "name of the rule that decided"},
	{SamplingPartial, "bool", "the span came after its trace was decided on, or the trace was cut"},
	{SamplingIncoming, "double", "requests that the span stood for when it came in, where an SDK has sampled"},
	{SLOOutcome, "string", "met or missed, where slo has an objective for the model"},
	{SLOViolated, "string[]", "what was missed: error, cancelled, ttft, tpot, e2e, user_ttft"},
	{Cost, "double", "the span's share of its request's cost; the shares of a call add up"},
	{CostCurrency, "string", "currency of the cost"},
	{CostReported, "bool", "true when the cost is the source's own and not from prices"},
	{Price, "string", "the prices that held for the model: for a million tokens, and for a request"},
	{Unpriced, "bool", "prices are configured, and none is for the model"},
	{Quality, "string[]", "what is wrong with the answer: truncated, empty, repetition, malformed_json, refusal, garbled"},
	{Warmup, "bool", "one of the first requests after the engine's start"},
	{ColdStart, "double s", "engine's start to the end of its first request, on that request"},
	{Oversize, "bool", "more tokens than oversize_tokens"},
	{Wasted, "bool", "an engine's work for a client that had left: the gateway between them let it run on"},
	{Part, "bool", "the layer of a request that an engine's span stands for, though the span between them is missing"},
	{Dimension + "<name>", "string", "the value of a configured dimension"},
	{DimensionsDefault, "string[]", "the dimensions that nothing told, so that they have their default"},
	{Stage, "string", "on stage child spans: the stage"},
}
