package dcgmreceiver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

func exporterAt(t *testing.T, handler http.HandlerFunc) *exporterSource {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	cfg := config(SourceExporter)
	s := newExporterSource(cfg, srv.URL, cfg.plan(), componenttest.NewNopHost(), componenttest.NewNopTelemetrySettings())
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestExporterConditions(t *testing.T) {
	const line = `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 7` + "\n"
	for _, tc := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
		text    string
	}{
		{"a page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(line)) }, gpu.SourceOK, ""},
		{"another page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("go_goroutines 3\n")) }, gpu.SourceNotAnExporter, "has no DCGM metrics"},
		{"an empty page", func(http.ResponseWriter, *http.Request) {}, gpu.SourceNotAnExporter, "has no DCGM metrics"},
		{"not found", http.NotFound, gpu.SourceUnreachable, "404"},
		{"too large", func(w http.ResponseWriter, _ *http.Request) {
			chunk := []byte(strings.Repeat(line, 1000))
			for range maxPage/len(chunk) + 1 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, gpu.SourceFailed, "larger than"},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(line))
		}, gpu.SourceUnreachable, "to its end"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := exporterAt(t, tc.handler).Open(context.Background())
			assert.Equal(t, tc.want, gpu.ConditionOf(err))
			if tc.text != "" {
				assert.ErrorContains(t, err, tc.text)
			}
		})
	}
}

func TestExporterThatDoesNotAnswer(t *testing.T) {
	cfg := config(SourceExporter)
	s := newExporterSource(cfg, "http://127.0.0.1:1", cfg.plan(), componenttest.NewNopHost(), componenttest.NewNopTelemetrySettings())
	err := s.Open(context.Background())
	assert.Equal(t, gpu.SourceUnreachable, gpu.ConditionOf(err))
	assert.ErrorContains(t, err, "cannot read http://127.0.0.1:1/metrics")
	assert.ErrorContains(t, err, "start a dcgm-exporter or set endpoint")

	hang := exporterAt(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	assert.Equal(t, gpu.SourceUnreachable, gpu.ConditionOf(hang.Open(ctx)), "the deadline ends the request")
}

func TestExporterPathAndBadLines(t *testing.T) {
	var path string
	s := exporterAt(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		_, _ = w.Write([]byte("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\"} 7\nDCGM_FI_DEV_GPU_TEMP{ 9\n"))
	})
	require.NoError(t, s.Open(context.Background()))
	assert.Equal(t, "/metrics", path)
	in, err := s.Read(context.Background(), time.Now())
	require.NoError(t, err)
	require.Len(t, in.Notes, 1)
	assert.Equal(t, "1 lines", in.Notes[0].Detail)
	assert.Len(t, in.Devices[0].Samples, 1)
}
