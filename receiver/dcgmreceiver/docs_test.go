package dcgmreceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/metadata"
)

var docs = []string{"README.md", filepath.Join("..", "..", "docs", "gpu.md")}

func TestEveryYAMLBlockOfTheDocsLoads(t *testing.T) {
	for _, file := range docs {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, blocks, file)
		for i, b := range blocks {
			t.Run(fmt.Sprintf("%s %d", filepath.Base(file), i), func(t *testing.T) {
				ret, err := confmap.NewRetrievedFromYAML([]byte(strings.ReplaceAll(b[1], "${env:NODE_IP}", "10.0.0.1")))
				require.NoError(t, err)
				cm, err := ret.AsConf()
				require.NoError(t, err)
				sub, err := cm.Sub("receivers::dcgm")
				require.NoError(t, err)
				cfg := createDefaultConfig().(*Config)
				require.NoError(t, sub.Unmarshal(cfg))
				require.NoError(t, confmap.Validate(cfg))
			})
		}
	}
}

func TestREADMEKeysAndDefaults(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	said := map[string]string{}
	section := strings.SplitN(string(text), "## Keys", 2)[1]
	section = strings.SplitN(section, "\n## ", 2)[0]
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*?) \\|").FindAllStringSubmatch(section, -1) {
		said[m[1]] = strings.Trim(m[2], "`")
	}
	want := map[string]string{}
	cfg := reflect.ValueOf(*createDefaultConfig().(*Config))
	for i := range cfg.NumField() {
		key := cfg.Type().Field(i).Tag.Get("mapstructure")
		if key == "" {
			continue
		}
		switch v := cfg.Field(i); v.Interface().(type) {
		case time.Duration:
			d := v.Interface().(time.Duration)
			want[key] = d.String()
		case []string:
			want[key] = strings.Join(v.Interface().([]string), ", ")
		default:
			switch {
			case v.Kind() == reflect.Struct:
				want[key] = "client defaults"
			case v.Kind() == reflect.Map || v.Kind() == reflect.Slice:
				want[key] = "none"
			case v.Kind() == reflect.String && v.Len() == 0:
				want[key] = "empty"
			default:
				want[key] = fmt.Sprint(v.Interface())
			}
		}
	}
	assert.Equal(t, want, said)
}

// TestREADMEMetrics holds the table of metrics to the catalogue; -update writes it.
func TestREADMEMetrics(t *testing.T) {
	const begin, end = "<!-- metrics -->\n", "<!-- /metrics -->"
	b, err := os.ReadFile("README.md")
	require.NoError(t, err)
	text := string(b)
	i, j := strings.Index(text, begin)+len(begin), strings.Index(text, end)
	var table strings.Builder
	table.WriteString("| metric | kind | unit | what |\n|---|---|---|---|\n")
	for _, m := range gpu.Metrics {
		off := ""
		if m.Off {
			off = " Off by default."
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s%s |\n", m.Name, m.Kind, m.Unit, m.Description, off)
	}
	if *update {
		text = text[:i] + table.String() + text[j:]
		require.NoError(t, os.WriteFile("README.md", []byte(text), 0o644))
		return
	}
	assert.Equal(t, table.String(), text[i:j], "run with -update")
}

func TestREADMENamesEveryOwnMetricAndState(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	doc, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`### (otelcol_receiver_dcgm_\w+)`).FindAllStringSubmatch(string(doc), -1) {
		assert.Contains(t, string(text), "`"+m[1]+"`")
	}
	page, err := os.ReadFile(docs[1])
	require.NoError(t, err)
	for _, s := range []string{
		gpu.SourceOK, gpu.SourceStarting, gpu.SourceUnreachable, gpu.SourceNoLibrary, gpu.SourceNoDriver, gpu.SourceNotBuilt,
		gpu.SourceConflict, gpu.SourceNotAnExporter, gpu.SourceHung, gpu.SourceLost, gpu.SourceFailed,
	} {
		assert.Contains(t, string(page), "| `"+s+"` |")
	}
	assert.Equal(t, "dcgm", metadata.Type.String())
}
