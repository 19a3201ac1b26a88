package names

// Kind is the type of a metric.
type Kind uint8

// The kinds of metric.
const (
	Counter Kind = iota
	Histogram
	// MaxGauge is the largest value since the last export.
	MaxGauge
	// Money is a counter of money, which is summed without drift.
	Money
)

func (k Kind) String() string { return [...]string{"counter", "histogram", "gauge", "counter"}[k] }

// Metric is one metric that the connector derives from spans.
type Metric struct {
	Name, Unit, Description string
	Kind                    Kind
	// Bounds are the explicit bucket bounds of a histogram.
	Bounds []float64
	// Extra are its attributes beside model and operation.
	Extra string
}

// MetricID is the index of a metric in Metrics.
type MetricID int

// The metrics from spans.
const (
	ServerRequestDuration MetricID = iota
	ServerTTFT
	ServerTPOT
	IngressDuration
	AdmissionDuration
	QueueDuration
	KVTransferDuration
	PrefillDuration
	DecodeDuration
	ReturnDuration
	UserTTFTDuration
	UserRequestDuration
	UserGapMaxDuration
	Requests
	InputTokensTotal
	OutputTokensTotal
	RequestInputTokens
	RequestOutputTokens
	RequestDurationMax
	TTFTMax
	SpansInvalid
	SamplingTraces
	SLORequests
	SLOOutputTokens
	CostTotal
	CostSaved
	RequestsUnpriced
	QualityIssues
	RequestsOversize
	WarmupRequests
	ColdStartDuration
	TokensUnknown
	WastedOutputTokens
	WastedDuration
	NumMetrics
)

// Bucket bounds fit LLMs: below 300 ms they are finer than the engines' own, and the tail reaches the longest answers. vLLM's first
// latency bucket ends at 0.3 s, so that its p99 of a queue of 20 ms reads 0.297 s.
var (
	boundsTTFT = []float64{.001, .0025, .005, .01, .02, .04, .06, .08, .1, .15, .2, .25, .3, .4, .5, .75, 1, 1.5, 2, 2.5, 5, 7.5, 10, 20, 40, 80, 160}
	boundsTPOT = []float64{.001, .0025, .005, .0075, .01, .015, .02, .025, .03, .04, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5}
	boundsE2E  = []float64{.01, .025, .05, .075, .1, .15, .2, .25, .3, .4, .5, .75, 1, 1.5, 2, 2.5, 5, 7.5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600}
	boundsPart = []float64{.001, .0025, .005, .01, .025, .05, .075, .1, .15, .2, .25, .3, .5, .75, 1, 1.5, 2.5, 5, 7.5, 10, 20, 30, 60, 120, 300, 600}
	boundsTok  = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000}
)

