package llmsimextension

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/internal/sim"
	"github.com/otelcol-llm/otelcol-llm/internal/strictconf"
)

// Config of the simulator.
type Config struct {
	// Server is where users call it and operators look at it.
	Server confighttp.ServerConfig `mapstructure:"server"`
	// Export is where its spans go.
	Export ExportConfig `mapstructure:"export"`
	// KeepRequests is how many ended requests /sim/truth still knows.
	KeepRequests int `mapstructure:"keep_requests"`
	// ReplayFile names a file of recorded traffic, JSON lines (see README.md). It comes on top of rate.
	ReplayFile string `mapstructure:"replay_file"`

	Seed        uint64         `mapstructure:"seed"`
	Rate        float64        `mapstructure:"rate"`
	MaxInFlight int            `mapstructure:"max_in_flight"`
	Engines     []EngineConfig `mapstructure:"engines"`
	Teams       []TeamConfig   `mapstructure:"teams"`
	Mix         sim.Mix        `mapstructure:"mix"`
	Gateway     sim.Gateway    `mapstructure:"gateway"`
	Client      sim.Client     `mapstructure:"client"`
	Faults      []sim.Fault    `mapstructure:"faults"`
}

// ExportConfig says where spans go by OTLP/HTTP, and how.
type ExportConfig struct {
	// Not embedded: its Unmarshal would take the place of ours.
	HTTP confighttp.ClientConfig `mapstructure:",squash"`
	// Interval between two exports of a process.
	Interval time.Duration `mapstructure:"interval"`
	// QueueSize is how many export requests wait for the endpoint, each of at most 512 spans.
	QueueSize int `mapstructure:"queue_size"`
}

// EngineConfig is an engine; what is not given is that of an 8B model on one H100.
type EngineConfig struct {
	sim.Engine `mapstructure:",squash"`
}

// Unmarshal begins with the defaults of an engine.
func (e *EngineConfig) Unmarshal(conf *confmap.Conf) error {
	e.Engine = sim.DefaultEngine("", "")
	return conf.Unmarshal(e)
}

// TeamConfig is a team; its weight is 1 when not given.
type TeamConfig struct {
	sim.Team `mapstructure:",squash"`
}

// Unmarshal begins with the defaults of a team.
func (t *TeamConfig) Unmarshal(conf *confmap.Conf) error {
	t.Weight = 1
	return conf.Unmarshal(t)
}

func createDefaultConfig() *Config {
	d := sim.DefaultConfig()
	c := &Config{
		Server: confighttp.NewDefaultServerConfig(), Export: ExportConfig{
			HTTP: confighttp.NewDefaultClientConfig(), Interval: 5 * time.Second, QueueSize: 256,
		},
		KeepRequests: 10000,
		Seed:         d.Seed, Rate: d.Rate, MaxInFlight: d.MaxInFlight, Mix: d.Mix, Gateway: d.Gateway, Client: d.Client,
	}
	c.Server.NetAddr.Endpoint = "127.0.0.1:8000" // vLLM's own port
	c.Server.WriteTimeout = 0                    // streams last as long as they last
	c.Export.HTTP.Endpoint = "http://127.0.0.1:4318"
	c.Export.HTTP.Timeout = 10 * time.Second
	for _, e := range d.Engines {
		c.Engines = append(c.Engines, EngineConfig{e})
	}
	for _, t := range d.Teams {
		c.Teams = append(c.Teams, TeamConfig{t})
	}
	return c
}

// strictExport has the keys of ExportConfig.
type strictExport struct {
	HTTP      strictconf.Client `mapstructure:",squash"`
	Interval  time.Duration     `mapstructure:"interval"`
	QueueSize int               `mapstructure:"queue_size"`
}

// Unmarshal refuses keys that the HTTP settings would otherwise ignore.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := conf.Unmarshal(c); err != nil {
		return err
	}
	return errors.Join(
		strictconf.Section(conf, "server", &strictconf.Server{}),
		strictconf.Section(conf, "export", &strictExport{}),
	)
}

// simulation is the configuration of the world, without the replay.
func (c *Config) simulation() sim.Config {
	s := sim.Config{
		Seed: c.Seed, Rate: c.Rate, MaxInFlight: c.MaxInFlight, Mix: c.Mix, Gateway: c.Gateway, Client: c.Client, Faults: c.Faults,
	}
	for _, e := range c.Engines {
		s.Engines = append(s.Engines, e.Engine)
	}
	for _, t := range c.Teams {
		s.Teams = append(s.Teams, t.Team)
	}
	return s
}

// Validate names the key that is wrong and what is allowed.
func (c *Config) Validate() error {
	var errs []error
	s := c.simulation()
	errs = append(errs, s.Validate())
	if c.KeepRequests < 1 || c.KeepRequests > 1_000_000 {
		errs = append(errs, fmt.Errorf("keep_requests: %d is outside 1 to 1000000", c.KeepRequests))
	}
	if c.Export.QueueSize < 1 || c.Export.QueueSize > 100_000 {
		errs = append(errs, fmt.Errorf("export::queue_size: %d is outside 1 to 100000", c.Export.QueueSize))
	}
	if c.Export.Interval < 10*time.Millisecond {
		errs = append(errs, fmt.Errorf("export::interval: %v must be at least 10ms", c.Export.Interval))
	}
	if c.Export.HTTP.Endpoint != "" {
		if u, err := url.Parse(c.Export.HTTP.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			errs = append(errs, fmt.Errorf("export::endpoint: %q must be an http:// or https:// address, or empty to send nothing", c.Export.HTTP.Endpoint))
		}
	}
	if c.Server.NetAddr.Endpoint == "" {
		errs = append(errs, errors.New("server::endpoint: must be host:port"))
	}
	return errors.Join(errs...)
}

// tracesURL is the endpoint's address for traces.
func (c *Config) tracesURL() string {
	base := strings.TrimSuffix(c.Export.HTTP.Endpoint, "/")
	if strings.HasSuffix(base, "/v1/traces") {
		return base
	}
	return base + "/v1/traces"
}

// replay reads the replay file.
func (c *Config) replay() ([]sim.Arrival, error) {
	if c.ReplayFile == "" {
		return nil, nil
	}
	f, err := os.Open(c.ReplayFile)
	if err != nil {
		return nil, fmt.Errorf("replay_file: %w", err)
	}
	defer f.Close()
	calls, err := sim.ReadArrivals(f)
	if err != nil {
		return nil, fmt.Errorf("replay_file: %s: %w", c.ReplayFile, err)
	}
	return calls, nil
}
