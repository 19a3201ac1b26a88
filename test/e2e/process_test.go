//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/child"
)

// root is the repository's folder.
const root = "../.."

func binary(t testing.TB) string {
	t.Helper()
	return child.FromEnv(t, "OTELCOL_LLM_BIN", root, "bin/otelcol-llm", "make build")
}

// backend is a program of the built backends, or of the system.
func backend(t testing.TB, name string) string {
	t.Helper()
	const how = "make test-e2e builds VictoriaMetrics and VictoriaLogs; Prometheus and Alertmanager are the system's packages prometheus and prometheus-alertmanager"
	built := filepath.Join(child.FromEnv(t, "OTELCOL_LLM_BACKENDS", root, ".cache/backends", how), name)
	if _, err := os.Stat(built); err == nil {
		return built
	}
	found, err := exec.LookPath(name)
	require.NoError(t, err, how)
	return found
}

// start runs a program, which is stopped within 20 s when the test ends.
func start(t testing.TB, name, bin string, env []string, args ...string) *child.Process {
	t.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Env = env
	return child.StartCommand(t, name, cmd, 20*time.Second)
}

var client = &http.Client{Timeout: 20 * time.Second}

func fetch(url string) ([]byte, error) { return do(http.MethodGet, url, "", "") }

func post(url, contentType, body string) ([]byte, error) {
	return do(http.MethodPost, url, contentType, body)
}

func do(method, url, contentType, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	r, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.StatusCode/100 != 2 {
		return b, fmt.Errorf("%s answered %d: %.200s", url, r.StatusCode, b)
	}
	return b, nil
}

// write puts a file into a folder of the test and returns its path.
func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
