package recordings_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
)

var update = flag.Bool("update", false, "rewrite the golden files; review the difference like code")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every recording gives its golden result through the factories of the llmspan pair. The files are the review: `git diff` them.
func TestEveryRecordingGivesItsGoldenResult(t *testing.T) {
	names := recordings.Names()
	require.Greater(t, len(names), 100)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			got := run(t, load(t, name)).summary()
			file := filepath.Join("testdata", "golden", strings.ReplaceAll(name, "/", "_")+".txt")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err, "run with -update and review the new file")
			assert.Equal(t, string(want), got)
		})
	}
}
