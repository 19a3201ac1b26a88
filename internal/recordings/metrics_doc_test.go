package recordings_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
)

const metricsPage = "../../docs/metrics.md"

// prometheusName is a metric as the Prometheus exporter prints it; distributions/otelcol-llm holds the page to what the binary prints.
func prometheusName(m names.Metric) string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Kind == names.Counter || m.Kind == names.Money {
		name += "_total"
	}
	return name
}

func TestMetricsAreDocumented(t *testing.T) {
	var rows [][]string
	for _, m := range names.Metrics {
		kind := m.Kind.String()
		extra := m.Extra
		if extra == "" {
			extra = "—"
		}
		rows = append(rows, []string{"`" + m.Name + "`", kind, "`" + m.Unit + "`", extra, m.Description, "`" + prometheusName(m) + "`"})
	}
	doctest.Generated(t, metricsPage, "metrics", doctest.Table(
		[]string{"metric", "type", "unit", "attributes beside model and operation", "what", "in Prometheus"}, rows))

	var bounds [][]string
	byBounds := map[string][]string{}
	var order []string
	for _, m := range names.Metrics {
		if m.Kind != names.Histogram {
			continue
		}
		var b []string
		for _, v := range m.Bounds {
			b = append(b, strconv.FormatFloat(v, 'f', -1, 64))
		}
		k := strings.Join(b, ", ")
		if byBounds[k] == nil {
			order = append(order, k)
		}
		byBounds[k] = append(byBounds[k], "`"+m.Name+"`")
	}
	for _, k := range order {
		bounds = append(bounds, []string{strings.Join(byBounds[k], ", "), k})
	}
	doctest.Generated(t, metricsPage, "buckets", doctest.Table([]string{"histograms", "bounds (s, or tokens)"}, bounds))
}

// Each metric is explained in a section of its own or of its kind, and each section answers the same questions with a query.
func TestEveryMetricIsExplained(t *testing.T) {
	raw, err := os.ReadFile(metricsPage)
	require.NoError(t, err)
	_, part, ok := strings.Cut(string(raw), "\n## One by one\n")
	require.True(t, ok)
	part, _, _ = strings.Cut(part, "\n## ")
	explained := map[string]int{}
	for i, section := range strings.Split(part, "\n### ") {
		if i == 0 {
			continue // the introduction
		}
		heading, text, _ := strings.Cut(section, "\n")
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(heading, -1) {
			explained[name[1]]++
		}
		for _, question := range []string{"- **Formula**", "- **Vantage**", "- **Leaves out**", "- **Mistake**", "```promql\n"} {
			assert.Contains(t, text, question, heading)
		}
	}
	for _, m := range names.Metrics {
		assert.Equal(t, 1, explained[m.Name], m.Name)
		delete(explained, m.Name)
	}
	assert.Empty(t, explained, "explained and not in names.Metrics")
}

var promql = regexp.MustCompile("(?s)```promql\n(.*?)```")

// Queries use names and labels that exist; promtool, where it is installed, parses them.
func TestQueriesAskForWhatThereIs(t *testing.T) {
	raw, err := os.ReadFile(metricsPage)
	require.NoError(t, err)
	known := map[string]bool{"service_name": true, "gen_ai_request_model": true, "gen_ai_operation_name": true}
	for _, l := range []string{names.MetricStatus, names.MetricFinishReason, names.MetricCached, names.MetricReasoning, names.MetricReason, names.MetricEstimated, names.MetricDecision, names.MetricRule, names.MetricSLOOutcome, names.MetricSLOViolated, names.MetricCurrency, names.MetricIssue} {
		known[strings.ReplaceAll(l, ".", "_")] = true
	}
	for _, m := range names.Metrics {
		known[prometheusName(m)] = m.Kind != names.Histogram
		if m.Kind == names.Histogram {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				known[prometheusName(m)+suffix] = true
			}
		}
	}
	queries := promql.FindAllStringSubmatch(string(raw), -1)
	require.Greater(t, len(queries), 5)
	var rules strings.Builder
	rules.WriteString("groups:\n- name: docs\n  rules:\n")
	for i, q := range queries {
		for _, word := range regexp.MustCompile(`\b(?:gen_ai|llm|service)_\w+`).FindAllString(q[1], -1) {
			assert.True(t, known[word], "%s is neither a metric nor a label of ours: %s", word, q[1])
		}
		fmt.Fprintf(&rules, "  - record: docs:query:%d\n    expr: |\n      %s\n", i, strings.ReplaceAll(strings.TrimSpace(q[1]), "\n", "\n      "))
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: names and labels of the queries are checked, their grammar is not")
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte(rules.String()), 0o600))
	out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

// Every reason for which a recording's totals differ from what its client was told has its place on the page, with its recordings.
func TestDifferencesAreDocumented(t *testing.T) {
	byReason := map[string][]string{}
	for name, d := range differences {
		require.NotEmpty(t, d.why, name)
		byReason[d.why] = append(byReason[d.why], "`"+name+"`")
	}
	var rows [][]string
	for _, why := range slices.Sorted(maps.Keys(byReason)) {
		slices.Sort(byReason[why])
		rows = append(rows, []string{why, strings.Join(byReason[why], ", ")})
	}
	doctest.Generated(t, metricsPage, "differences", doctest.Table([]string{"reason", "recordings"}, rows))
}

// The metrics of all recordings are those of the table, with the attributes of the table and no others.
func TestMetricsOfTheRecordingsAreThoseOfTheTable(t *testing.T) {
	always := []string{names.RequestModel, names.OperationName}
	extra := map[string]string{}
	for _, m := range names.Metrics {
		extra[m.Name] = m.Extra
	}
	seen := map[string]bool{}
	for _, name := range recordings.Names() {
		res := run(t, load(t, name))
		for _, rm := range res.metrics.ResourceMetrics().All() {
			for k := range rm.Resource().Attributes().All() {
				assert.Contains(t, []string{names.ServiceName, names.ServiceNamespace, names.DeploymentEnvName}, k)
			}
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					seen[m.Name()] = true
					for _, k := range attributeKeys(m) {
						ok := slices.Contains(always, k) || strings.Contains(extra[m.Name()], k)
						assert.True(t, ok, "%s: %s has an attribute %s", name, m.Name(), k)
					}
				}
			}
		}
	}
	for name := range seen {
		_, ok := extra[name]
		assert.True(t, ok, name)
	}
	assert.Greater(t, len(seen), 12)
}

func attributeKeys(m pmetric.Metric) []string {
	keys := map[string]bool{}
	switch m.Type() {
	case pmetric.MetricTypeSum:
		for _, dp := range m.Sum().DataPoints().All() {
			for k := range dp.Attributes().All() {
				keys[k] = true
			}
		}
	case pmetric.MetricTypeGauge:
		for _, dp := range m.Gauge().DataPoints().All() {
			for k := range dp.Attributes().All() {
				keys[k] = true
			}
		}
	case pmetric.MetricTypeHistogram:
		for _, dp := range m.Histogram().DataPoints().All() {
			for k := range dp.Attributes().All() {
				keys[k] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// What the page says of a model that the engine's resource names.
func TestTheModelCanComeFromTheEnginesResource(t *testing.T) {
	td := example(t)
	td.ResourceSpans().At(0).Resource().Attributes().PutStr(names.RequestModel, "my-model")
	res := run(t, []ptrace.Traces{td})
	assert.Contains(t, doctest.Points(res.metrics), "llm.requests{gen_ai.operation.name=chat, gen_ai.request.model=my-model, llm.status=ok} 1\n")
}
