package llmsimextension

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-llm/otelcol-llm/internal/typotest"
)

func TestATypoAnywhereIsAnError(t *testing.T) {
	typotest.Run(t, NewFactory().CreateDefaultConfig)
}

// A key that only one of the two has would be refused, or passed over.
func TestTheStrictExportHasTheKeysOfTheExport(t *testing.T) {
	tags := func(t reflect.Type) (out []string) {
		for i := range t.NumField() {
			out = append(out, t.Field(i).Name+" "+string(t.Field(i).Tag))
		}
		return out
	}
	assert.Equal(t, tags(reflect.TypeFor[ExportConfig]()), tags(reflect.TypeFor[strictExport]()))
}
