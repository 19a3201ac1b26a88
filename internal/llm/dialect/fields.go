package dialect

import (
	"maps"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/keytable"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// field is one thing that an attribute can say, whatever its key is called.
type field uint8

const (
	fieldNone field = iota

	// Durations of an engine, seconds.
	fieldQueue
	fieldPrefill
	fieldDecode
	fieldInference
	fieldTTFT
	fieldE2E

	// Time to the first chunk at a client or gateway.
	fieldFirstChunkSeconds
	fieldFirstChunkMillis

	// Usage.
	fieldInputTokens
	fieldOutputTokens
	fieldCachedTokens
	fieldCacheWriteTokens
	fieldReasoningTokens

	// Identity.
	fieldRequestID
	fieldResponseID
	fieldRequestModel
	fieldResponseModel
	fieldOperation
	fieldProvider
	fieldSequences
	fieldMaxTokens

	// Outcome.
	fieldFinishReasons
	fieldErrorType
	fieldHTTPStatus
	fieldOutcome // request.outcome of Dynamo

	// Dynamo's bare words.
	fieldDynamoModel
	fieldDynamoInput
	fieldDynamoOutput

	// What tells a source.
	fieldHTTPMethod
	fieldHTTPPath
	fieldHTTPRoute
	fieldSpanKind  // openinference.span.kind
	fieldFramework // traceloop.span.kind
	fieldRequestType
	fieldAIOperation // Vercel's ai.operationId
	fieldRID         // SGLang's rid
	fieldLiteLLM     // litellm.provider.model
	fieldServerTTFT  // gen_ai.server.time_to_first_token on a span

	// What llmspan itself wrote (own.go).
	fieldOwnLayer
	fieldOwnDialect
	fieldOwnAdmission
	fieldOwnQueue
	fieldOwnPrefill
	fieldOwnDecode
	fieldOwnTTFT
	fieldOwnE2E
	fieldOwnUserTTFT
	fieldOwnIngress
	fieldOwnReturn
	fieldOwnKVTransfer
	fieldOwnClockSkew
	fieldOwnStatus
	fieldOwnBeam
	fieldOwnInvalid
	fieldOwnEstimated
	fieldOwnUserE2E
	fieldOwnGapMax
	fieldOwnChunks
	fieldOwnDecision
	fieldOwnReason
	fieldOwnIncoming
	fieldOwnPartial
	fieldOwnOutcome
	fieldOwnViolated
	fieldOwnCost
	fieldOwnCurrency
	fieldOwnReported
	fieldOwnPrice
	fieldOwnUnpriced
	fieldOwnQuality
	fieldOwnWarmup
	fieldOwnColdStart
	fieldOwnOversize
	fieldOwnWasted
	fieldOwnPart
	fieldOwnDefaults

	// What a source says that a request costs.
	fieldReportedCost

	numFields
)

// spelling is one key by which a source calls a field. Where a span carries several spellings of one field, the lowest rank wins:
// current names before old ones.
type spelling struct {
	field field
	rank  uint8
}

// tables are what the dialect files list. A test holds that none gives a key another meaning than the next.
var tables = [...]map[string]spelling{
	engineKeys, sglangKeys, semconvKeys, openinferenceKeys, openllmetryKeys, litellmKeys, vercelKeys, dynamoKeys, httpKeys, ownKeys,
	businessKeys, costKeys,
}

// spellings maps every known key to its field. It is built once.
var spellings = func() map[string]spelling {
	out := map[string]spelling{}
	for _, t := range tables {
		maps.Copy(out, t)
	}
	return out
}()

// known is spellings for the walk.
var known = keytable.New(spellings)

// slots is what one walk over a span's attributes found. It aliases the span.
type slots struct {
	values [numFields]pcommon.Value
	rank   [numFields]uint8 // 0: absent, else rank + 1
	// dims are the values of dimensions that llmspan itself wrote.
	dims []request.Dimension
}

func (s *slots) has(f field) bool { return s.rank[f] != 0 }

func (s *slots) walk(attrs pcommon.Map) {
	attrs.Range(func(k string, v pcommon.Value) bool {
		sp, ok := known.Get(k)
		if !ok {
			s.dimension(k, v)
			return true
		}
		if r := s.rank[sp.field]; r == 0 || sp.rank+1 < r {
			s.rank[sp.field] = sp.rank + 1
			s.values[sp.field] = v
		}
		return true
	})
}

// source is the span with what was found on it: what a dialect's recognise function sees.
type source struct {
	slots
	span ptrace.Span
	res  *request.Source
}
