//go:build cgo && linux && !nodcgm

package nvmllib

import (
	"fmt"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// process keeps loading and unloading, which write the binding's package variables, apart from calls, which read them.
var process sync.RWMutex

// library is one initialised use of libnvidia-ml. NVML counts its users, so several may exist.
type library struct {
	nvml.Interface
	has map[string]bool
}

// load opens and initialises the library. A call to a function that the installed driver lacks ends the process, so
// can() is asked before any function that is not in every driver.
func load(path string) (*library, error) {
	process.Lock()
	defer process.Unlock()
	var opts []nvml.LibraryOption
	if path != "" {
		opts = append(opts, nvml.WithLibraryPath(path))
	}
	l := &library{Interface: nvml.New(opts...), has: map[string]bool{}}
	switch ret := l.Init(); ret {
	case nvml.SUCCESS:
		return l, nil
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, &gpu.Down{Condition: gpu.SourceNoLibrary, Err: fmt.Errorf("cannot load libnvidia-ml.so.1: it is not found; install the NVIDIA driver, or mount it into the container, or set source: dcgm_exporter")}
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return nil, &gpu.Down{Condition: gpu.SourceNoDriver, Err: fmt.Errorf("NVML: %s; load the NVIDIA driver", text(ret))}
	default:
		return nil, fmt.Errorf("NVML: %s", text(ret))
	}
}

func (l *library) unload() {
	process.Lock()
	defer process.Unlock()
	_ = l.Shutdown()
}

// can reports whether the loaded driver has a function.
func (l *library) can(symbol string) bool {
	have, asked := l.has[symbol]
	if !asked {
		have = l.Extensions().LookupSymbol(symbol) == nil
		l.has[symbol] = have
	}
	return have
}

// text names a result without calling the library: nvmlErrorString may be what is missing.
func text(r nvml.Return) string {
	switch r {
	case nvml.ERROR_UNINITIALIZED:
		return "not initialised"
	case nvml.ERROR_NOT_SUPPORTED:
		return "not supported"
	case nvml.ERROR_NO_PERMISSION:
		return "no permission"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "the driver is not loaded"
	case nvml.ERROR_TIMEOUT:
		return "timeout"
	case nvml.ERROR_GPU_IS_LOST:
		return "the GPU is lost"
	case nvml.ERROR_RESET_REQUIRED:
		return "the GPU needs a reset"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return "driver and library versions differ; the driver was updated without a restart"
	}
	return fmt.Sprintf("error %d", int(r))
}

// reasonOf says why a value is no good.
func reasonOf(r nvml.Return) gpu.Reason {
	switch r {
	case nvml.SUCCESS:
		return gpu.ReasonOK
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_DEPRECATED, nvml.ERROR_INVALID_ARGUMENT:
		return gpu.ReasonNotSupported
	case nvml.ERROR_NO_PERMISSION:
		return gpu.ReasonNoPermission
	case nvml.ERROR_NO_DATA, nvml.ERROR_NOT_READY:
		return gpu.ReasonBlank
	case nvml.ERROR_NOT_FOUND:
		return gpu.ReasonNotFound
	case nvml.ERROR_GPU_IS_LOST:
		return gpu.ReasonLost
	}
	return gpu.ReasonOther
}
