package distribution_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-llm/otelcol-llm/distributions/otelcol-llm/configs"
)

// shipped are the configurations and what is put over them: name of the configuration, name of the text, text.
func shipped(t *testing.T) [][3]string {
	t.Helper()
	var out [][3]string
	for _, name := range configs.Names() {
		raw, err := configs.Read(name)
		require.NoError(t, err)
		out = append(out, [3]string{name, "builtin:" + name, string(raw)})
	}
	overlays, err := filepath.Glob(filepath.Join(root, "deploy", "overlays", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, overlays)
	for _, f := range overlays {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		name, _, _ := strings.Cut(filepath.Base(f), "-")
		out = append(out, [3]string{name, f, string(raw)})
	}
	for _, name := range []string{"agent", "gateway"} {
		out = append(out, [3]string{name, "ConfigMap of the " + name, objects(t)["ConfigMap otelcol-llm-"+name].Data["kubernetes.yaml"]})
	}
	return out
}

// A list in a configuration replaces the one below it: what is put over a shipped one must name every extension that that one starts.
func TestOverlaysStartEveryExtension(t *testing.T) {
	type conf struct {
		Service struct {
			Extensions []string `yaml:"extensions"`
		} `yaml:"service"`
	}
	base, checked := map[string][]string{}, 0
	for _, s := range shipped(t) {
		var c conf
		require.NoError(t, yaml.Unmarshal([]byte(s[2]), &c), s[1])
		if _, ok := base[s[0]]; !ok {
			base[s[0]] = c.Service.Extensions
			continue
		}
		if len(c.Service.Extensions) > 0 {
			checked++
			assert.Subset(t, c.Service.Extensions, base[s[0]], s[1])
		}
	}
	assert.GreaterOrEqual(t, checked, 3)
}

// The stock queue loses what it holds when the disk is full (docs/decisions/0007), so each queue on disk is behind queue_storage.
func TestEveryQueueOnDiskSurvivesAFullDisk(t *testing.T) {
	queues := 0
	for _, s := range shipped(t) {
		var c struct {
			Exporters map[string]struct {
				Queue struct {
					Storage string `yaml:"storage"`
				} `yaml:"sending_queue"`
			} `yaml:"exporters"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(s[2]), &c), s[1])
		for name, e := range c.Exporters {
			if e.Queue.Storage != "" {
				queues++
				assert.Equal(t, "queue_storage", e.Queue.Storage, "%s, exporter %s", s[1], name)
			}
		}
	}
	assert.Equal(t, 5, queues)
}
