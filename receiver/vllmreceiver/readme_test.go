package vllmreceiver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/target"
)

// TestExamplesLoad loads every YAML block of the README, and the example for Kubernetes.
func TestExamplesLoad(t *testing.T) {
	b, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(b), -1)
	require.Len(t, blocks, 2)
	for i, block := range blocks {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r, err := confmap.NewRetrievedFromYAML([]byte(strings.ReplaceAll(block[1], "${env:ENGINE_TOKEN}", "x")))
			require.NoError(t, err)
			conf, err := r.AsConf()
			require.NoError(t, err)
			for _, key := range []string{"receivers", "exporters", "service::pipelines::metrics"} {
				assert.True(t, conf.IsSet(key), key)
			}
			checkReceiver(t, conf, "receivers::vllm")
		})
	}
	path := filepath.Join("..", "..", "deploy", "examples", "k8s-engines.yaml")
	b, err = os.ReadFile(path)
	require.NoError(t, err)
	// What stands between backticks is filled in from the pod.
	r, err := confmap.NewRetrievedFromYAML(regexp.MustCompile("`[^`]*`").ReplaceAll(b, []byte("x")))
	require.NoError(t, err)
	conf, err := r.AsConf()
	require.NoError(t, err)
	creator, err := conf.Sub("receivers::receiver_creator::receivers")
	require.NoError(t, err)
	require.NotEmpty(t, creator.ToStringMap())
	for name := range creator.ToStringMap() {
		checkReceiver(t, creator, name+"::config")
	}
}

func checkReceiver(t *testing.T, conf *confmap.Conf, path string) {
	t.Helper()
	sub, err := conf.Sub(path)
	require.NoError(t, err)
	cfg := createDefaultConfig()
	require.NoError(t, sub.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
}

// TestKeyTable compares the table of keys with the default configuration, both ways for the keys that are this receiver's own.
func TestKeyTable(t *testing.T) {
	b, err := os.ReadFile("README.md")
	require.NoError(t, err)
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (?:`([^`]*)`)? ?\\|").FindAllStringSubmatch(string(b), -1) {
		documented[row[1]] = row[2]
	}
	cfg := createDefaultConfig().(*Config)
	for key, value := range map[string]string{
		"endpoints": fmt.Sprint(cfg.Endpoints), "endpoint": cfg.HTTP.Endpoint, "engine": cfg.Engine, "service_name": cfg.ServiceName,
		"collection_interval": cfg.Controller.CollectionInterval.String(), "initial_delay": cfg.Controller.InitialDelay.String(),
		"timeout": cfg.HTTP.Timeout.String(), "raw": fmt.Sprint(cfg.Raw), "max_series": fmt.Sprint(cfg.MaxSeries), "max_page_bytes": fmt.Sprint(cfg.MaxPageBytes),
	} {
		got, ok := documented[key]
		assert.True(t, ok, "%s is not in the table", key)
		assert.Equal(t, value, got, key)
	}
}

// TestListsOfTheReadme holds the closed lists of the README and the code together.
func TestListsOfTheReadme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	require.NoError(t, err)
	text := string(b)
	for _, k := range engine.Kinds() {
		assert.Contains(t, text, "`"+k+"`")
	}
	for _, s := range []target.State{target.StateOK, target.StateIncomplete, target.StateUnreachable, target.StateNotFound, target.StateNotEngine} {
		assert.Contains(t, text, "\n| `"+string(s)+"` | ")
	}
	for _, code := range []string{engine.AdviceStats, engine.AdviceNoPage, engine.AdviceTracingOff, engine.AdviceTracing, engine.AdviceCached, engine.AdviceBlocks, engine.AdviceMFU, engine.AdviceSplit, engine.AdviceUnknown} {
		assert.Contains(t, text, "`"+code+"`")
	}
	for _, p := range usual {
		assert.Contains(t, text, p.port)
	}
}

// TestRules runs promtool's own tests on the rules that go with these metrics.
func TestRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	cmd := exec.CommandContext(t.Context(), promtool, "test", "rules", "engine_test.yaml")
	cmd.Dir = filepath.Join("..", "..", "deploy", "rules")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}
