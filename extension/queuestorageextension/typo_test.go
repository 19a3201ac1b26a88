package queuestorageextension

import (
	"testing"

	"github.com/otelcol-llm/otelcol-llm/internal/typotest"
)

func TestATypoAnywhereIsAnError(t *testing.T) {
	typotest.Run(t, NewFactory().CreateDefaultConfig)
}
