package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/content"
)

func llmscan(stdin string, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(args, strings.NewReader(stdin), &out, &errs)
	return status, out.String(), errs.String()
}

const withText = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"chat m","attributes":[{"key":"gen_ai.prompt","value":{"stringValue":"the secret"}},{"key":"a hidden secret thing","value":{"stringValue":"the secret"}}]}]}]}]}`

func TestReportsClassesWithoutText(t *testing.T) {
	status, out, errs := llmscan(withText, "-")
	assert.Equal(t, exitFound, status)
	assert.Empty(t, errs)
	assert.NotContains(t, out, "secret")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 4)
	assert.Equal(t, "-: 1 requests, 2 values with text", lines[0])
	assert.Equal(t, []string{"COUNT", "SIGNAL", "PLACE", "CLASS", "KEY"}, strings.Fields(lines[1]))
	assert.Equal(t, []string{"1", "traces", "span", "message", "gen_ai.prompt"}, strings.Fields(lines[2]))
	assert.Equal(t, []string{"1", "traces", "span", "unknown", "(not", "a", "known", "key)"}, strings.Fields(lines[3]))
}

func TestRecordingBeforeAndAfter(t *testing.T) {
	const recording = "../../internal/llm/content/testdata/recordings/tl-workflow.traces.jsonl"
	status, out, _ := llmscan("", recording)
	assert.Equal(t, exitFound, status)
	assert.Contains(t, out, "traceloop.entity.input")
	assert.NotContains(t, out, "CANARY")

	b, err := os.ReadFile(recording)
	require.NoError(t, err)
	r, err := content.New(content.Config{})
	require.NoError(t, err)
	var clean bytes.Buffer
	for line := range bytes.Lines(b) {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
		require.NoError(t, err)
		r.Traces(td, nil)
		j, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
		require.NoError(t, err)
		clean.Write(append(j, '\n'))
	}
	file := filepath.Join(t.TempDir(), "out.jsonl")
	require.NoError(t, os.WriteFile(file, clean.Bytes(), 0o600))
	status, out, errs := llmscan("", file)
	assert.Equal(t, exitClean, status, out+errs)
	assert.Contains(t, out, " 0 values with text")
}

func TestAllowAndDeny(t *testing.T) {
	status, out, _ := llmscan(withText, "-allow", "gen_ai.prompt,a*", "-")
	assert.Equal(t, exitClean, status, out)
	status, _, _ = llmscan(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"team","value":{"stringValue":"x"}}]}]}]}]}`, "-deny", "team", "-")
	assert.Equal(t, exitFound, status)
}

func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"no file":             {"", nil, "usage: llmscan"},
		"a file that is none": {"", []string{"no/such/file"}, "no/such/file"},
		"a line of no OTLP":   {"hello\n", []string{"-"}, "1 lines are no OTLP/JSON requests"},
		"a wrong flag":        {"", []string{"-x"}, "flag provided but not defined"},
		"a wrong pattern":     {"", []string{"-allow", "a*b", "-"}, "'*' is allowed at the end only"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, errs := llmscan(tc.stdin, tc.args...)
			assert.Equal(t, exitError, status)
			assert.Contains(t, errs, tc.want)
		})
	}
	status, _, errs := llmscan("", "-h")
	assert.Equal(t, exitClean, status)
	assert.Contains(t, errs, "Exit status")
}
