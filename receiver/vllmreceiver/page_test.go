package vllmreceiver

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/metadata"
)

var update = flag.Bool("update", false, "rewrite the golden results")

// scrapedAt is after every recorded page was made.
var scrapedAt = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// sharedPages are pages that may be read and not copied; OTELCOL_LLM_SHARED says where they lie.
var sharedPages = []string{"sglang_2024-2025_real.prom", "triton_trtllm_backend_doc.prom", "triton_vllm_backend_doc.prom", "dcgm_exporter_fragments_real.prom"}

func recordedPages(t testing.TB) map[string]string {
	t.Helper()
	pages := map[string]string{}
	files, err := filepath.Glob("testdata/pages/*.prom")
	require.NoError(t, err)
	require.Greater(t, len(files), 40)
	for _, f := range files {
		pages[filepath.Base(f)] = f
	}
	return pages
}

func sharedFolder() string {
	if dir := os.Getenv("OTELCOL_LLM_SHARED"); dir != "" {
		return dir
	}
	return "../../../shared"
}

func readPage(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// TestRecordedPages scrapes every recorded page through the factory and compares what comes out, one line a point, with a result that was
// reviewed against what the engine's client saw.
func TestRecordedPages(t *testing.T) {
	for name, path := range recordedPages(t) {
		t.Run(name, func(t *testing.T) { checkPage(t, name, path) })
	}
	for _, name := range sharedPages {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(sharedFolder(), "corpus", "metrics", name)
			if _, err := os.Stat(path); err != nil {
				t.Skipf("the page may not be copied here: set OTELCOL_LLM_SHARED to the folder that has corpus/metrics/%s", name)
			}
			checkPage(t, name, path)
		})
	}
}

func checkPage(t *testing.T, name, path string) {
	got := flatten(scrapeOnce(t, readPage(t, path), nil))
	golden := filepath.Join("testdata", "golden", strings.TrimSuffix(name, ".prom")+".txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// scrapeOnce serves one page and returns the first metrics that the factory's receiver passes on.
func scrapeOnce(t testing.TB, body string, change func(*Config)) pmetric.Metrics {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
	defer srv.Close()
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoints = []string{srv.URL}
	cfg.Controller.CollectionInterval = time.Hour
	if change != nil {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	got := make(chan pmetric.Metrics, 1)
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		got <- md
		return nil
	})
	require.NoError(t, err)
	r, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, next)
	require.NoError(t, err)
	r.(*vllmReceiver).scraper.now = func() time.Time { return scrapedAt }
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	return <-got
}

// flatten writes one line for every point: name, attributes, value, start. Addresses of the test's server are left out.
func flatten(md pmetric.Metrics) string {
	var b strings.Builder
	for _, rm := range md.ResourceMetrics().All() {
		res := pcommon.NewMap()
		rm.Resource().Attributes().CopyTo(res)
		for _, k := range []string{"service.instance.id", "server.address", "server.port"} {
			res.Remove(k)
		}
		fmt.Fprintf(&b, "resource %s\n", flatAttrs(res))
		var lines []string
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				lines = append(lines, flatMetric(m)...)
			}
		}
		sort.Strings(lines)
		b.WriteString(strings.Join(lines, "\n") + "\n")
	}
	return b.String()
}

func flatMetric(m pmetric.Metric) (lines []string) {
	head := func(attrs pcommon.Map, flags pmetric.DataPointFlags, start pcommon.Timestamp) (string, string) {
		tail := ""
		if start != 0 {
			tail = "  since " + start.AsTime().Format("2006-01-02T15:04:05.000Z")
		}
		if flags.NoRecordedValue() {
			tail += "  gone"
		}
		return fmt.Sprintf("%s %s %s", m.Name(), m.Unit(), flatAttrs(attrs)), tail
	}
	numbers := func(kind string, points pmetric.NumberDataPointSlice) {
		for _, p := range points.All() {
			h, tail := head(p.Attributes(), p.Flags(), p.StartTimestamp())
			value := fmt.Sprint(p.DoubleValue())
			if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
				value = fmt.Sprint(p.IntValue())
			}
			lines = append(lines, fmt.Sprintf("%s %s = %s%s", kind, h, value, tail))
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		numbers("gauge", m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		kind := "counter"
		if !m.Sum().IsMonotonic() || m.Sum().AggregationTemporality() != pmetric.AggregationTemporalityCumulative {
			kind = "sum?"
		}
		numbers(kind, m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			h, tail := head(p.Attributes(), p.Flags(), p.StartTimestamp())
			var buckets []string
			for i := range p.BucketCounts().Len() {
				bound := "+Inf"
				if i < p.ExplicitBounds().Len() {
					bound = fmt.Sprint(p.ExplicitBounds().At(i))
				}
				buckets = append(buckets, fmt.Sprintf("%s:%d", bound, p.BucketCounts().At(i)))
			}
			lines = append(lines, fmt.Sprintf("histogram %s = count %d sum %v [%s]%s", h, p.Count(), p.Sum(), strings.Join(buckets, " "), tail))
		}
	}
	return lines
}

func flatAttrs(m pcommon.Map) string {
	var parts []string
	for k, v := range m.All() {
		parts = append(parts, k+"="+v.AsString())
	}
	sort.Strings(parts)
	return "{" + strings.Join(parts, ",") + "}"
}
