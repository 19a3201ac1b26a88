package dcgmreceiver

import "github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/simlib"

// TestMain is the generated one; it checks for leaks.
func init() { simlib.Reexec() }
