package dcgmreceiver

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-llm/otelcol-llm/internal/strictconf"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// SourceKind names where GPUs are read.
type SourceKind string

// The sources.
const (
	SourceAuto     SourceKind = "auto"
	SourceDCGM     SourceKind = "dcgm"
	SourceNVML     SourceKind = "nvml"
	SourceExporter SourceKind = "dcgm_exporter"
)

var sourceKinds = []SourceKind{SourceAuto, SourceDCGM, SourceNVML, SourceExporter}

// Validate lists what is allowed.
func (s SourceKind) Validate() error {
	if !slices.Contains(sourceKinds, s) {
		return fmt.Errorf("must be one of auto, dcgm, nvml, dcgm_exporter, got %q", string(s))
	}
	return nil
}

const (
	defaultHostEngine = "localhost:5555"
	defaultExporter   = "http://localhost:9400/metrics"
	defaultKubelet    = "/var/lib/kubelet/pod-resources/kubelet.sock"

	// DCGM samples hardware counters at most ten times a second, and no longer accepts less (DCGM#310).
	minProfilingInterval = 100 * time.Millisecond
)

// Config says which source to read, how often, and what of it to report.
type Config struct {
	// Source is auto, dcgm, nvml or dcgm_exporter. auto tries a host engine, then an exporter, then NVML. Default auto.
	Source SourceKind `mapstructure:"source"`

	// Endpoint is a host engine's host:port, unix:///path or /path, or an exporter's http:// URL. Empty, the default,
	// means localhost:5555 for dcgm and http://localhost:9400/metrics for dcgm_exporter. Not used by nvml.
	Endpoint string `mapstructure:"endpoint"`

	// Embedded runs a host engine inside this process instead of connecting to one. Only with source dcgm. Default false.
	Embedded bool `mapstructure:"embedded"`

	// CollectionInterval is the time between two reads. Default 10s, at least 1s.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`

	// ProfilingInterval is how often a host engine samples hardware counters. Default 1s, at least 100ms, at most
	// collection_interval.
	ProfilingInterval time.Duration `mapstructure:"profiling_interval"`

	// Timeout bounds every call into the source. Default 10s, at least 1s.
	Timeout time.Duration `mapstructure:"timeout"`

	// Health lets a host engine check the health of its GPUs at each read. Default true.
	Health bool `mapstructure:"health"`

	// Metrics switches single metrics on or off by name.
	Metrics map[string]MetricConfig `mapstructure:"metrics"`

	// Fields are DCGM fields to report beyond the built-in ones. Default none.
	Fields []FieldConfig `mapstructure:"fields"`

	// PodResourcesSocket is the kubelet's pod-resources socket, from which the receiver learns which container holds
	// which GPU. Empty turns that off; a socket that does not exist means that this is not a Kubernetes node.
	PodResourcesSocket string `mapstructure:"pod_resources_socket"`

	// PodResourceNames are the extended resources that are GPUs; a trailing * matches any ending.
	PodResourceNames []string `mapstructure:"pod_resource_names"`

	// HTTP is the client for source dcgm_exporter; its endpoint is the one above.
	HTTP confighttp.ClientConfig `mapstructure:"http"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var _ confmap.Unmarshaler = (*Config)(nil)

// Unmarshal refuses keys under http that nobody reads.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := conf.Unmarshal(c); err != nil {
		return err
	}
	return strictconf.Section(conf, "http", &strictconf.Client{})
}

// MetricConfig switches a metric.
type MetricConfig struct {
	// Enabled turns the metric on or off.
	Enabled bool `mapstructure:"enabled"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// FieldConfig is one extra field.
type FieldConfig struct {
	// Field is a name from dcgm_fields.h, old or new, or a field number.
	Field string `mapstructure:"field"`

	// Metric is the name to report it under. Default nvidia.gpu.field.<name>, without the prefix DCGM_FI_, in lower case.
	Metric string `mapstructure:"metric"`

	// Unit is the metric's UCUM unit. Default 1.
	Unit string `mapstructure:"unit"`

	// Kind is gauge, counter, updowncounter or rate; a rate is integrated into a counter. Default gauge.
	Kind string `mapstructure:"kind"`

	// Scale multiplies the field's value. Zero, the default, means 1.
	Scale float64 `mapstructure:"scale"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var fieldKinds = []string{"gauge", "counter", "updowncounter", "rate"}

// Validate checks one extra field.
func (f *FieldConfig) Validate() error {
	var errs []error
	field, err := gpu.ParseField(f.Field)
	if err != nil {
		errs = append(errs, fmt.Errorf("field: %w", err))
	} else if slices.ContainsFunc(gpu.Catalog, func(m gpu.Mapping) bool { return m.Field == field }) {
		errs = append(errs, fmt.Errorf("field: %s is reported already; see metrics to switch it on or off", f.Field))
	}
	if f.Kind != "" && !slices.Contains(fieldKinds, f.Kind) {
		errs = append(errs, fmt.Errorf("kind: must be one of %s, got %q", strings.Join(fieldKinds, ", "), f.Kind))
	}
	if _, taken := gpu.MetricByName(f.Metric); taken {
		errs = append(errs, fmt.Errorf("metric: %q is a built-in metric; choose another name", f.Metric))
	}
	if f.Scale < 0 {
		errs = append(errs, fmt.Errorf("scale: must not be negative, got %g", f.Scale))
	}
	return errors.Join(errs...)
}

// Validate checks the configuration as a whole.
func (c *Config) Validate() error {
	var errs []error
	if c.CollectionInterval < time.Second {
		errs = append(errs, fmt.Errorf("collection_interval: must be at least 1s, got %s", c.CollectionInterval))
	}
	if c.ProfilingInterval < minProfilingInterval || c.ProfilingInterval > max(c.CollectionInterval, minProfilingInterval) {
		errs = append(errs, fmt.Errorf("profiling_interval: must be between 100ms and collection_interval, got %s", c.ProfilingInterval))
	}
	if c.Timeout < time.Second {
		errs = append(errs, fmt.Errorf("timeout: must be at least 1s, got %s", c.Timeout))
	}
	if c.Embedded && c.Source != SourceDCGM {
		errs = append(errs, fmt.Errorf("embedded: needs source: dcgm, got source: %s", c.Source))
	}
	if c.Embedded && c.Endpoint != "" {
		errs = append(errs, fmt.Errorf("endpoint: must be empty with embedded: true, got %q", c.Endpoint))
	}
	if err := c.checkEndpoint(); err != nil {
		errs = append(errs, err)
	}
	if c.HTTP.Endpoint != "" {
		errs = append(errs, errors.New("http::endpoint: must be empty; set endpoint beside source instead"))
	}
	for name := range c.Metrics {
		if _, ok := gpu.MetricByName(name); !ok {
			errs = append(errs, fmt.Errorf("metrics: unknown metric %q; see the receiver's README for the names%s", name, nearest(name)))
		}
	}
	for i, n := range c.PodResourceNames {
		if n == "" || strings.Contains(strings.TrimSuffix(n, "*"), "*") {
			errs = append(errs, fmt.Errorf("pod_resource_names::%d: must be a resource name, with * at its end only, got %q", i, n))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) checkEndpoint() error {
	isURL := isHTTP(c.Endpoint)
	switch {
	case c.Endpoint == "":
		return nil
	case c.Source == SourceNVML:
		return fmt.Errorf("endpoint: not used by source: nvml, got %q", c.Endpoint)
	case c.Source == SourceExporter && !isURL:
		return fmt.Errorf("endpoint: must be an http:// or https:// URL for source: dcgm_exporter, got %q", c.Endpoint)
	case c.Source == SourceDCGM && isURL:
		return fmt.Errorf("endpoint: must be host:port, unix:///path or /path for source: dcgm, got %q; for an exporter set source: dcgm_exporter", c.Endpoint)
	case isURL:
		if u, err := url.Parse(c.Endpoint); err != nil || u.Host == "" {
			return fmt.Errorf("endpoint: %q is not a URL with a host", c.Endpoint)
		}
		return nil
	}
	if _, _, err := hostEngine(c.Endpoint); err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	return nil
}

func isHTTP(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

// hostEngine splits a host engine's endpoint into the address go-dcgm wants and whether it is a unix socket.
func hostEngine(endpoint string) (address string, unix bool, err error) {
	switch {
	case endpoint == "":
		return defaultHostEngine, false, nil
	case strings.HasPrefix(endpoint, "unix://"):
		address = strings.TrimPrefix(endpoint, "unix://")
	case strings.HasPrefix(endpoint, "/"):
		address = endpoint
	case strings.HasPrefix(endpoint, "vsock://"):
		return endpoint, false, nil
	default:
		address = strings.TrimPrefix(endpoint, "tcp://")
		host, port, err := net.SplitHostPort(address)
		if err != nil || host == "" || port == "" {
			return "", false, fmt.Errorf("must be host:port, unix:///path or /path, got %q", endpoint)
		}
		return address, false, nil
	}
	if !strings.HasPrefix(address, "/") {
		return "", false, fmt.Errorf("a socket needs an absolute path, got %q", endpoint)
	}
	return address, true, nil
}

// nearest offers the metrics whose names share the last word of a mistyped one.
func nearest(name string) string {
	word := name[strings.LastIndexByte(name, '.')+1:]
	var like []string
	for _, m := range gpu.Metrics {
		if word != "" && strings.Contains(m.Name, word) {
			like = append(like, m.Name)
		}
	}
	if len(like) == 0 || len(like) > 5 {
		return ""
	}
	return ", for example " + strings.Join(like, ", ")
}

// plan is what the core is to report.
func (c *Config) plan() *gpu.Plan {
	enabled := make(map[string]bool, len(c.Metrics))
	for name, m := range c.Metrics {
		enabled[name] = m.Enabled
	}
	extra := make([]gpu.Mapping, 0, len(c.Fields))
	for i := range c.Fields {
		extra = append(extra, c.Fields[i].mapping())
	}
	return gpu.NewPlan(enabled, extra)
}

func (f *FieldConfig) mapping() gpu.Mapping {
	field, _ := gpu.ParseField(f.Field) // checked by Validate
	m := gpu.Mapping{
		Field: field, Class: gpu.ClassExtra, Scale: f.Scale,
		Metric: &gpu.Metric{Name: f.Metric, Unit: f.Unit, Description: "DCGM field " + field.String() + "."},
	}
	if m.Scale == 0 {
		m.Scale = 1
	}
	if m.Metric.Name == "" {
		m.Metric.Name = "nvidia.gpu.field." + strings.ToLower(strings.TrimPrefix(field.String(), "DCGM_FI_"))
	}
	if m.Metric.Unit == "" {
		m.Metric.Unit = "1"
	}
	switch f.Kind {
	case "counter":
		m.Metric.Kind = gpu.KindCounter
	case "updowncounter":
		m.Metric.Kind = gpu.KindUpDown
	case "rate":
		m.Metric.Kind, m.How = gpu.KindCounter, gpu.HowRate
	}
	return m
}
