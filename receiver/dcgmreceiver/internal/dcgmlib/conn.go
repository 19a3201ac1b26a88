//go:build cgo && linux && !nodcgm

package dcgmlib

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

static void *openLibrary(const char *name) { return dlopen(name, RTLD_LAZY | RTLD_GLOBAL); }
static int hasSymbol(void *lib, const char *name) { return dlsym(lib, name) != NULL; }
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

const libraryName = "libdcgm.so.4"

// symbols are the functions this package makes the binding call. A call to a function that the installed library lacks
// ends the process (exit 127, "symbol lookup error"), so they are looked up before the first call.
var symbols = []string{
	"dcgmInit", "dcgmShutdown", "dcgmConnect_v2", "dcgmDisconnect", "dcgmStartEmbedded", "dcgmStopEmbedded", "errorString",
	"dcgmHostengineVersionInfo", "dcgmGetAllSupportedDevices", "dcgmGetGpuStatus", "dcgmGetGpuInstanceHierarchy",
	"dcgmGetEntityGroupEntities", "dcgmGroupCreate", "dcgmGroupAddEntity", "dcgmGroupDestroy", "dcgmFieldGroupCreate",
	"dcgmFieldGroupDestroy", "dcgmWatchFields", "dcgmUnwatchFields", "dcgmUpdateAllFields", "dcgmEntitiesGetLatestValues",
	"dcgmGetValuesSince_v2", "DcgmFieldGetById", "dcgmProfGetSupportedMetricGroups", "dcgmHealthSet", "dcgmHealthCheck",
}

// library opens libdcgm once and checks that it has what is called. It is never closed: the loader keeps it anyway.
// A missing library is looked for again each time, since one may be installed while the process runs.
func library() error {
	name := C.CString(libraryName)
	defer C.free(unsafe.Pointer(name))
	lib := C.openLibrary(name)
	if lib == nil {
		// go-dcgm drops the loader's text, which is what tells a missing library from a missing dependency of it.
		return &gpu.Down{Condition: gpu.SourceNoLibrary, Err: fmt.Errorf("cannot load %s: %s; install datacenter-gpu-manager-4-core or set source: dcgm_exporter", libraryName, C.GoString(C.dlerror()))}
	}
	var missing []string
	for _, s := range symbols {
		c := C.CString(s)
		if C.hasSymbol(lib, c) == 0 {
			missing = append(missing, s)
		}
		C.free(unsafe.Pointer(c))
	}
	if len(missing) > 0 {
		return &gpu.Down{Condition: gpu.SourceNoLibrary, Err: fmt.Errorf("%s lacks %s; install DCGM 4", libraryName, strings.Join(missing, ", "))}
	}
	return nil
}

// connection is the one connection a process can have: go-dcgm keeps its handle in a package variable, counts further
// Inits and ignores their address. Sources of one endpoint share it; another endpoint is refused.
type connection struct {
	mu    sync.Mutex
	key   string
	users map[*source]bool
	open  bool

	// calls lets reads run side by side and keeps Init apart from them, since Init writes the handle that they read.
	// Shutdown does not take it: it must get through while a read hangs, which is what ends the read.
	calls sync.RWMutex
}

var process = &connection{users: map[*source]bool{}}

// acquire connects s, or shares the connection there is.
func (c *connection) acquire(s *source) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fmt.Sprintf("%v %v %s", s.opts.Embedded, s.opts.UnixSocket, s.opts.Address)
	if len(c.users) > 0 && c.key != key {
		return &gpu.Down{Condition: gpu.SourceConflict, Err: errors.New("this process is connected to another DCGM host engine; libdcgm allows one: use one endpoint for all dcgm receivers")}
	}
	if !c.open {
		if err := library(); err != nil {
			return err
		}
		if err := c.connect(s); err != nil {
			return err
		}
		c.open, c.key = true, key
	}
	c.users[s] = true
	return nil
}

