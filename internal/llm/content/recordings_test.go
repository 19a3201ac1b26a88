package content

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// The recordings are what real SDKs and gateways sent with content capture on. Every text that went in carries a marker
// CANARY-<run>-<code>; the codes say what the text was.
var (
	marker = regexp.MustCompile(`CANARY-[A-Za-z0-9-]+-\d{3}`)
	// contentCodes are the codes of prompts, completions, tool arguments, documents and so on. Left out are identities, tags,
	// names and labels: 003, 007, 008, 012, 015, 026, 030 and up.
	contentCodes = set("001", "002", "004", "005", "006", "009", "010", "011", "013", "014", "016", "017", "018", "019", "020", "021", "022", "023", "024", "025", "027", "028", "029")
)

// leaks are the content markers in b, plain or written with \u escapes.
func leaks(b []byte) (out []string) {
	for _, m := range marker.FindAllString(string(b), -1) {
		if in(contentCodes, m[len(m)-3:]) && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// recordingFiles are the recordings in testdata and, where they are, all others.
func recordingFiles(t *testing.T) []string {
	files, err := filepath.Glob("testdata/recordings/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func sharedRecordings(t *testing.T) []string {
	dir := os.Getenv("OTELCOL_LLM_SHARED")
	if dir == "" {
		dir = "../../../../shared"
	}
	var files []string
	for _, d := range []string{"sdk", "gateway", "engines", "vllm"} {
		f, err := filepath.Glob(filepath.Join(dir, "corpus/captured", d, "*.jsonl"))
		require.NoError(t, err)
		files = append(files, f...)
	}
	if len(files) == 0 {
		t.Skip("the full set of recordings is not here; set OTELCOL_LLM_SHARED to run on it")
	}
	return files
}

func TestRecordings(t *testing.T) {
	for _, mode := range []Mode{ModeStrip, ModeHash} {
		t.Run(string(mode), func(t *testing.T) {
			r, err := New(Config{Mode: mode, HashKey: []byte("0123456789abcdef")})
			require.NoError(t, err)
			for _, f := range recordingFiles(t) {
				t.Run(filepath.Base(f), func(t *testing.T) { checkRecording(t, r, f) })
			}
		})
	}
}

func TestAllRecordings(t *testing.T) {
	files := sharedRecordings(t)
	for _, mode := range []Mode{ModeStrip, ModeHash} {
		r, err := New(Config{Mode: mode, HashKey: []byte("0123456789abcdef")})
		require.NoError(t, err)
		for _, f := range files {
			t.Run(string(mode)+"/"+filepath.Base(f), func(t *testing.T) { checkRecording(t, r, f) })
		}
	}
}

func checkRecording(t *testing.T, r *Redactor, file string) {
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := lines.Bytes()
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var before, after []string
		var out, again []byte
		var f, f2 Facts
		switch {
		case strings.Contains(file, ".traces."):
			td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
			require.NoError(t, err)
			before = survivors(td)
			spans := td.SpanCount()
			r.Traces(td, &f)
			require.Equal(t, spans, td.SpanCount())
			after = survivors(td)
			out, err = (&ptrace.JSONMarshaler{}).MarshalTraces(td)
			require.NoError(t, err)
			r.Traces(td, &f2)
			again, err = (&ptrace.JSONMarshaler{}).MarshalTraces(td)
			require.NoError(t, err)
		case strings.Contains(file, ".logs."):
			ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line)
			require.NoError(t, err)
			records := ld.LogRecordCount()
			r.Logs(ld, &f)
			require.Equal(t, records, ld.LogRecordCount())
			out, err = (&plog.JSONMarshaler{}).MarshalLogs(ld)
			require.NoError(t, err)
			r.Logs(ld, &f2)
			again, err = (&plog.JSONMarshaler{}).MarshalLogs(ld)
			require.NoError(t, err)
		case strings.Contains(file, ".metrics."):
			md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
			require.NoError(t, err)
			points, sums := md.DataPointCount(), metricTotals(md)
			r.Metrics(md, &f)
			require.EqualValues(t, points, int64(md.DataPointCount())+f.Merged)
			require.Equal(t, sums, metricTotals(md), "totals")
			out, err = (&pmetric.JSONMarshaler{}).MarshalMetrics(md)
			require.NoError(t, err)
			r.Metrics(md, &f2)
			again, err = (&pmetric.JSONMarshaler{}).MarshalMetrics(md)
			require.NoError(t, err)
		}
		assert.Empty(t, leaks(out), "texts came out")
		assert.Equal(t, before, after, "what must survive")
		if len(leaks(line)) > 0 {
			assert.Positive(t, f.Total(), "redacted and counted")
		}
		assert.Equal(t, string(out), string(again), "a second pass changes nothing")
		assert.Zero(t, f2.Total(), "a second pass finds nothing")
	}
	require.NoError(t, lines.Err())
}

// metricTotals are the sums over all points of each sum and histogram, to a millionth: redaction may add points up, not change totals.
func metricTotals(md pmetric.Metrics) map[string]string {
	totals := map[string]float64{}
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						totals[m.Name()] += p.DoubleValue() + float64(p.IntValue())
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						totals[m.Name()] += p.Sum()
						totals[m.Name()+" count"] += float64(p.Count())
						for i, n := range p.BucketCounts().All() {
							totals[fmt.Sprint(m.Name(), " bucket ", i)] += float64(n)
						}
					}
				}
			}
		}
	}
	out := map[string]string{}
	for k, v := range totals {
		out[k] = fmt.Sprintf("%.6f", v)
	}
	return out
}

// survivors are the attributes of all spans that have to come out as they went in, with the span's id, sorted.
func survivors(td ptrace.Traces) (out []string) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				for k, v := range s.Attributes().All() {
					if survives(k, v) {
						out = append(out, fmt.Sprintf("%s %s %s=%s", s.SpanID(), v.Type(), k, v.AsString()))
					}
				}
			}
		}
	}
	sort.Strings(out)
	return out
}

func survives(k string, v pcommon.Value) bool {
	switch k {
	case "gen_ai.request.model", "gen_ai.response.model":
		_, ok := ModelName(v.AsString())
		return ok
	case "gen_ai.response.finish_reasons", "gen_ai.token.type", "gen_ai.output.type", "traceloop.prompt.version", "prompt_id", "prompt_length", "input.mime_type", "output.mime_type", "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.system",
		"gen_ai.response.id", "gen_ai.request.id", "gen_ai.response.time_to_first_chunk", "ai.response.msToFirstChunk", "ttft_ms", "llm.finish_reason", "http.status_code", "http.response.status_code", "asgi.event.type", "service.name", "error.type":
		return true
	}
	for _, p := range []string{"gen_ai.usage.", "gen_ai.latency.", "llm.token_count.", "ai.usage.", "gen_ai.aggregated_usage.", "llmspan."} {
		if strings.HasPrefix(k, p) {
			return true
		}
	}
	return false
}
