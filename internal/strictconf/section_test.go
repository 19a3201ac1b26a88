package strictconf

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"
)

type squashed struct {
	HTTP     Client        `mapstructure:",squash"`
	Interval time.Duration `mapstructure:"interval"`
}

func TestSection(t *testing.T) {
	for name, tt := range map[string]struct {
		section any
		plain   any
		err     string
	}{
		"absent":                {nil, &Client{}, ""},
		"empty":                 {map[string]any{}, &Client{}, ""},
		"known keys":            {map[string]any{"timeout": "3s", "headers": map[string]any{"a": "b"}, "tls": map[string]any{"insecure": true}}, &Client{}, ""},
		"the server's keys":     {map[string]any{"endpoint": "x:1", "cors": map[string]any{"max_age": 1}}, &Server{}, ""},
		"a client's typo":       {map[string]any{"tmeout": "3s"}, &Client{}, `http: has no key "tmeout"; keys are auth, compression, `},
		"two typos":             {map[string]any{"b": 1, "a": 1}, &Client{}, "http: has no key \"a\""},
		"a server's typo":       {map[string]any{"endpoit": "x"}, &Server{}, `http: has no key "endpoit"; keys are auth, `},
		"a typo deeper":         {map[string]any{"tls": map[string]any{"insecur": true}}, &Client{}, "'tls' has invalid keys: insecur"},
		"a typo deeper, server": {map[string]any{"cors": map[string]any{"a": 1}}, &Server{}, "has invalid keys: a"},
		"squashed":              {map[string]any{"interval": "1s", "timeout": "1s"}, &squashed{}, ""},
		"squashed, a typo":      {map[string]any{"intervall": "1s"}, &squashed{}, `http: has no key "intervall"; keys are auth, `},
		"squashed and deeper":   {map[string]any{"tls": map[string]any{"insecur": true}}, &squashed{}, "'tls' has invalid keys: insecur"},
		"not a section":         {3, &Client{}, "unexpected sub-config value kind"},
	} {
		t.Run(name, func(t *testing.T) {
			m := map[string]any{"other": 1}
			if tt.section != nil {
				m["http"] = tt.section
			}
			err := Section(confmap.NewFromStringMap(m), "http", tt.plain)
			if tt.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.err)
		})
	}
}

// The reason for this package. When it fails, confighttp refuses unknown keys again and the package may go.
func TestConfighttpPassesOverUnknownKeys(t *testing.T) {
	conf := confmap.NewFromStringMap(map[string]any{"no_such_key": 1})
	assert.NoError(t, conf.Unmarshal(&confighttp.ClientConfig{}))
	assert.NoError(t, conf.Unmarshal(&confighttp.ServerConfig{}))
}
