package content

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func TestScanReportsWithoutText(t *testing.T) {
	r := redactor(t, Config{})
	b, err := os.ReadFile("testdata/recordings/oi2exp-tool.traces.jsonl")
	require.NoError(t, err)
	lines := bytes.Count(b, []byte("\n"))
	rep, err := r.Scan(bytes.NewReader(append(b, "\n\nno json\n{\"resourceSpans\":[{\"x\n{\"a\":1}"...)))
	require.NoError(t, err)
	assert.Equal(t, lines+3, rep.Lines)
	assert.Equal(t, 3, rep.Invalid)
	found := rep.Findings()
	require.NotEmpty(t, found)
	var total int64
	for i, f := range found {
		assert.Equal(t, SignalTraces, f.Signal)
		total += rep.Count(f)
		if i > 0 {
			assert.LessOrEqual(t, rep.Count(f), rep.Count(found[i-1]), "the most frequent first")
		}
		if f.Key != "" {
			_, known := r.keys.exact[f.Key]
			assert.True(t, known, "only keys of the tables are named")
		}
	}
	assert.Equal(t, rep.Total(), total)
	assert.Contains(t, found, Finding{SignalTraces, "span", ClassMessage, "gen_ai.input.messages"})
}

func TestScanFindsNothingInWhatWasRedacted(t *testing.T) {
	r := redactor(t, Config{})
	for _, file := range recordingFiles(t) {
		if !strings.Contains(file, ".traces.") {
			continue
		}
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		var out []byte
		for line := range bytes.Lines(b) {
			td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
			require.NoError(t, err)
			var f Facts
			r.Traces(td, &f)
			j, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
			require.NoError(t, err)
			out = append(append(out, j...), '\n')
		}
		rep, err := r.Scan(bytes.NewReader(out))
		require.NoError(t, err)
		assert.Zero(t, rep.Total(), "%s: %v", file, rep.Findings())
		before, err := r.Scan(bytes.NewReader(b))
		require.NoError(t, err)
		assert.Positive(t, before.Total(), file)
	}
}

func TestScanOfAllSignals(t *testing.T) {
	r := redactor(t, Config{})
	rep, err := r.Scan(strings.NewReader(
		`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"\"resourceSpans\" is not the signal"}}]}]}]}` + "\n" +
			`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"x","sum":{"dataPoints":[{"attributes":[{"key":"my secret key","value":{"stringValue":"a"}}]}]}}]}]}]}`))
	require.NoError(t, err)
	assert.ElementsMatch(t, []Finding{{SignalLogs, "body", ClassMessage, "log.body"}, {SignalMetrics, "point", ClassUnknown, ""}}, rep.Findings())
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("disk on fire") }

func TestScanErrors(t *testing.T) {
	r := redactor(t, Config{})
	_, err := r.Scan(brokenReader{})
	require.ErrorContains(t, err, "cannot read: disk on fire")
}
