package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryFileOfTheFolderIsEmbeddedUnchanged(t *testing.T) {
	paths, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	names := make([]string, 0, len(paths))
	for _, p := range paths {
		name := strings.TrimSuffix(p, ".yaml")
		names = append(names, name)
		want, err := os.ReadFile(p)
		require.NoError(t, err)
		got, err := Read(name)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got))
	}
	assert.Equal(t, names, Names())
	assert.Contains(t, names, "standalone")
}

func TestUnknownNamesListTheKnownOnes(t *testing.T) {
	for _, name := range []string{"", "standalon", "standalone.yaml", "../configs/standalone", "embed.go"} {
		_, err := Read(name)
		assert.ErrorContains(t, err, "there are: "+strings.Join(Names(), ", "), name)
	}
}
