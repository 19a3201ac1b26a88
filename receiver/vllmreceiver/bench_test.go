package vllmreceiver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/target"
)

// benchPages are a recorded page of two ranks and the same with twenty.
func benchPages(b *testing.B) map[string]string {
	page := readPage(b, "testdata/pages/synthetic_vllm_head_dp2_t1.prom")
	var large strings.Builder
	large.WriteString(page)
	for i := 1; i < 10; i++ {
		for line := range strings.SplitSeq(page, "\n") {
			if strings.Contains(line, "engine=") {
				line = strings.Replace(strings.Replace(line, `engine="0"`, fmt.Sprintf(`engine="%d"`, 2*i), 1), `engine="1"`, fmt.Sprintf(`engine="%d"`, 2*i+1), 1)
				large.WriteString(line + "\n")
			}
		}
	}
	return map[string]string{"100KB": page, "1MB": large.String()}
}

// BenchmarkPage is all that is done with a page after it was read: parsing, mapping, following the series, encoding pdata.
func BenchmarkPage(b *testing.B) {
	for name, page := range benchPages(b) {
		b.Run(name, func(b *testing.B) {
			cfg := createDefaultConfig().(*Config)
			cfg.Endpoints = []string{"127.0.0.1:8000"}
			s, err := newScraper(receiver.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: componenttest.NewNopTelemetrySettings()}, cfg)
			require.NoError(b, err)
			e := s.endpoints[0]
			e.at = scrapedAt
			b.SetBytes(int64(len(page)))
			b.ReportAllocs()
			points := 0
			for b.Loop() {
				md := pmetric.NewMetrics()
				before := e.report
				e.report = e.target.Observe(e.at, target.Answer{Status: 200, Body: page})
				s.encode(md, plog.NewLogs(), e, before)
				points = md.DataPointCount()
			}
			b.ReportMetric(float64(points), "points")
		})
	}
}

// BenchmarkExpfmt is what reading the same page costs with prometheus/common, without mapping it or making pdata. The whole comparison with
// contrib's prometheus receiver is in bench/scrape.
func BenchmarkExpfmt(b *testing.B) {
	for name, page := range benchPages(b) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(page)))
			b.ReportAllocs()
			for b.Loop() {
				p := expfmt.NewTextParser(model.UTF8Validation)
				_, err := p.TextToMetricFamilies(strings.NewReader(page))
				require.NoError(b, err)
			}
		})
	}
}
