package typotest

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
)

type inner struct {
	A int `mapstructure:"a"`
}

type sound struct {
	ID       component.ID                   `mapstructure:"id"`
	Wait     time.Duration                  `mapstructure:"wait"`
	Secret   configopaque.String            `mapstructure:"secret"`
	Inner    inner                          `mapstructure:"inner"`
	Pointer  *inner                         `mapstructure:"pointer"`
	List     []inner                        `mapstructure:"list"`
	Map      map[string]inner               `mapstructure:"map"`
	Optional configoptional.Optional[inner] `mapstructure:"optional"`
	Squashed struct {
		Deep inner `mapstructure:"deep"`
	} `mapstructure:",squash"`
	hidden inner
}

func TestEverySectionIsFound(t *testing.T) {
	var got []string
	for _, p := range sectionsOf(reflect.TypeFor[*sound](), nil, 0) {
		got = append(got, strings.Join(p, "::"))
		assert.NoError(t, refusal(&sound{hidden: inner{}}, p))
	}
	assert.Equal(t, []string{"", "inner", "pointer", "list::0", "map::entry", "optional", "deep"}, got)
}

func TestAHoleIsFound(t *testing.T) {
	type squashing struct {
		HTTP confighttp.ClientConfig `mapstructure:",squash"`
	}
	type nesting struct {
		HTTP confighttp.ClientConfig `mapstructure:"http"`
	}
	assert.ErrorContains(t, refusal(&squashing{}, nil), "passed over")
	assert.ErrorContains(t, refusal(&nesting{}, []string{"http"}), "passed over")
	assert.ErrorContains(t, refusal(&nesting{}, []string{"http", "tls"}), "passed over")
	assert.NoError(t, refusal(&nesting{}, nil))
	assert.ErrorContains(t, refusal(&sound{}, []string{"wait"}), "does not name")
}
