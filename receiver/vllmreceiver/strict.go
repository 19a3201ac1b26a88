package vllmreceiver

import (
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/otelcol-llm/otelcol-llm/internal/strictconf"
)

// strictConfig has the keys of Config and nothing that reads them by itself. confighttp's client reads its keys by itself and passes over the
// others, and with it the whole configuration would: a typo would be a silent default.
type strictConfig struct {
	Controller   scraperhelper.ControllerConfig `mapstructure:",squash"`
	HTTP         strictconf.Client              `mapstructure:",squash"`
	Endpoints    []string                       `mapstructure:"endpoints"`
	Engine       string                         `mapstructure:"engine"`
	ServiceName  string                         `mapstructure:"service_name"`
	Raw          bool                           `mapstructure:"raw"`
	MaxSeries    int                            `mapstructure:"max_series"`
	MaxPageBytes int64                          `mapstructure:"max_page_bytes"`
	EndSeries    bool                           `mapstructure:"end_series"`
}

var _ confmap.Unmarshaler = (*Config)(nil)

// Unmarshal refuses keys that nobody reads, then reads the others.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := conf.Unmarshal(&strictConfig{}); err != nil {
		return err
	}
	return conf.Unmarshal(c)
}
