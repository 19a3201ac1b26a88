package gpu

import (
	"context"
	"errors"
	"time"
)

// Source reads GPUs. One goroutine calls it; Open, Read and Close never overlap, except that Close is called while a
// Read or Open hangs, to end it.
type Source interface {
	// Name is dcgm, nvml or dcgm_exporter.
	Name() string
	// Open connects and finds out what can be read. A failed Open leaves nothing behind and may be tried again for ever.
	Open(ctx context.Context) error
	// Read reads every device once. An error means that the source must be closed and opened again.
	Read(ctx context.Context, now time.Time) (*Reading, error)
	// Close lets go of everything; it may be called twice and without Open.
	Close() error
}

// Conditions of a source, as they appear in dcgm.state. All but ok go with dcgm.up = 0 and are retried for ever.
const (
	SourceOK            = "ok"
	SourceStarting      = "starting"          // not opened yet
	SourceUnreachable   = "unreachable"       // nothing answers at the endpoint
	SourceNoLibrary     = "library_missing"   // libdcgm.so.4 or libnvidia-ml.so.1, or a library it needs, is not found
	SourceNoDriver      = "driver_missing"    // the library is there, the driver is not
	SourceNotBuilt      = "not_built"         // this binary was built without cgo
	SourceConflict      = "endpoint_conflict" // the process is connected to another host engine
	SourceNotAnExporter = "not_an_exporter"   // the page has no DCGM metrics
	SourceHung          = "hung"              // a call into the library did not return in time
	SourceLost          = "disconnected"      // the connection was lost
	SourceFailed        = "failed"            // anything else
)

// Down is an error that says in which condition the source is.
type Down struct {
	Condition string
	Err       error
}

func (d *Down) Error() string { return d.Err.Error() }
func (d *Down) Unwrap() error { return d.Err }

// ConditionOf is the condition an error stands for.
func ConditionOf(err error) string {
	if err == nil {
		return SourceOK
	}
	var d *Down
	if errors.As(err, &d) {
		return d.Condition
	}
	return SourceFailed
}
