// Package simlib builds simulated driver libraries for tests, so that NVIDIA's unmodified bindings run without a GPU.
//
// libdcgm.c and libnvml.c are compiled with gcc against the headers inside the bindings' own modules. The loader looks
// for a library when it is first needed, in LD_LIBRARY_PATH as it was when the process started; so Reexec builds the
// libraries, and runs the test binary again with that variable set.
package simlib

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const (
	envDir  = "OTELCOL_LLM_SIMLIB"
	envDCGM = "DCGM_SIM"
	envNVML = "NVML_SIM"
)

// Reexec builds the libraries and runs the test binary again with them, then ends the process with its exit code. Called
// from a test file's init, it leaves TestMain to the package. In the second run, and without gcc, it returns; tests that
// need a library then skip in the latter case.
func Reexec() {
	if os.Getenv(envDir) != "" || !Bindings {
		return
	}
	code, err := again()
	switch {
	case err == nil:
		os.Exit(code)
	case !errors.Is(err, exec.ErrNotFound):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func again() (code int, err error) {
	dir, err := os.MkdirTemp("", "simlib")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := build(dir); err != nil {
		return 0, err
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...) //nolint:gosec // the test binary itself
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(),
		envDir+"="+dir, envDCGM+"="+filepath.Join(dir, "dcgm.scenario"), envNVML+"="+filepath.Join(dir, "nvml.scenario"),
		"LD_LIBRARY_PATH="+dir)
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

func build(dir string) error {
	_, self, _, _ := runtime.Caller(0)
	if !filepath.IsAbs(self) {
		// Built with -trimpath: the file is named by its import path, and tests run in their package's folder.
		root, err := goList("-m", "github.com/otelcol-llm/otelcol-llm")
		if err != nil {
			return err
		}
		self = filepath.Join(root, "receiver", "dcgmreceiver", "internal", "simlib", "simlib.go")
	}
	for _, lib := range []struct{ source, soname, module, include string }{
		{"libdcgm.c", "libdcgm.so.4", "github.com/NVIDIA/go-dcgm", "pkg/dcgm"},
		{"libnvml.c", "libnvidia-ml.so.1", "github.com/NVIDIA/go-nvml", "pkg/nvml"},
	} {
		module, err := goList("-m", lib.module)
		if err != nil {
			return err
		}
		source := filepath.Join(filepath.Dir(self), "testdata", lib.source)
		cmd := exec.Command("gcc", "-O1", "-fPIC", "-shared", "-pthread", "-w", "-fvisibility=hidden",
			"-I", filepath.Join(module, lib.include), "-Wl,-soname,"+lib.soname, "-o", filepath.Join(dir, lib.soname), source)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build the simulated %s: %w\n%s", lib.soname, err, out)
		}
	}
	return nil
}

func goList(args ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"list", "-f", "{{.Dir}}"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list %v: %w", args, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Need skips a test where there is no simulated library to run it on.
func Need(t testing.TB) {
	t.Helper()
	switch {
	case !Bindings:
		t.Skip("built without cgo, or with nodcgm: nothing would load a simulated library")
	case os.Getenv(envDir) == "":
		t.Skip("no simulated library: gcc is not installed")
	}
}

// DCGM makes text the scenario of the simulated libdcgm, from its next call on.
func DCGM(t testing.TB, text string) { t.Helper(); set(t, envDCGM, text) }

// NVML makes text the scenario of the simulated libnvidia-ml.
func NVML(t testing.TB, text string) { t.Helper(); set(t, envNVML, text) }

func set(t testing.TB, env, text string) {
	t.Helper()
	Need(t)
	path := os.Getenv(env)
	// Renaming makes the change atomic, and a new inode tells the library that there is one.
	tmp, err := os.CreateTemp(filepath.Dir(path), "scenario")
	if err == nil {
		_, err = tmp.WriteString(text)
	}
	if err == nil {
		err = tmp.Close()
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Read is a scenario file of the calling package's testdata.
func Read(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Edit replaces whole lines of a scenario that start with a prefix, or adds the line when none does.
func Edit(text string, replace ...string) string {
	for i := 0; i+1 < len(replace); i += 2 {
		lines, done := strings.Split(text, "\n"), false
		for j, l := range lines {
			if strings.HasPrefix(l, replace[i]) {
				lines[j], done = replace[i+1], true
			}
		}
		text = strings.Join(lines, "\n")
		if !done {
			text += "\n" + replace[i+1] + "\n"
		}
	}
	return text
}
