package quality

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

var _ = flag.Bool("update", false, "rewrite the table of rates in the documentation; review the difference like code")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample is one labelled answer of testdata/sample.jsonl.
type sample struct {
	Lang   string   `json:"lang"`
	Issues []string `json:"issues"`
	JSON   bool     `json:"json"`
	Note   string   `json:"note"`
	Text   string   `json:"text"`
}

func samples(t testing.TB) []sample {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "sample.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	var out []sample
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var s sample
		require.NoError(t, json.Unmarshal(sc.Bytes(), &s))
		out = append(out, s)
	}
	require.NoError(t, sc.Err())
	require.Greater(t, len(out), 100)
	return out
}

// assess puts a text on a span as an SDK does, and assesses that.
func assess(a *Assessor, s sample) request.Flags {
	span := ptrace.NewSpan()
	parts, _ := json.Marshal([]map[string]any{{"role": "assistant", "parts": []map[string]any{{"type": "text", "content": s.Text}}}})
	span.Attributes().PutStr("gen_ai.output.messages", string(parts))
	if s.JSON {
		span.Attributes().PutStr("gen_ai.output.type", "json")
	}
	return a.Assess(span, &request.Request{Layer: request.LayerClient, Operation: "chat", Status: request.StatusOK, FinishReason: "stop"})
}

const page = "../../../docs/quality.md"

// The rates on the sample are in the documentation, by language and issue: how many bad answers are missed, and how many others are
// called bad. A change of a rule that makes one worse fails here.
func TestRatesOnTheLabelledSample(t *testing.T) {
	a := New(Config{Repetition: true, Refusal: true})
	type rate struct{ bad, missed, other, wrong int }
	rates := map[string]map[string]*rate{"en": {}, "zh": {}}
	for _, s := range samples(t) {
		got := assess(a, s)
		for i, issue := range request.Issues {
			if issue == "truncated" {
				continue // a finish reason, no text
			}
			r := rates[s.Lang][issue]
			if r == nil {
				r = &rate{}
				rates[s.Lang][issue] = r
			}
			labelled, found := request.Flags(0), got&(1<<i) != 0
			for _, n := range s.Issues {
				labelled |= request.Flag(n, request.Issues)
			}
			switch {
			case labelled&(1<<i) != 0:
				r.bad++
				if !found {
					r.missed++
					t.Logf("missed: %s %s: %s", s.Lang, issue, s.Note)
				}
			default:
				r.other++
				if found {
					r.wrong++
					t.Logf("wrongly called %s: %s %s %v", issue, s.Lang, s.Note, s.Issues)
				}
			}
		}
	}
	var rows [][]string
	for _, lang := range []string{"en", "zh"} {
		for _, issue := range request.Issues[1:] {
			r := rates[lang][issue]
			rows = append(rows, []string{
				map[string]string{"en": "English", "zh": "Chinese"}[lang], "`" + issue + "`", fmt.Sprintf("%d of %d", r.missed, r.bad), fmt.Sprintf("%d of %d", r.wrong, r.other),
			})
			assert.LessOrEqual(t, float64(r.missed), .25*float64(r.bad)+.5, "%s %s", lang, issue)
			assert.LessOrEqual(t, float64(r.wrong), .02*float64(r.other), "%s %s", lang, issue)
		}
	}
	doctest.Generated(t, page, "rates", doctest.Table([]string{"language", "issue", "missed", "wrongly called"}, rows))
}
