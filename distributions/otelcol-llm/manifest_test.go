// Package distribution_test checks what the distribution is made of: the manifest, the shipped configurations, the documentation.
package distribution_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	root   = "../.."
	module = "github.com/otelcol-llm/otelcol-llm"
)

// folders are where our components live, and the section of the manifest that each belongs to.
var folders = map[string]string{
	"receiver": "receivers", "processor": "processors", "connector": "connectors",
	"exporter": "exporters", "extension": "extensions", "provider": "providers",
}

type entry struct {
	GoMod  string `yaml:"gomod"`
	Import string `yaml:"import"`
	Path   string `yaml:"path"`
}

func manifest(t *testing.T) map[string][]entry {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "builder-config.yaml"))
	require.NoError(t, err)
	var all map[string]yaml.Node
	require.NoError(t, yaml.Unmarshal(raw, &all))
	out := map[string][]entry{}
	for _, section := range folders {
		node, ok := all[section]
		require.True(t, ok, "the manifest has no %s", section)
		var entries []entry
		require.NoError(t, node.Decode(&entries))
		out[section] = entries
	}
	return out
}

var newFactory = regexp.MustCompile(`(?m)^func NewFactory\(\)`)

// ours lists the component folders (those with a NewFactory) of one kind.
func ours(t *testing.T, kind string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, kind, "*", "*.go"))
	require.NoError(t, err)
	var out []string
	for _, f := range files {
		src, err := os.ReadFile(f)
		require.NoError(t, err)
		if newFactory.Match(src) {
			out = append(out, path.Join(module, kind, filepath.Base(filepath.Dir(f))))
		}
	}
	return out
}

func TestManifestNamesEveryComponentOfOursExactlyOnce(t *testing.T) {
	found := 0
	for kind, section := range folders {
		var listed []string
		for _, e := range manifest(t)[section] {
			if !strings.HasPrefix(e.GoMod, module+" ") {
				continue
			}
			assert.Equal(t, ".", e.Path, "%s: ours is built from this tree", e.Import)
			listed = append(listed, e.Import)
		}
		assert.ElementsMatch(t, ours(t, kind), listed, "folders under %s/ (left) and the manifest's %s (right)", kind, section)
		found += len(listed)
	}
	assert.GreaterOrEqual(t, found, 2)
}

// A folder that is named for a kind but lies elsewhere, or has no factory, would be missed by the test above.
func TestComponentFoldersAreNamedForTheirKind(t *testing.T) {
	for kind := range folders {
		dirs, err := os.ReadDir(filepath.Join(root, kind))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		for _, d := range dirs {
			assert.True(t, d.IsDir() && strings.HasSuffix(d.Name(), kind), "%s/%s: a component's folder is called <name>%s", kind, d.Name(), kind)
			assert.Contains(t, ours(t, kind), path.Join(module, kind, d.Name()), "has no NewFactory")
		}
	}
}

func TestManifestPinsEveryModuleOnce(t *testing.T) {
	pinned := regexp.MustCompile(`^\S+ v\d+\.\d+\.\d+$`)
	for section, entries := range manifest(t) {
		var seen []string
		for _, e := range entries {
			assert.Regexp(t, pinned, e.GoMod, section)
			key := e.GoMod + " " + e.Import
			assert.False(t, slices.Contains(seen, key), "%s: %s twice", section, key)
			seen = append(seen, key)
		}
		require.NotEmpty(t, seen, section)
	}
}

// Components compile against the core that go.mod names, so the manifest must not ask for another one: Go would take the higher.
func TestManifestAndModuleAgreeOnTheCore(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	versions := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\s*(go\.opentelemetry\.io/collector/\S+) (v\S+)`).FindAllStringSubmatch(string(raw), -1) {
		versions[m[1]] = m[2]
	}
	require.NotEmpty(t, versions)
	for section, entries := range manifest(t) {
		for _, e := range entries {
			name, version, _ := strings.Cut(e.GoMod, " ")
			switch want, both := versions[name]; {
			case both:
				assert.Equal(t, want, version, "%s: %s", section, name)
			case strings.HasPrefix(name, "go.opentelemetry.io/collector/confmap/"):
				assert.Equal(t, versions["go.opentelemetry.io/collector/confmap"], version, name)
			case strings.HasPrefix(name, "go.opentelemetry.io/collector/"):
				assert.Equal(t, versions["go.opentelemetry.io/collector/processor/processorhelper"], version, name)
			}
		}
	}
}
