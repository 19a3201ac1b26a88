//go:build sdk

package sdk

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/child"
)

// result is what an application says at its end.
type result struct {
	Texts []string `json:"texts"` // markers, and beginnings of what the model wrote
	Calls []call   `json:"calls"` // that were answered
}

type call struct {
	Model  string `json:"model"`
	Input  int    `json:"input"`
	Output int    `json:"output"`
}

// stack is an SDK, and how its content capture is turned on.
type stack struct {
	name string
	env  []string
	// logs says that it sends texts in log records too.
	logs bool
}

var stacks = []stack{
	{"genai-openai", []string{"OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_and_event", "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT=true"}, true},
	{"openai-v2", []string{"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"}, true},
	{"openinference", nil, false},
	{"openllmetry", []string{"TRACELOOP_TRACE_CONTENT=true"}, false},
	{"litellm", nil, false},
	{"vercel", nil, false},
}

func TestLiveSDKsLoseNoText(t *testing.T) {
	bin := child.FromEnv(t, "OTELCOL_LLM_BIN", "../..", "bin/otelcol-llm", "make build")
	installed := child.FromEnv(t, "OTELCOL_LLM_SDK", "../..", ".cache/sdk", "make test-sdk installs it")
	for _, s := range stacks {
		t.Run(s.name, func(t *testing.T) {
			raw := newSink(t)
			c := startCollector(t, bin, raw)
			r := s.run(t, c, installed)
			require.NotEmpty(t, r.Texts)
			require.NotEmpty(t, r.Calls)
			wantIn, wantOut := 0, 0
			for _, x := range r.Calls {
				wantIn += x.Input
				wantOut += x.Output
			}
			// All that was sent has come, before the binary is asked.
			child.Eventually(t, time.Minute, "the calls are not in the records", func() error {
				in, out := c.recorded(t)
				if in < wantIn || out < wantOut {
					return fmt.Errorf("%d input and %d output tokens, the application counts %d and %d", in, out, wantIn, wantOut)
				}
				return nil
			})
			for _, x := range malformed(r.Texts[0]) {
				c.keepAnswer(t, x)
			}
			c.keepPages(t)
			_, err := c.process.Stop(20 * time.Second)
			require.NoError(t, err)

			// What came in is what the test is about: markers did arrive, in the form that the SDK gives them.
			arrived := 0
			in := raw.bytes()
			for _, text := range r.Texts {
				if found(in, text) {
					arrived++
				}
			}
			assert.Greater(t, arrived, 3, "texts in what the SDK sent; is its content capture on?")
			outputs := c.outputs(t)
			places, size := 0, 0
			for place, content := range outputs {
				places++
				size += len(content)
				for _, text := range r.Texts {
					assert.False(t, found(content, text), "%s is in %s: %s", text, place, around(content, text))
				}
				assert.NotContains(t, content, "CNRYkey7f3a91", "the API key is in %s", place)
			}
			in2, out2 := c.recorded(t)
			assert.Equal(t, wantIn, in2, "input tokens")
			assert.Equal(t, wantOut, out2, "output tokens")
			for _, x := range r.Calls {
				assert.Contains(t, outputs["traces.jsonl"], x.Model, "the model survives")
				assert.Contains(t, outputs["records.jsonl"], x.Model, "the model survives")
			}
			t.Logf("| %s | %d | %d | %d | %d | 0 | %d → %d |", s.name, len(r.Calls)+1, len(r.Texts), arrived, places, wantIn, wantOut)
			if s.logs {
				assert.NotEmpty(t, outputs["logs.jsonl"], "its log records came")
			}
		})
	}
}

// run lets the application of a stack do its calls.
func (s stack) run(t *testing.T, c *collector, installed string) result {
	t.Helper()
	apps, err := filepath.Abs("apps")
	require.NoError(t, err)
	// The application sends to a place that keeps the bytes and passes them on to the binary.
	env := append([]string{
		"OTEL_SERVICE_NAME=app", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.front, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_EXPORTER_OTLP_COMPRESSION=none", "PYTHONDONTWRITEBYTECODE=1",
	}, s.env...)
	base := c.simulator + "/v1"
	home := filepath.Join(installed, s.name)
	python := filepath.Join(home, "bin", "python")
	if s.name == "litellm" {
		base = startProxy(t, home, c)
	}
	var app *child.Process
	if s.name == "vercel" {
		app = child.Start(t, s.name, env, "bash", "-c", `cd "$0" && exec node "$@"`, home, filepath.Join(apps, "vercel.mjs"), s.name, base, simModel)
	} else {
		app = child.Start(t, s.name, env, python, filepath.Join(apps, "chat.py"), s.name, base, simModel)
	}
	require.NoError(t, app.Wait(3*time.Minute), "%s", app.Tail(3000))
	_, line, ok := strings.Cut(app.Output(), "RESULT ")
	require.True(t, ok, "%s", app.Tail(3000))
	var r result
	line, _, _ = strings.Cut(line, "\n")
	require.NoError(t, json.Unmarshal([]byte(line), &r))
	return r
}

// startProxy starts LiteLLM's proxy with its own telemetry on and returns its base URL.
func startProxy(t *testing.T, home string, c *collector) string {
	t.Helper()
	port := child.FreePorts(t, 1)[0]
	file := filepath.Join(t.TempDir(), "litellm.yaml")
	config := fmt.Sprintf(`model_list:
  - {model_name: %q, litellm_params: {model: "openai/%s", api_base: "%s/v1", api_key: sk-CNRYkey7f3a91CNRYkey7f3a91}}
litellm_settings: {callbacks: [otel], num_retries: 0}
`, simModel, simModel, c.simulator)
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	p := child.Start(t, "litellm-proxy", []string{
		"OTEL_EXPORTER=otlp_http", "OTEL_ENDPOINT=" + c.front, "OTEL_SERVICE_NAME=litellm", "OTEL_EXPORTER_OTLP_COMPRESSION=none",
		"LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_OTEL_INTEGRATION_ENABLE_METRICS=true", "LITELLM_OTEL_INTEGRATION_ENABLE_EVENTS=true",
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_and_event",
		"PATH=" + filepath.Join(home, "bin") + ":" + os.Getenv("PATH"),
	}, filepath.Join(home, "bin", "litellm"), "--config", file, "--host", "127.0.0.1", "--port", port)
	p.Ready(t, 3*time.Minute, "http://127.0.0.1:"+port+"/health/liveliness")
	return "http://127.0.0.1:" + port + "/v1"
}

// found tells whether a text is in a content: as it is, or in base64 at any offset.
func found(content, text string) bool {
	if strings.Contains(content, text) {
		return true
	}
	for pad := range 3 {
		b := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", pad) + text))
		// Without what depends on the bytes before and after it.
		if b = strings.TrimRight(b, "="); strings.Contains(content, b[(pad*8+5)/6:len(b)-1]) {
			return true
		}
	}
	return false
}

func around(content, text string) string {
	i := strings.Index(content, text)
	if i < 0 {
		return "in base64"
	}
	return content[max(i-120, 0):min(i+len(text)+40, len(content))]
}
