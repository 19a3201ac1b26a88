package distribution_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-llm/otelcol-llm/distributions/otelcol-llm/configs"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
)

// binary returns the built collector; `make validate` names it.
func binary(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("OTELCOL_LLM_BIN")
	if bin == "" {
		t.Skip("OTELCOL_LLM_BIN is not set; make validate builds the binary and sets it")
	}
	abs, err := filepath.Abs(bin)
	require.NoError(t, err)
	return abs
}

func validate(t *testing.T, bin string, sources ...string) error {
	t.Helper()
	args := []string{"validate"}
	for _, s := range sources {
		args = append(args, "--config", s)
	}
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("%s", out)
	}
	return err
}

func TestValidateShippedConfigurations(t *testing.T) {
	bin := binary(t)
	for _, name := range configs.Names() {
		t.Run(name, func(t *testing.T) {
			assert.NoError(t, validate(t, bin, "builtin:"+name))
		})
	}
}

// The binary must be able to say no, else the tests beside this one say nothing.
func TestValidateRefusesATypo(t *testing.T) {
	bin := binary(t)
	require.NoError(t, validate(t, bin, "builtin:standalone"))
	assert.Error(t, validate(t, bin, "builtin:standalone", "yaml:exporters::llmconsole::outptu: stdout"))
}

// over marks a block that is a second configuration over a shipped one.
const over = "# over builtin:"

// Every YAML block of every page that is a collector configuration (it has a service) is one that the binary accepts.
func TestValidateDocumentation(t *testing.T) {
	bin := binary(t)
	checked := 0
	for _, page := range pages(t) {
		raw, err := os.ReadFile(page)
		require.NoError(t, err)
		if !strings.Contains(string(raw), "```yaml") {
			continue
		}
		for _, b := range doctest.Blocks(t, page) {
			var conf map[string]any
			if yaml.Unmarshal([]byte(b.Text), &conf) != nil || conf["service"] == nil {
				continue
			}
			checked++
			rel, err := filepath.Rel(root, page)
			require.NoError(t, err)
			t.Run(rel+":"+strconv.Itoa(b.Line), func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "block.yaml")
				require.NoError(t, os.WriteFile(file, []byte(b.Text), 0o600))
				sources := []string{file}
				if name, ok := strings.CutPrefix(b.Text, over); ok {
					name, _, _ = strings.Cut(name, "\n")
					name, _, _ = strings.Cut(name, ":")
					sources = []string{"builtin:" + strings.TrimSpace(name), file}
				}
				assert.NoError(t, validate(t, bin, sources...))
			})
		}
	}
	assert.Positive(t, checked)
}

// pages lists the Markdown of the repository, without what tools leave behind.
func pages(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != root && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(p) == ".md" {
			out = append(out, p)
		}
		return nil
	})
	require.NoError(t, err)
	return out
}
