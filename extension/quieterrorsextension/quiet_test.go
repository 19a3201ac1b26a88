package quieterrorsextension

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configmiddleware"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-llm/otelcol-llm/extension/quieterrorsextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/extension/quieterrorsextension/internal/metadatatest"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
)

const secret = "the merger is on Friday"

// serve puts the extension, made by its factory and found by its id as in a receiver, before a handler.
func serve(t *testing.T, handler http.HandlerFunc) (string, *componenttest.Telemetry) {
	t.Helper()
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, tel.Shutdown(context.Background())) })
	set := extensiontest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	f := NewFactory()
	ext, err := f.Create(t.Context(), set, f.CreateDefaultConfig())
	require.NoError(t, err)
	require.NoError(t, ext.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, ext.Shutdown(context.Background())) })
	id := component.NewID(metadata.Type)
	wrap, err := configmiddleware.Config{ID: id}.GetHTTPServerHandler(t.Context(), map[component.ID]component.Component{id: ext})
	require.NoError(t, err)
	h, err := wrap(t.Context(), handler)
	require.NoError(t, err)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, tel
}

func post(t *testing.T, url, contentType string) (code int, header http.Header, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(secret))
	require.NoError(t, err)
	req.Header.Set("Content-Type", contentType)
	r, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, r.Header, string(b)
}

func TestErrorAnswersLoseTheirText(t *testing.T) {
	for _, code := range []int{400, 401, 403, 404, 405, 408, 413, 415, 418, 429, 500, 501, 502, 503, 504} {
		for _, contentType := range []string{"application/json", "application/json; charset=utf-8", "application/x-protobuf", "text/plain"} {
			for how, handler := range map[string]http.HandlerFunc{
				"written": func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Retry-After", "7")
					w.Header().Set("Content-Length", fmt.Sprint(2*len(secret)))
					w.WriteHeader(code)
					_, _ = w.Write([]byte(secret))
					_, _ = w.Write([]byte(secret))
				},
				"copied": func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Retry-After", "7")
					w.WriteHeader(code)
					_, _ = io.Copy(w, r.Body)
				},
			} {
				t.Run(fmt.Sprint(code, " ", contentType, " ", how), func(t *testing.T) {
					url, tel := serve(t, handler)
					got, header, body := post(t, url, contentType)
					assert.Equal(t, code, got)
					assert.Equal(t, "7", header.Get("Retry-After"))
					assert.NotContains(t, body, "merger")
					wantCode, wantMessage := problem(code)
					if contentType == "application/x-protobuf" {
						var s status.Status
						require.NoError(t, proto.Unmarshal([]byte(body), &s))
						assert.Equal(t, "application/x-protobuf", header.Get("Content-Type"))
						assert.Equal(t, int32(wantCode), s.GetCode())
						assert.Equal(t, wantMessage, s.GetMessage())
					} else {
						var s struct {
							Code    int
							Message string
						}
						require.NoError(t, json.Unmarshal([]byte(body), &s))
						assert.Equal(t, "application/json", header.Get("Content-Type"))
						assert.Equal(t, int(wantCode), s.Code)
						assert.Equal(t, wantMessage, s.Message)
					}
					metadatatest.AssertEqualExtensionQuietErrorsAnswers(t, tel, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())
				})
			}
		}
	}
}

func TestOtherAnswersPass(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"written": func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			_, _ = w.Write(b)
		},
		"with a status": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.Copy(w, r.Body)
		},
		// A second status is a mistake of the handler; what has begun goes on.
		"failed too late": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
			w.WriteHeader(http.StatusInternalServerError)
		},
		"flushed": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
			assert.NoError(t, http.NewResponseController(w).Flush())
		},
		"hinted": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.Copy(w, r.Body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, tel := serve(t, handler)
			got, _, body := post(t, url, "application/json")
			assert.Less(t, got, 300)
			assert.Equal(t, secret, body)
			_, err := tel.GetMetric("otelcol_extension_quiet_errors_answers")
			assert.Error(t, err, "nothing was replaced, so nothing is counted")
		})
	}
}

func TestReadme(t *testing.T) {
	loaded := 0
	for _, b := range doctest.Blocks(t, "README.md") {
		conf, err := confmap.NewRetrievedFromYAML([]byte(b.Text))
		require.NoError(t, err)
		c, err := conf.AsConf()
		require.NoError(t, err)
		ext, err := c.Sub("extensions::quiet_errors")
		require.NoError(t, err)
		require.NoError(t, ext.Unmarshal(NewFactory().CreateDefaultConfig()))
		loaded++
	}
	assert.Positive(t, loaded)
	assert.Error(t, confmap.NewFromStringMap(map[string]any{"mode": "loud"}).Unmarshal(NewFactory().CreateDefaultConfig()), "a typo is refused")
}
