//go:build cgo && linux && !nodcgm

package dcgmlib

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/simlib"
)

func init() { simlib.Reexec() }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
