package dialect

import (
	"cmp"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
)

func init() {
	if flag.Lookup("update") == nil {
		flag.Bool("update", false, "write the generated parts of docs/attributes.md; review the difference like code")
	}
}

const page = "../../../docs/attributes.md"

// meaning is what a field is to a reader, and the name under which it is written, if it is.
var meaning = map[field]struct{ what, written string }{
	fieldInputTokens:       {"prompt tokens", names.InputTokens},
	fieldOutputTokens:      {"generated tokens", names.OutputTokens},
	fieldCachedTokens:      {"prompt tokens from a cache", names.CacheReadTokens},
	fieldCacheWriteTokens:  {"prompt tokens written to a cache", names.CacheWriteTokens},
	fieldReasoningTokens:   {"reasoning tokens", names.ReasoningTokens},
	fieldRequestModel:      {"model asked for", names.RequestModel},
	fieldResponseModel:     {"model that answered", ""},
	fieldProvider:          {"provider", names.ProviderName},
	fieldOperation:         {"operation", names.OperationName},
	fieldRequestType:       {"operation (OpenLLMetry)", names.OperationName},
	fieldAIOperation:       {"operation (Vercel)", names.OperationName},
	fieldRequestID:         {"the engine's request id", ""},
	fieldResponseID:        {"id in the answer", names.ResponseID},
	fieldSequences:         {"answers asked for", ""},
	fieldMaxTokens:         {"most tokens asked for", ""},
	fieldFinishReasons:     {"finish reason", names.FinishReasons},
	fieldErrorType:         {"error type", ""},
	fieldHTTPStatus:        {"HTTP status", names.Status},
	fieldOutcome:           {"outcome (Dynamo)", names.Status},
	fieldDynamoModel:       {"model asked for (Dynamo)", names.RequestModel},
	fieldDynamoInput:       {"prompt tokens (Dynamo)", names.InputTokens},
	fieldDynamoOutput:      {"generated tokens (Dynamo)", names.OutputTokens},
	fieldQueue:             {"queue, seconds", names.Queue},
	fieldPrefill:           {"prefill, seconds", names.Prefill},
	fieldDecode:            {"decode, seconds", names.Decode},
	fieldInference:         {"prefill + decode, seconds", ""},
	fieldTTFT:              {"engine's first token, seconds", names.TTFT},
	fieldE2E:               {"engine's whole time, seconds", names.E2E},
	fieldFirstChunkSeconds: {"user's first chunk, seconds", names.UserTTFT},
	fieldFirstChunkMillis:  {"user's first chunk, milliseconds", names.UserTTFT},
	fieldServerTTFT:        {"user's first chunk, milliseconds as an int (Strands)", names.UserTTFT},
	fieldHTTPMethod:        {"HTTP method", ""},
	fieldHTTPPath:          {"HTTP path", ""},
	fieldHTTPRoute:         {"HTTP route", ""},
	fieldSpanKind:          {"kind of span (OpenInference)", ""},
	fieldFramework:         {"kind of span (OpenLLMetry)", ""},
	fieldRID:               {"SGLang's request id", ""},
	fieldLiteLLM:           {"LiteLLM's provider", ""},
}

// The table of spellings on the page is the one that the code reads by.
func TestSpellingsAreDocumented(t *testing.T) {
	byField := map[field][]string{}
	for k, s := range spellings {
		byField[s.field] = append(byField[s.field], k)
	}
	var rows [][]string
	for f := fieldNone + 1; f < numFields; f++ {
		if f >= fieldOwnLayer {
			continue // our own, in the table of attributes
		}
		m, ok := meaning[f]
		require.True(t, ok, "field %d has no meaning in this test, so no row on the page", f)
		keys := byField[f]
		require.NotEmpty(t, keys, m.what)
		slices.SortFunc(keys, func(a, b string) int {
			return cmp.Or(cmp.Compare(spellings[a].rank, spellings[b].rank), strings.Compare(a, b))
		})
		written := "—"
		if m.written != "" {
			written = "`" + m.written + "`"
		}
		rows = append(rows, []string{m.what, written, "`" + strings.Join(keys, "`, `") + "`"})
	}
	assert.Len(t, rows, len(meaning))
	doctest.Generated(t, page, "spellings", doctest.Table([]string{"what", "written as", "read from"}, rows))
}

// Every dialect has its row, in the order in which they are asked.
func TestDialectsAreDocumented(t *testing.T) {
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(b), "| dialect | layer | recognised by |\n|---|---|---|\n")
	require.True(t, ok)
	var got []string
	for line := range strings.SplitSeq(table, "\n") {
		if !strings.HasPrefix(line, "| `") {
			break
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "| `"), "`")
		got = append(got, name)
	}
	var want []string
	for _, name := range dialectNames {
		if name != "" {
			want = append(want, name)
		}
	}
	assert.Equal(t, want, got)
}