// Metrics is the table of the metrics from spans, indexed by MetricID.
var Metrics = [NumMetrics]Metric{
	ServerRequestDuration: {"gen_ai.server.request.duration", "s", "Time from the arrival at the engine to the end of the answer, for each sequence.", Histogram, boundsE2E, "error.type when failed"},
	ServerTTFT:            {"gen_ai.server.time_to_first_token", "s", "Time from the arrival at the engine to the first token, for each sequence.", Histogram, boundsTTFT, ""},
	ServerTPOT:            {"gen_ai.server.time_per_output_token", "s", "Mean time per output token after the first, for each sequence of two tokens or more.", Histogram, boundsTPOT, ""},
	IngressDuration:       {"llm.ingress.duration", "s", "Time from the outermost layer's start to the engine's.", Histogram, boundsPart, ""},
	AdmissionDuration:     {"llm.admission.duration", "s", "Time in the engine before its queue: tokenising, hand-over, the wait for the current step.", Histogram, boundsPart, ""},
	QueueDuration:         {"llm.queue.duration", "s", "Time in the engine's queue.", Histogram, boundsPart, ""},
	KVTransferDuration:    {"llm.kv_transfer.duration", "s", "Wait for a key-value cache from another engine.", Histogram, boundsPart, ""},
	PrefillDuration:       {"llm.prefill.duration", "s", "Time from scheduled to the first token.", Histogram, boundsPart, ""},
	DecodeDuration:        {"llm.decode.duration", "s", "Time from the first token to the last.", Histogram, boundsE2E, ""},
	ReturnDuration:        {"llm.return.duration", "s", "Time from the last token to the end of the outermost layer.", Histogram, boundsPart, ""},
	UserTTFTDuration:      {"llm.user.time_to_first_token", "s", "Time from the outermost layer's start to the first token there.", Histogram, boundsTTFT, "llm.estimated"},
	UserRequestDuration:   {"llm.user.request.duration", "s", "Length of the outermost layer of a request.", Histogram, boundsE2E, ""},
	UserGapMaxDuration:    {"llm.user.gap.max", "s", "Longest stall that a user saw in a stream.", Histogram, boundsTPOT, ""},
	Requests:              {"llm.requests", "{request}", "Requests, each counted once whatever layers reported it.", Counter, nil, "llm.status, llm.finish_reason"},
	InputTokensTotal:      {"llm.input_tokens", "{token}", "Prompt tokens, each counted once.", Counter, nil, "llm.status; llm.cached where the source tells"},
	OutputTokensTotal:     {"llm.output_tokens", "{token}", "Generated tokens, each counted once.", Counter, nil, "llm.status; llm.reasoning where the source tells"},
	RequestInputTokens:    {"llm.request.input_tokens", "{token}", "Prompt tokens of a request.", Histogram, boundsTok, ""},
	RequestOutputTokens:   {"llm.request.output_tokens", "{token}", "Generated tokens of a request.", Histogram, boundsTok, ""},
	RequestDurationMax:    {"llm.request.duration.max", "s", "Longest request since the last export.", MaxGauge, nil, ""},
	TTFTMax:               {"llm.time_to_first_token.max", "s", "Longest time to first token since the last export.", MaxGauge, nil, ""},
	SpansInvalid:          {"llm.spans.invalid", "{span}", "Request spans with a figure that could not be true.", Counter, nil, "llm.reason"},
	SamplingTraces:        {"llm.sampling.traces", "{trace}", "Traces that were decided on.", Counter, nil, "llm.decision, llm.rule"},
	SLORequests:           {"llm.slo.requests", "{request}", "Requests that were held against an objective.", Counter, nil, "llm.slo.outcome; llm.slo.violated (the first) when missed"},
	SLOOutputTokens:       {"llm.slo.output_tokens", "{token}", "Generated tokens of requests that were held against an objective.", Counter, nil, "llm.slo.outcome"},
	CostTotal:             {"llm.cost", "{currency}", "What requests cost.", Money, nil, "llm.currency, llm.status"},
	CostSaved:             {"llm.cost.saved", "{currency}", "What prompt tokens from a cache would have cost more without it.", Money, nil, "llm.currency, llm.status"},
	RequestsUnpriced:      {"llm.requests.unpriced", "{request}", "Requests with tokens for which no price is known.", Counter, nil, "llm.status"},
	QualityIssues:         {"llm.quality.issues", "{issue}", "Things wrong with answers, each counted once for a request.", Counter, nil, "llm.quality.issue"},
	RequestsOversize:      {"llm.requests.oversize", "{request}", "Requests of more tokens than oversize_tokens.", Counter, nil, "llm.status"},
	WarmupRequests:        {"llm.requests.warmup", "{request}", "First requests after an engine's start.", Counter, nil, "llm.status"},
	ColdStartDuration:     {"llm.cold_start.duration", "s", "Time from an engine's start to the end of its first request.", Histogram, boundsE2E, ""},
	TokensUnknown:         {"llm.requests.tokens_unknown", "{request}", "Requests whose tokens nobody reported; they are in no token counter.", Counter, nil, "llm.status"},
	WastedOutputTokens:    {"llm.wasted.output_tokens", "{token}", "Tokens generated for requests that failed, were cancelled or whose client had left.", Counter, nil, "llm.status, llm.reason"},
	WastedDuration:        {"llm.wasted.duration", "s", "Time spent on requests that failed, were cancelled or whose client had left: the engine's, else that of the layer that reported it.", Counter, nil, "llm.status, llm.reason"},
}

// Attributes of the metrics.
const (
	MetricStatus       = "llm.status"
	MetricFinishReason = "llm.finish_reason"
	MetricCached       = "llm.cached"
	MetricReasoning    = "llm.reasoning"
	MetricReason       = "llm.reason"
	MetricEstimated    = "llm.estimated"
	MetricDecision     = "llm.decision"
	MetricRule         = "llm.rule"
	MetricOverflow     = "otel.metric.overflow"
	MetricSLOOutcome   = "llm.slo.outcome"
	MetricSLOViolated  = "llm.slo.violated"
	MetricCurrency     = "llm.currency"
	MetricIssue        = "llm.quality.issue"
)

// Unknown stands for a model or an operation that no layer named.
const Unknown = "unknown"

// RecordEvent is the event name of a request record; TotalTokens its attribute for input plus output. CostExact and CostSavedExact are
// amounts as decimal texts, to full precision. RecordPart marks the record of what a later part of a request adds: sums count it, and a
// number of requests leaves it out.
const (
	RecordEvent    = "llm.request"
	TotalTokens    = "llm.total_tokens"
	CostExact      = "llmspan.cost.exact"
	CostSavedExact = "llmspan.cost.saved.exact"
	RecordPart     = "llm.request.part"
)
