package llmconsoleexporter

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
)

func TestFactoryWritesToTheChosenStream(t *testing.T) {
	for _, output := range []Output{OutputStdout, OutputStderr} {
		t.Run(string(output), func(t *testing.T) {
			stdout, stderr := os.Stdout, os.Stderr
			defer func() { os.Stdout, os.Stderr = stdout, stderr }()
			dir := t.TempDir()
			files := map[Output]*os.File{}
			for _, o := range []Output{OutputStdout, OutputStderr} {
				f, err := os.Create(filepath.Join(dir, string(o)))
				require.NoError(t, err)
				defer f.Close()
				files[o] = f
			}
			os.Stdout, os.Stderr = files[OutputStdout], files[OutputStderr]

			cfg := defaults()
			cfg.Output = output
			factory := NewFactory()
			exp, err := factory.CreateLogs(t.Context(), exportertest.NewNopSettings(factory.Type()), cfg)
			require.NoError(t, err)
			assert.False(t, exp.Capabilities().MutatesData)
			require.NoError(t, exp.Start(t.Context(), componenttest.NewNopHost()))
			require.NoError(t, exp.ConsumeLogs(t.Context(), requests(1)))
			require.NoError(t, exp.Shutdown(t.Context()))

			for o := range files {
				got, err := os.ReadFile(filepath.Join(dir, string(o)))
				require.NoError(t, err)
				if o == output {
					assert.Contains(t, string(got), " ok        meta-llama/Llama-3.1-8B  ttft  123ms")
				} else {
					assert.Empty(t, string(got))
				}
				assert.NotContains(t, string(got), canary)
			}
		})
	}
}
