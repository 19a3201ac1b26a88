package vllmreceiver

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/engine"
)

// auto stands for "find out" in endpoints and engine.
const auto = "auto"

// Config says which engines are scraped and how.
type Config struct {
	Controller scraperhelper.ControllerConfig `mapstructure:",squash"`

	// HTTP holds the client's settings. Its endpoint is what receiver_creator fills in: it is scraped when endpoints is empty and otherwise passed
	// over. timeout bounds one request; default 10s, must be positive.
	HTTP confighttp.ClientConfig `mapstructure:",squash"`

	// Endpoints are the pages to scrape: a URL, or host:port for http://host:port/metrics. The word auto looks for engines on the usual ports of this
	// host. Default empty, which means auto unless endpoint is set.
	Endpoints []string `mapstructure:"endpoints"`

	// Engine reads every page as this kind of engine. Default auto: the owner of a page is told from its families.
	Engine string `mapstructure:"engine"`

	// ServiceName is the service.name of all endpoints. Default empty: the engine's kind.
	ServiceName string `mapstructure:"service_name"`

	// Raw passes the page's own families through as well. Default false.
	Raw bool `mapstructure:"raw"`

	// MaxSeries bounds the series of one endpoint; further ones are dropped and counted. Default 10000, must be positive.
	MaxSeries int `mapstructure:"max_series"`

	// MaxPageBytes bounds the page of one endpoint, uncompressed; what is beyond is not read. Default 16 MiB, must be positive.
	MaxPageBytes int64 `mapstructure:"max_page_bytes"`

	// EndSeries says of every series that it ends, with a staleness mark, when the receiver is stopped. For receivers that receiver_creator starts and
	// stops with a pod. Default false: a collector that is started anew goes on with the same series.
	EndSeries bool `mapstructure:"end_series"`

	_ struct{}
}

func createDefaultConfig() component.Config {
	controller := scraperhelper.NewDefaultControllerConfig()
	controller.CollectionInterval = 10 * time.Second
	controller.InitialDelay = 0
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 10 * time.Second
	return &Config{
		Controller:   controller,
		HTTP:         client,
		Engine:       auto,
		MaxSeries:    10_000,
		MaxPageBytes: 16 << 20,
	}
}

// Validate names the key at fault and what is allowed.
func (c *Config) Validate() error {
	var errs []error
	for i, e := range c.Endpoints {
		if e == auto {
			continue
		}
		if _, err := pageURL(e); err != nil {
			errs = append(errs, fmt.Errorf("endpoints[%d]: %w", i, err))
		}
	}
	if len(c.Endpoints) == 0 && c.HTTP.Endpoint != "" {
		if _, err := pageURL(c.HTTP.Endpoint); err != nil {
			errs = append(errs, fmt.Errorf("endpoint: %w", err))
		}
	}
	if c.Engine != auto && !slices.Contains(engine.Kinds(), c.Engine) {
		errs = append(errs, fmt.Errorf("engine: %q is not known; use auto or one of %s", c.Engine, strings.Join(engine.Kinds(), ", ")))
	}
	if c.HTTP.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout: must be positive, got %s", c.HTTP.Timeout))
	}
	if c.MaxSeries <= 0 {
		errs = append(errs, fmt.Errorf("max_series: must be positive, got %d", c.MaxSeries))
	}
	if c.MaxPageBytes <= 0 {
		errs = append(errs, fmt.Errorf("max_page_bytes: must be positive, got %d", c.MaxPageBytes))
	}
	return errors.Join(errs...)
}

// targets returns the configured pages, each once, and whether to look for more.
func (c *Config) targets() (pages []*url.URL, discover bool, err error) {
	wanted := c.Endpoints
	if len(wanted) == 0 {
		wanted = []string{auto}
		if c.HTTP.Endpoint != "" {
			wanted = []string{c.HTTP.Endpoint}
		}
	}
	seen := map[string]bool{}
	for _, e := range wanted {
		if e == auto {
			discover = true
			continue
		}
		u, err := pageURL(e)
		if err != nil {
			return nil, false, err
		}
		if !seen[u.String()] {
			seen[u.String()] = true
			pages = append(pages, u)
		}
	}
	return pages, discover, nil
}

// pageURL reads an endpoint. Errors never repeat it, since it may hold a password.
func pageURL(s string) (*url.URL, error) {
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("not a URL; use http://host:port/metrics, host:port or auto")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q is not supported; use http or https", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("host is missing; use http://host:port/metrics, host:port or auto")
	case u.User != nil:
		return nil, errors.New("must not hold a user or password; use auth or headers")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/metrics"
	}
	u.Fragment = ""
	return u, nil
}
