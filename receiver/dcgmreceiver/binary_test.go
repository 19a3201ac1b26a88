package dcgmreceiver

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/simlib"
)

// TestWithoutTheLibraries runs this binary again where the loader finds neither library.
func TestWithoutTheLibraries(t *testing.T) {
	if !simlib.Bindings {
		t.Skip("this build has no bindings that could miss a library")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildWithoutTheLibraries$", "-test.v")
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "LD_LIBRARY_PATH=") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, "OTELCOL_LLM_SIMLIB=none", "DCGM_CHILD=1", "LD_LIBRARY_PATH=/nonexistent")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "--- PASS: TestChildWithoutTheLibraries")
}

func TestChildWithoutTheLibraries(t *testing.T) {
	if os.Getenv("DCGM_CHILD") == "" {
		t.Skip("run by TestWithoutTheLibraries, in a process that has not loaded the libraries")
	}
	for source, text := range map[SourceKind]string{SourceDCGM: "cannot load libdcgm.so.4", SourceNVML: "cannot load libnvidia-ml.so.1"} {
		cfg := config(source)
		sink := &consumertest.MetricsSink{}
		r, err := NewFactory().CreateMetrics(context.Background(), receiverSettings(), cfg, sink)
		require.NoError(t, err)
		require.NoError(t, r.Start(context.Background(), componenttest.NewNopHost()), "a missing library is no failed start")
		require.Eventually(t, func() bool { return len(sink.AllMetrics()) > 0 }, 10*time.Second, time.Millisecond)
		require.NoError(t, r.Shutdown(context.Background()))
		v, state := up(sink.AllMetrics()[0])
		assert.Zero(t, v)
		assert.Equal(t, gpu.SourceNoLibrary, state)
		err = newSource(cfg, cfg.plan(), componenttest.NewNopHost(), receiverSettings()).Open(context.Background())
		assert.ErrorContains(t, err, text)
	}
}

// TestBinaryStartsWithoutTheLibraries checks what makes that possible, on this binary: libraries that are not needed to
// start, lazy binding, and a list of undefined symbols that grows only on purpose.
func TestBinaryStartsWithoutTheLibraries(t *testing.T) {
	if !simlib.Bindings {
		t.Skip("this build has no bindings")
	}
	for _, tool := range []string{"readelf", "nm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("binutils are not installed: ", err)
		}
	}
	dynamic, err := exec.Command("readelf", "-dW", os.Args[0]).Output()
	require.NoError(t, err)
	assert.NotContains(t, string(dynamic), "BIND_NOW", "link with -ldflags=-extldflags=-Wl,-z,lazy")
	assert.NotRegexp(t, `\(FLAGS_1\).*\bNOW\b`, string(dynamic))
	assert.NotContains(t, string(dynamic), "libdcgm")
	assert.NotContains(t, string(dynamic), "libnvidia-ml")

	undefined, err := exec.Command("nm", "-D", "--undefined-only", os.Args[0]).Output()
	if err != nil || len(bytes.TrimSpace(undefined)) == 0 {
		t.Skip("the binary has no dynamic symbols")
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)\bU ((?:dcgm|Dcgm)\w+|errorString)$`).FindAllStringSubmatch(string(undefined), -1) {
		got = append(got, m[1])
	}
	slices.Sort(got)
	file := filepath.Join("testdata", "undefined_symbols.txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644))
	}
	assert.Equal(t, strings.Fields(read(t, "undefined_symbols.txt")), got, "the binding calls other functions now: check which libdcgm has them, then run with -update")
}

func TestBuildsWithoutCgoAndWithoutDCGM(t *testing.T) {
	for name, env := range map[string][]string{
		"without cgo":        {"CGO_ENABLED=0"},
		"for another system": {"CGO_ENABLED=0", "GOOS=windows"},
		"with nodcgm":        {"CGO_ENABLED=1", "GOFLAGS=" + strings.Replace(os.Getenv("GOFLAGS"), "-tags=", "-tags=nodcgm,", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "with nodcgm" && !strings.Contains(os.Getenv("GOFLAGS"), "-tags=") {
				env[1] = "GOFLAGS=" + os.Getenv("GOFLAGS") + " -tags=nodcgm"
			}
			list := exec.Command("go", "list", "-deps", "./internal/dcgmlib", "./internal/nvmllib")
			list.Env = append(os.Environ(), env...)
			deps, err := list.Output()
			require.NoError(t, err)
			assert.NotContains(t, string(deps), "github.com/NVIDIA")
			if name == "for another system" {
				return // compiling the standard library for it is not worth the time
			}
			build := exec.Command("go", "vet", "./internal/dcgmlib", "./internal/nvmllib")
			build.Env = append(os.Environ(), env...)
			out, err := build.CombinedOutput()
			assert.NoError(t, err, string(out))
		})
	}
}
