package dcgmreceiver

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/simlib"
)

func TestMain(m *testing.M) {
	os.Exit(simlib.Main(func() int {
		code := m.Run()
		if err := goleak.Find(); err != nil && code == 0 {
			os.Stderr.WriteString("goroutines left: " + err.Error() + "\n")
			return 1
		}
		return code
	}))
}
