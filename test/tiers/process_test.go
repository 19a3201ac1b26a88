//go:build e2e

package tiers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/internal/child"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long one step may take on a busy machine; no test passes because of it.
const patience = 90 * time.Second

// client has no idle connections that outlive a test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}

// collector is one process of the built binary.
type collector struct {
	*child.Process
	health, self string // URLs
}

// launch is how a collector is started.
type launch struct {
	name    string
	configs []string // --config
	env     []string
	// hosts is a file that the process sees as /etc/hosts; disk a folder on which it sees a file system of diskBytes.
	hosts, disk string
	diskBytes   int
}

// needNamespaces skips where a process cannot have mounts of its own.
func needNamespaces(t testing.TB) {
	t.Helper()
	if out, err := exec.Command("unshare", "-m", "true").CombinedOutput(); err != nil {
		t.Skipf("mount namespaces are not allowed here (root and unshare are needed): %v %s", err, out)
	}
}

// start starts a collector and waits until it is healthy. It is killed at the end of the test.
func start(t testing.TB, l launch) *collector {
	t.Helper()
	ports := child.FreePorts(t, 2)
	c := &collector{health: "http://127.0.0.1:" + ports[0], self: "http://127.0.0.1:" + ports[1] + "/metrics"}
	var script strings.Builder
	if l.hosts != "" {
		fmt.Fprintf(&script, "mount --bind '%s' /etc/hosts\n", l.hosts)
	}
	if l.disk != "" {
		fmt.Fprintf(&script, "mkdir -p '%[1]s'; mount -t tmpfs -o size=%[2]d tmpfs '%[1]s'\n", l.disk, l.diskBytes)
	}
	fmt.Fprintf(&script, "exec '%s'", child.FromEnv(t, "OTELCOL_LLM_BIN", "../..", "bin/otelcol-llm", "make build"))
	for _, s := range l.configs {
		fmt.Fprintf(&script, " --config '%s'", s)
	}
	// exec all the way: the process that is started is the collector.
	cmd := exec.Command("unshare", "-m", "sh", "-ec", script.String())
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"OTELCOL_LLM_HEALTH_PORT=" + ports[0], "OTELCOL_LLM_SELF_PORT=" + ports[1], "OTELCOL_LLM_LOG_LEVEL=warn"}, l.env...)
	c.Process = child.StartCommand(t, l.name, cmd, 0)
	c.Ready(t, patience, c.health)
	return c
}

// stop sends SIGTERM and returns how long the process took to end.
func (c *collector) stop(t testing.TB) time.Duration {
	t.Helper()
	took, err := c.Stop(patience)
	require.NoError(t, err, c.Name)
	require.NoError(t, c.Wait(patience), c.Name)
	return took
}

// metric is the sum of a metric of the collector about itself over all series that have every one of the parts in their labels.
func (c *collector) metric(t testing.TB, name string, parts ...string) float64 {
	t.Helper()
	_, page, err := get(c.self)
	require.NoError(t, err, c.Name)
	total := 0.0
	for line := range strings.SplitSeq(page, "\n") {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || (rest[0] != '{' && rest[0] != ' ') || !containsAll(rest, parts) {
			continue
		}
		v, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		require.NoError(t, err, line)
		total += v
	}
	return total
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// usage is what a process has used: CPU seconds of all its threads, and its resident bytes now.
type usage struct {
	cpu float64
	rss int
}

func (c *collector) usage(t testing.TB) usage {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(c.PID())
	stat, err := os.ReadFile(dir + "/stat")
	require.NoError(t, err)
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
	user, err1 := strconv.ParseFloat(f[11], 64)
	system, err2 := strconv.ParseFloat(f[12], 64)
	require.NoError(t, err1)
	require.NoError(t, err2)
	status, err := os.ReadFile(dir + "/status")
	require.NoError(t, err)
	u := usage{cpu: (user + system) / 100} // in ticks of a hundredth of a second
	for line := range strings.SplitSeq(string(status), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			require.NoError(t, err)
			u.rss = kib << 10
		}
	}
	return u
}

func get(url string) (int, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen in %s: %s", patience, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
