package recordings_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The rule for engines that are stuck fires when one has requests and makes no token, and not when it works or idles.
func TestTheInFlightRuleFires(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed; the rule is not run")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "goodput-and-cost.md"))
	require.NoError(t, err)
	rule := regexp.MustCompile("(?s)```yaml\n(groups:\n.*?)```").FindSubmatch(page)
	require.NotNil(t, rule)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), rule[1], 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "test.yaml"), []byte(`
rule_files: [rules.yaml]
evaluation_interval: 30s
tests:
  - interval: 30s
    input_series:
      - {series: 'llm_engine_active_sequences{job="vllm",instance="stuck"}', values: '3x40'}
      - {series: 'llm_engine_output_tokens_total{job="vllm",instance="stuck",gen_ai_request_model="m"}', values: '0+100x10 1000x30'}
      - {series: 'llm_engine_active_sequences{job="vllm",instance="busy"}', values: '3x40'}
      - {series: 'llm_engine_output_tokens_total{job="vllm",instance="busy",gen_ai_request_model="m"}', values: '0+100x40'}
      - {series: 'llm_engine_active_sequences{job="vllm",instance="idle"}', values: '0x40'}
      - {series: 'llm_engine_output_tokens_total{job="vllm",instance="idle",gen_ai_request_model="m"}', values: '700x40'}
    alert_rule_test:
      - {eval_time: 4m, alertname: LLMEngineStuck, exp_alerts: []}
      - eval_time: 15m
        alertname: LLMEngineStuck
        exp_alerts:
          - exp_labels: {severity: page, job: vllm, instance: stuck}
            exp_annotations: {summary: "stuck runs requests and has made no token for 2 minutes"}
`), 0o600))
	cmd := exec.Command(promtool, "test", "rules", "test.yaml")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}