func (c *connection) connect(s *source) error {
	c.calls.Lock()
	defer c.calls.Unlock()
	var err error
	switch {
	case s.opts.Embedded:
		_, err = dcgm.Init(dcgm.Embedded)
	case s.opts.UnixSocket:
		_, err = dcgm.Init(dcgm.Standalone, s.opts.Address, "1")
	default:
		_, err = dcgm.Init(dcgm.Standalone, s.opts.Address, "0")
	}
	if err != nil {
		// The binding closes nothing after a failed connect, and the library counts its dcgmInit calls: harmless, an int.
		return &gpu.Down{Condition: gpu.SourceUnreachable, Err: fmt.Errorf("cannot connect to %q: %w; start the host engine (nv-hostengine) or set endpoint", s.address(), err)}
	}
	return nil
}

// release lets go of the connection; the last user closes it. broken closes it for all users at once, who notice by
// their next call's error: after a lost connection no handle of it works again.
func (c *connection) release(s *source, broken bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.users[s] {
		return nil
	}
	delete(c.users, s)
	if !c.open || (len(c.users) > 0 && !broken) {
		return nil
	}
	c.open = false
	// The others' groups are gone with the connection, and their numbers will be given out again on the next one: they
	// must not go on with it as if nothing had happened.
	clear(c.users)
	return dcgm.Shutdown()
}

// shared reports whether another source uses the connection too.
func (c *connection) shared(s *source) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open && c.users[s] && len(c.users) > 1
}

// do runs a library call unless the connection of s has been closed by another user.
func (c *connection) do(s *source, f func() error) error {
	c.mu.Lock()
	usable := c.open && c.users[s]
	c.mu.Unlock()
	if !usable {
		return errDisconnected
	}
	c.calls.RLock()
	defer c.calls.RUnlock()
	return f()
}

var errDisconnected = &gpu.Down{Condition: gpu.SourceLost, Err: errors.New("the connection to the host engine was closed")}

// Codes of dcgmReturn_t (dcgm_structs.h).
const (
	codeNotSupported      = -6
	codeNoData            = -14
	codeStale             = -15
	codeNotWatched        = -16
	codeNoPermission      = -17
	codeLost              = -18
	codeUnknownField      = -13
	codePending           = -9
	codeUninitialized     = -10
	codeTimeout           = -11
	codeConnection        = -21
	codeGPUNotSupported   = -22
	codeRequiresRoot      = -29
	codeFieldNotByAPI     = -32
	codeModuleNotLoaded   = -33
	codeProfNotSupported  = -36
	codeProfLibrary       = -37
	codeProfMultiPass     = -38
	codeInstanceNotFound  = -45
	codeComputeNotFound   = -46
	codeInsufficientDrive = -44
	codeDetached          = -67
)

// code is the library's code of an error, when the binding passes it on; 0 otherwise.
func code(err error) int {
	var e *dcgm.Error
	if errors.As(err, &e) {
		return int(e.Code)
	}
	return 0
}

// lostConnection reports whether an error means that the connection must be made anew.
func lostConnection(err error) bool {
	switch code(err) {
	case codeConnection, codeUninitialized, codeTimeout:
		return true
	}
	return errors.Is(err, errDisconnected)
}

// reasonOf says why a value of this status is no good.
func reasonOf(status int) gpu.Reason {
	switch status {
	case 0:
		return gpu.ReasonOK
	case codeNotSupported, codeFieldNotByAPI, codeGPUNotSupported, codeProfNotSupported, codeInsufficientDrive, codeUnknownField:
		return gpu.ReasonNotSupported
	case codeNoData, codePending:
		return gpu.ReasonBlank
	case codeStale:
		return gpu.ReasonStale
	case codeNotWatched:
		return gpu.ReasonUnwatched
	case codeNoPermission, codeRequiresRoot:
		return gpu.ReasonNoPermission
	case codeLost, codeDetached:
		return gpu.ReasonLost
	case codeInstanceNotFound, codeComputeNotFound:
		return gpu.ReasonNotFound
	}
	return gpu.ReasonOther
}
