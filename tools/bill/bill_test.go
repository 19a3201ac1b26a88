// Package bill runs the SQL of docs/goodput-and-cost.md on a real ClickHouse engine, behind the stock clickhouse exporter, and compares
// the bill with the truth that internal/recordings writes beside the records. make test-bill sets it up.
package bill

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog"
)

// line is one row of the bill.
type line struct {
	Day, Team, Model, Currency string
	Requests, Input, Output    int64 `json:",string"`
	Cost                       string
}

func TestTheBillEqualsTheTruth(t *testing.T) {
	dir := os.Getenv("BILL_DIR")
	if dir == "" {
		t.Skip("BILL_DIR is not set: run make test-bill, which makes the records and starts the engine")
	}
	const endpoint = "http://127.0.0.1:18123"
	engine := exec.Command("node", "clickhouse.js", "18123")
	engine.Env = append(os.Environ(), "NODE_PATH="+os.Getenv("CHDB_MODULES"))
	engine.Stderr = os.Stderr
	require.NoError(t, engine.Start())
	t.Cleanup(func() { _ = engine.Process.Kill(); _ = engine.Wait() })
	query := func(sql string) (string, error) {
		resp, err := http.Get(endpoint + "/?default_format=JSONEachRow&query=" + url.QueryEscape(sql))
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = &url.Error{Op: "query", URL: sql, Err: io.ErrUnexpectedEOF}
		}
		return string(b), err
	}
	require.Eventually(t, func() bool { _, err := query("SELECT 1"); return err == nil }, time.Minute, 200*time.Millisecond)

	f := clickhouseexporter.NewFactory()
	cfg := f.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"endpoint": endpoint + "?compress=none", "compress": "none", "async_insert": false, "sending_queue": map[string]any{"enabled": false},
	}).Unmarshal(cfg))
	ctx := context.Background()
	e, err := f.CreateLogs(ctx, exportertest.NewNopSettings(f.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(ctx, componenttest.NewNopHost()))
	raw, err := os.ReadFile(dir + "/records.json")
	require.NoError(t, err)
	ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(raw)
	require.NoError(t, err)
	again := plog.NewLogs()
	ld.CopyTo(again)
	require.NoError(t, e.ConsumeLogs(ctx, ld))
	require.NoError(t, e.ConsumeLogs(ctx, again), "a sender that came twice")
	require.NoError(t, e.Shutdown(ctx))

	page, err := os.ReadFile("../../docs/goodput-and-cost.md")
	require.NoError(t, err)
	sql := regexp.MustCompile("(?s)```sql\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, sql, "the SQL of the daily bill")
	out, err := query(strings.TrimRight(strings.TrimSpace(string(sql[1])), ";"))
	require.NoError(t, err, out)
	var got []line
	for l := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		var b map[string]any
		require.NoError(t, json.Unmarshal([]byte(l), &b), l)
		text := func(k string) string { // large numbers come as texts, small ones as numbers
			if s, ok := b[k].(string); ok {
				return s
			}
			raw, _ := json.Marshal(b[k])
			return string(raw)
		}
		number := func(k string) int64 {
			n, err := strconv.ParseInt(text(k), 10, 64)
			require.NoError(t, err, k)
			return n
		}
		got = append(got, line{
			text("day"), text("team"), text("model"), text("currency"), number("requests"), number("input_tokens"), number("output_tokens"), text("cost"),
		})
	}
	var want []line
	raw, err = os.ReadFile(dir + "/truth.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &want))
	assert.Equal(t, want, got)
	t.Logf("%d lines; the first: %+v", len(got), got[0])
}
