//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// root is the repository's folder.
func root(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	return dir
}

// fromEnv is the value of a variable, or a path below the repository.
func fromEnv(t testing.TB, key, missing string) string {
	t.Helper()
	v := os.Getenv(key)
	if v == "" {
		v = missing
	}
	if !filepath.IsAbs(v) {
		v = filepath.Join(root(t), v)
	}
	return v
}

func binary(t testing.TB) string {
	t.Helper()
	bin := fromEnv(t, "OTELCOL_LLM_BIN", "bin/otelcol-llm")
	require.FileExists(t, bin, "build it first: make build")
	return bin
}

// backend is a program of the built backends, or of the system.
func backend(t testing.TB, name string) string {
	t.Helper()
	built := filepath.Join(fromEnv(t, "OTELCOL_LLM_BACKENDS", ".cache/backends"), name)
	if _, err := os.Stat(built); err == nil {
		return built
	}
	found, err := exec.LookPath(name)
	require.NoError(t, err, "make test-e2e builds VictoriaMetrics and VictoriaLogs; Prometheus and Alertmanager are the system's packages prometheus and prometheus-alertmanager")
	return found
}

// freePort is a port of 127.0.0.1 that nobody listens on now.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// process is a child of the test.
type process struct {
	name   string
	cmd    *exec.Cmd
	log    string // path
	exited chan struct{}
	err    error // of Wait, once exited
}

// start runs a program. It is stopped when the test ends; the end of its log is shown when the test has failed.
func start(t testing.TB, name, bin string, env []string, args ...string) *process {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".log")
	log, err := os.Create(path)
	require.NoError(t, err)
	cmd := exec.Command(bin, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	p := &process{name: name, cmd: cmd, log: path, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		_ = log.Close()
		close(p.exited)
	}()
	t.Cleanup(func() {
		if _, err := p.stop(20 * time.Second); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", name, p.tail(4000))
		}
	})
	return p
}

// stop sends SIGTERM and waits. A process that has to be killed is an error. It returns how long the stop took.
func (p *process) stop(limit time.Duration) (time.Duration, error) {
	select {
	case <-p.exited:
		return 0, nil
	default:
	}
	begin := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.exited:
		return time.Since(begin), nil
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.exited
		return time.Since(begin), fmt.Errorf("did not stop within %v of SIGTERM", limit)
	}
}

func (p *process) output() string {
	b, _ := os.ReadFile(p.log)
	return string(b)
}

func (p *process) tail(n int) string {
	s := p.output()
	return s[max(len(s)-n, 0):]
}

// eventually asks until ask returns nil, and fails the test with its last error after limit.
func eventually(t testing.TB, limit time.Duration, what string, ask func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(limit)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			require.NoError(t, err, "%s, for %v", what, limit)
		}
		<-tick.C
	}
}

// ready waits until a process answers an address with 200.
func (p *process) ready(t testing.TB, url string) {
	t.Helper()
	eventually(t, 60*time.Second, p.name+" is not ready", func() error {
		select {
		case <-p.exited:
			t.Fatalf("%s has ended: %v\n%s", p.name, p.err, p.tail(3000))
		default:
		}
		_, err := fetch(url)
		return err
	})
}

// listens waits until a process accepts connections.
func (p *process) listens(t testing.TB, port int) {
	t.Helper()
	eventually(t, 60*time.Second, p.name+" does not listen", func() error {
		select {
		case <-p.exited:
			t.Fatalf("%s has ended: %v\n%s", p.name, p.err, p.tail(3000))
		default:
		}
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
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
