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
	"strconv"
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

// Start runs bin with env added to the test's environment. It is stopped when the test ends, within 30 s.
func Start(t testing.TB, name string, env []string, bin string, args ...string) *Process {
	t.Helper()
	cmd := exec.Command(bin, args...) //nolint:noctx // it outlives t.Context(), which ends before the clean-up that stops it
	cmd.Env = env
	return StartCommand(t, name, cmd, 30*time.Second)
}

// StartCommand runs cmd in a process group of its own, with cmd.Env added to the test's environment, and cmd.Stdout apart from Output if
// it is set. When the test ends, the program is stopped, or killed if limit is 0; the end of its log is shown when the test has failed.
func StartCommand(t testing.TB, name string, cmd *exec.Cmd, limit time.Duration) *Process {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".log")
	log, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if cmd.Stderr = log; cmd.Stdout == nil {
		cmd.Stdout = log
	}
	cmd.Env = append(os.Environ(), cmd.Env...)
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
		if limit == 0 {
			p.Kill()
		} else if _, err := p.Stop(limit); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s: %v", name, err)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind in its group
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", name, p.Tail(4000))
		}
	})
	return p
}

// PID is the process's number, which a shell passes on to the program that it execs.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the program has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Kill ends the program without a chance to do anything.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Stop sends SIGTERM and waits. It returns how long the stop took. A program that has to be killed is an error, as is one that ended before
// (os.ErrProcessDone).
func (p *Process) Stop(limit time.Duration) (time.Duration, error) {
	begin := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.exited:
		return time.Since(begin), nil
	case <-timer.C:
		p.Kill()
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
	if err := p.Until(limit, func() error { return Answers(url) }); err != nil {
		t.Fatal(err)
	}
}

// Until asks until ask returns nil. It is an error that this takes longer than limit, or that the program has ended; the end of its log is
// part of the error.
func (p *Process) Until(limit time.Duration, ask func() error) error {
	err := until(limit, p.exited, ask)
	if errors.Is(err, os.ErrProcessDone) {
		err = fmt.Errorf("%w: %s", err, p.cmd.ProcessState)
	}
	if err != nil {
		err = fmt.Errorf("%s is not ready: %w\n%s", p.Name, err, p.Tail(3000))
	}
	return err
}

// client has no idle connections that outlive a test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}

// Answers is an error unless url is answered with 200 within 10 s.
func Answers(url string) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	r, err := client.Do(req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %d", url, r.StatusCode)
	}
	return nil
}

// Eventually asks until ask returns nil, and fails the test with the last error after limit.
func Eventually(t testing.TB, limit time.Duration, what string, ask func() error) {
	t.Helper()
	if err := until(limit, nil, ask); err != nil {
		t.Fatalf("%s, %v", what, err)
	}
}

func until(limit time.Duration, ended <-chan struct{}, ask func() error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(limit)
	for {
		select {
		case <-ended:
			return os.ErrProcessDone
		default:
		}
		err := ask()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("for %v: %w", limit, err)
		}
		<-tick.C
	}
}

// FreePorts are n different ports of 127.0.0.1 that nobody listens on now.
func FreePorts(t testing.TB, n int) []string {
	t.Helper()
	var ports []string
	for range n {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // all at the end, so that no port comes twice
		ports = append(ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return ports
}

// FromEnv is the path in a variable, else missing, below the repository's folder, which is up folders above the test's. It skips the
// test when the variable is not set and nothing is there, and says how to get it; a variable that names nothing fails it.
func FromEnv(t testing.TB, key, up, missing, how string) string {
	t.Helper()
	v := os.Getenv(key)
	fail := t.Fatalf
	if v == "" {
		v, fail = missing, t.Skipf
	}
	if !filepath.IsAbs(v) {
		v = filepath.Join(up, v)
	}
	v, err := filepath.Abs(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(v); err != nil {
		fail("%s is missing (%s): %s", v, key, how)
	}
	return v
}
