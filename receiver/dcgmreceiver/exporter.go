package dcgmreceiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/page"
)

// maxPage bounds an exporter's page. A node of 8 GPUs with pod labels has about 200 KB.
const maxPage = 16 << 20

// exporterSource reads the page of a dcgm-exporter. It needs no library and no privileges.
type exporterSource struct {
	endpoint string
	host     component.Host
	settings component.TelemetrySettings
	cfg      *Config
	reader   *page.Reader // lives as long as the source: it remembers XIDs over reconnects
	client   *http.Client
}

func newExporterSource(cfg *Config, endpoint string, plan *gpu.Plan, host component.Host, settings component.TelemetrySettings) *exporterSource {
	if endpoint == "" {
		endpoint = defaultExporter
	} else if u, err := url.Parse(endpoint); err == nil && (u.Path == "" || u.Path == "/") {
		u.Path = "/metrics"
		endpoint = u.String()
	}
	return &exporterSource{
		endpoint: endpoint, host: host, settings: settings, cfg: cfg,
		reader: page.NewReader(plan, cfg.CollectionInterval),
	}
}

func (s *exporterSource) Name() string { return string(SourceExporter) }

// Open makes the client and fetches the page once, to find out whether it is an exporter's.
func (s *exporterSource) Open(ctx context.Context) error {
	client, err := s.cfg.HTTP.ToClient(ctx, s.host.GetExtensions(), s.settings)
	if err != nil {
		return fmt.Errorf("http: %w", err)
	}
	s.client = client
	text, err := s.fetch(ctx)
	if err != nil {
		return err
	}
	return s.judge(page.Look(text))
}

func (s *exporterSource) Read(ctx context.Context, now time.Time) (*gpu.Reading, error) {
	text, err := s.fetch(ctx)
	if err != nil {
		return nil, err
	}
	r, st := s.reader.Read(text, now)
	r.Endpoint = s.endpoint
	if st.BadLines > 0 {
		r.Notes = append(r.Notes, gpu.Note{Key: "bad_lines", Message: "the exporter's page has lines that cannot be read; the rest is used", Detail: fmt.Sprintf("%d lines", st.BadLines)})
	}
	return r, s.judge(st)
}

func (s *exporterSource) judge(st page.Stats) error {
	if st.Families > 0 {
		return nil
	}
	return &gpu.Down{Condition: gpu.SourceNotAnExporter, Err: fmt.Errorf("%s has no DCGM metrics; is it a dcgm-exporter, and has it found a GPU?", s.endpoint)}
}

func (s *exporterSource) fetch(ctx context.Context) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.endpoint, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: %w", s.endpoint, err)
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	resp, err := s.client.Do(req)
	if err != nil {
		// The client's error repeats the URL; its cause says enough.
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, &gpu.Down{Condition: gpu.SourceUnreachable, Err: fmt.Errorf("cannot read %s: %w; start a dcgm-exporter or set endpoint", s.endpoint, err)}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, &gpu.Down{Condition: gpu.SourceUnreachable, Err: fmt.Errorf("%s answered %s", s.endpoint, resp.Status)}
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err != nil {
		return nil, &gpu.Down{Condition: gpu.SourceUnreachable, Err: fmt.Errorf("cannot read %s to its end: %w", s.endpoint, err)}
	}
	if len(text) > maxPage {
		return nil, fmt.Errorf("the page at %s is larger than %d bytes", s.endpoint, maxPage)
	}
	return text, nil
}

func (s *exporterSource) Close() error {
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	return nil
}
