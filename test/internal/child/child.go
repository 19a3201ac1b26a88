// Package child runs the programs of a live test (a collector, an engine, a gateway, an application) as children of the test.
package child

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Process is a running program. Its standard output and error go to one file.
type Process struct {
	Name   string
	Log    string // path
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of Wait, once exited
}

// Start runs a program in a process group of its own, with env added to the test's environment. It is stopped when the test ends;
// the end of its log is shown when the test has failed.
func Start(t testing.TB, name string, env []string, bin string, args ...string) *Process {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".log")
	log, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, args...) //nolint:noctx // it outlives t.Context(), which ends before the clean-up that stops it
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), env...)
	// Engines have children of their own, which a signal to the group reaches as well.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatalf("cannot start %s: %v", name, err)
	}
	p := &Process{Name: name, Log: path, cmd: cmd, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		_ = log.Close()
		close(p.exited)
	}()
	t.Cleanup(func() {
		if _, err := p.Stop(30 * time.Second); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind in its group
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", name, p.Tail(4000))
		}
	})
	return p
}

// Stop sends SIGTERM and waits. A process that has to be killed is an error. It returns how long the stop took.
func (p *Process) Stop(limit time.Duration) (time.Duration, error) {
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

// Wait waits for the program's own end and returns its error; one that runs longer than limit is stopped, and that is an error.
func (p *Process) Wait(limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.exited:
		return p.err
	case <-timer.C:
		_, err := p.Stop(10 * time.Second)
		return errors.Join(fmt.Errorf("still runs after %v", limit), err)
	}
}

// Output is what the program has written so far.
func (p *Process) Output() string {
	b, _ := os.ReadFile(p.Log)
	return string(b)
}

// Tail is the end of Output, at most n bytes.
func (p *Process) Tail(n int) string {
	s := p.Output()
	return s[max(len(s)-n, 0):]
}

// Ready waits at most limit until the program answers url with 200.
func (p *Process) Ready(t testing.TB, limit time.Duration, url string) {
	t.Helper()
	Eventually(t, limit, p.Name+" is not ready", func() error {
		select {
		case <-p.exited:
			t.Fatalf("%s has ended: %v\n%s", p.Name, p.err, p.Tail(3000))
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		r, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answered %d", url, r.StatusCode)
		}
		return nil
	})
}

// Eventually asks until ask returns nil, and fails the test with the last error after limit.
func Eventually(t testing.TB, limit time.Duration, what string, ask func() error) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(limit)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s, for %v: %v", what, limit, err)
		}
		<-tick.C
	}
}

// FreePorts are n different ports of 127.0.0.1 that nobody listens on now.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // all at the end, so that no port comes twice
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// FromEnv is the path in a variable, else missing below the repository's folder, which is up folders above the test's. It skips the
// test when nothing is there, and says how to get it.
func FromEnv(t testing.TB, key, up, missing, how string) string {
	t.Helper()
	v := os.Getenv(key)
	if v == "" {
		v = filepath.Join(up, missing)
	}
	v, err := filepath.Abs(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(v); err != nil {
		t.Skipf("%s is missing (%s): %s", v, key, how)
	}
	return v
}
