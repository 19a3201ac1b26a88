//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/child"
)

// backends are real ones, each a child process on a free port, with nothing in them.
type backends struct {
	prometheus, alertmanager, victoriaMetrics, victoriaLogs string // base addresses

	jaeger *jaeger // nil where none runs
}

// startBackends starts them. Prometheus scrapes target (host:port) every second, takes remote write, and sends the alerts of
// rules to Alertmanager.
func startBackends(t testing.TB, target, rules string) backends {
	t.Helper()
	p := child.FreePorts(t, 4)
	pAddress, aAddress, mAddress, lAddress := "127.0.0.1:"+p[0], "127.0.0.1:"+p[1], "127.0.0.1:"+p[2], "127.0.0.1:"+p[3]
	b := backends{
		prometheus: "http://" + pAddress, alertmanager: "http://" + aAddress, victoriaMetrics: "http://" + mAddress, victoriaLogs: "http://" + lAddress,
	}
	am := start(t, "alertmanager", backend(t, "prometheus-alertmanager"), nil,
		"--config.file="+write(t, "alertmanager.yml", "route: {receiver: none}\nreceivers: [{name: none}]\n"),
		"--storage.path="+t.TempDir(), "--web.listen-address="+aAddress, "--cluster.listen-address=")
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}
scrape_configs:
  - {job_name: otelcol-llm, honor_labels: true, static_configs: [{targets: [%q], labels: {via: scrape}}]}
`, write(t, "rules.yml", rules), aAddress, target)
	prom := start(t, "prometheus", backend(t, "prometheus"), nil,
		"--config.file="+write(t, "prometheus.yml", config), "--storage.tsdb.path="+t.TempDir(),
		"--web.listen-address="+pAddress, "--web.enable-remote-write-receiver", "--enable-feature=exemplar-storage", "--rules.alert.resend-delay=1s")
	vm := start(t, "victoria-metrics", backend(t, "victoria-metrics"), nil,
		"-httpListenAddr="+mAddress, "-storageDataPath="+t.TempDir(), "-search.latencyOffset=0s", "-retentionPeriod=100y")
	vl := start(t, "victoria-logs", backend(t, "victoria-logs"), nil,
		"-httpListenAddr="+lAddress, "-storageDataPath="+t.TempDir(), "-retentionPeriod=100y")
	b.jaeger = startJaeger(t)
	am.Ready(t, time.Minute, b.alertmanager+"/-/ready")
	prom.Ready(t, time.Minute, b.prometheus+"/-/ready")
	vm.Ready(t, time.Minute, b.victoriaMetrics+"/health")
	vl.Ready(t, time.Minute, b.victoriaLogs+"/health")
	return b
}

// flush makes what the Victoria backends have taken in visible to queries.
func (b backends) flush(r *report) {
	for _, base := range []string{b.victoriaMetrics, b.victoriaLogs} {
		if _, err := fetch(base + "/internal/force_flush"); err != nil {
			r.add("flush: %v", err)
		}
	}
}

// sample is one series of an instant query.
type sample struct {
	Metric map[string]string
	Value  float64
}

// promQL asks a Prometheus API for an instant vector.
func promQL(base, query string) ([]sample, error) {
	b, err := fetch(base + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return nil, err
	}
	var r struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, err
	}
	var all []sample
	for _, x := range r.Data.Result {
		s, _ := x.Value[1].(string)
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, sample{x.Metric, v})
	}
	return all, nil
}

// scalar is the only value of a query; 0 when there is none.
func scalar(base, query string) (float64, error) {
	all, err := promQL(base, query)
	switch {
	case err != nil:
		return 0, err
	case len(all) == 0:
		return 0, nil
	case len(all) > 1:
		return 0, fmt.Errorf("%s gives %d series, not one", query, len(all))
	}
	return all[0].Value, nil
}

// logsQL asks VictoriaLogs and returns its answer's lines.
func logsQL(base, query string) ([]map[string]string, error) {
	b, err := post(base+"/select/logsql/query", "application/x-www-form-urlencoded", url.Values{"query": {query}}.Encode())
	if err != nil {
		return nil, err
	}
	var all []map[string]string
	for len(b) > 0 {
		line := b
		for i, c := range b {
			if c == '\n' {
				line = b[:i]
				break
			}
		}
		b = b[min(len(line)+1, len(b)):]
		if len(line) == 0 {
			continue
		}
		var m map[string]string
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// alerts are the names of the alerts that Alertmanager holds.
func (b backends) alerts() (map[string]bool, error) {
	body, err := fetch(b.alertmanager + "/api/v2/alerts")
	if err != nil {
		return nil, err
	}
	var all []struct{ Labels map[string]string }
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, a := range all {
		names[a.Labels["alertname"]] = true
	}
	return names, nil
}

func TestBackendsAnswer(t *testing.T) {
	b := startBackends(t, "127.0.0.1:1", "groups: [{name: g, rules: [{alert: Always, expr: vector(1)}]}]\n")
	child.Eventually(t, 30*time.Second, "the alert is not in Alertmanager", func() error {
		names, err := b.alerts()
		if err == nil && !names["Always"] {
			err = fmt.Errorf("alerts: %v", names)
		}
		return err
	})
	v, err := scalar(b.victoriaMetrics, "1+1")
	require.NoError(t, err)
	require.InDelta(t, 2, v, 0)
	logs, err := logsQL(b.victoriaLogs, "* | stats count() n")
	require.NoError(t, err)
	require.Equal(t, "0", logs[0]["n"])
}
