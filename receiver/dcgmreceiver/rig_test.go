package dcgmreceiver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/simlib"
)

// The clock of the scenarios: 2026-01-01T00:00:00Z.
const scenarioStart = 1767225600

// rig runs a receiver through its factory. Tests call it inside a synctest bubble, where the clock moves only while
// every goroutine waits: a call into a simulated library takes no time.
type rig struct {
	t        *testing.T
	metrics  *consumertest.MetricsSink
	logs     *consumertest.LogsSink
	tel      *componenttest.Telemetry
	log      *observer.ObservedLogs
	host     *statusHost
	receiver receiver.Metrics
	both     receiver.Logs
}

type statusHost struct {
	component.Host
	mu     sync.Mutex
	events []componentstatus.Event
}

func (h *statusHost) Report(e *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, *e)
}

func (h *statusHost) statuses() (out []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.events {
		out = append(out, h.events[i].Status().String())
	}
	return out
}

func receiverSettings() receiver.Settings { return receivertest.NewNopSettings(metadata.Type) }

func newRig(t *testing.T, cfg *Config, src gpu.Source) *rig {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	r := &rig{t: t, metrics: &consumertest.MetricsSink{}, logs: &consumertest.LogsSink{}, tel: componenttest.NewTelemetry(), log: logs, host: &statusHost{Host: componenttest.NewNopHost()}}
	set := receiverSettings()
	set.TelemetrySettings = r.tel.NewTelemetrySettings()
	set.Logger = zap.New(core)
	f := NewFactory()
	var err error
	r.receiver, err = f.CreateMetrics(context.Background(), set, cfg, r.metrics)
	require.NoError(t, err)
	r.both, err = f.CreateLogs(context.Background(), set, cfg, r.logs)
	require.NoError(t, err)
	require.Same(t, r.receiver, r.both, "one receiver serves both pipelines")
	if src != nil {
		r.receiver.(*dcgmReceiver).newSource = func(component.Host) gpu.Source { return src }
	}
	require.NoError(t, r.receiver.Start(context.Background(), r.host))
	require.NoError(t, r.both.Start(context.Background(), r.host))
	return r
}

func (r *rig) stop() {
	r.t.Helper()
	require.NoError(r.t, r.receiver.Shutdown(context.Background()))
	require.NoError(r.t, r.both.Shutdown(context.Background()))
	require.NoError(r.t, r.tel.Shutdown(context.Background()))
}

// last is the last report, after everything has settled.
func (r *rig) last() pmetric.Metrics {
	r.t.Helper()
	synctest.Wait()
	all := r.metrics.AllMetrics()
	require.NotEmpty(r.t, all)
	return all[len(all)-1]
}

// point is one data point with where it was found.
type point struct {
	resource pcommon.Map
	metric   pmetric.Metric
	dp       pmetric.NumberDataPoint
}

func (p point) value() float64 {
	if p.dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.dp.IntValue())
	}
	return p.dp.DoubleValue()
}

// key names a series apart from where it was read.
func (p point) key() string {
	attrs := make([]string, 0, p.dp.Attributes().Len())
	for k, v := range p.dp.Attributes().All() {
		attrs = append(attrs, k+"="+v.AsString())
	}
	return p.metric.Name() + "{" + strings.Join(attrs, ",") + "}"
}

func points(md pmetric.Metrics) (out []point) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				var dps pmetric.NumberDataPointSlice
				if m.Type() == pmetric.MetricTypeGauge {
					dps = m.Gauge().DataPoints()
				} else {
					dps = m.Sum().DataPoints()
				}
				for _, dp := range dps.All() {
					out = append(out, point{rm.Resource().Attributes(), m, dp})
				}
			}
		}
	}
	return out
}

// up is the value and the state of dcgm.up, or -1.
func up(md pmetric.Metrics) (float64, string) {
	for _, p := range points(md) {
		if p.metric.Name() == gpu.MetricUp {
			state, _ := p.dp.Attributes().Get(gpu.AttrDCGMState)
			return p.value(), state.Str()
		}
	}
	return -1, ""
}

func read(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(b)
}

// at moves a scenario's clock to second s.
func at(text string, s float64) string {
	return simlib.Edit(text, "now ", fmt.Sprintf("now %d", int64((scenarioStart+s)*1e6)))
}

// pageOf is what a dcgm-exporter would serve for a scenario of the simulated libdcgm at second s.
func pageOf(t testing.TB, scenario string, s float64) string {
	t.Helper()
	old := map[gpu.Field]string{203: "DCGM_FI_DEV_GPU_UTIL", 155: "DCGM_FI_DEV_POWER_USAGE", 1005: "DCGM_FI_PROF_DRAM_ACTIVE", 150: "DCGM_FI_DEV_GPU_TEMP"}
	var b strings.Builder
	for line := range strings.Lines(scenario) {
		w := strings.Fields(line)
		if len(w) < 5 || w[0] != "field" || w[3] == "s" || !strings.HasPrefix(w[1], "gpu:") {
			continue
		}
		id, err := strconv.Atoi(w[2])
		require.NoError(t, err)
		name := gpu.Field(id).String()
		if o := old[gpu.Field(id)]; o != "" {
			name = o
		}
		for g := range 2 {
			if w[1] != "gpu:*" && w[1] != fmt.Sprint("gpu:", g) || !strings.Contains(scenario, fmt.Sprintf("\ngpu %d", g)) {
				continue
			}
			v, err := strconv.ParseFloat(w[4], 64)
			require.NoError(t, err)
			if len(w) > 5 && strings.HasPrefix(w[5], "rate=") {
				rate, err := strconv.ParseFloat(w[5][5:], 64)
				require.NoError(t, err)
				v += rate * float64(int64((scenarioStart+s)*1e6)%1_000_000_000_000) / 1e6
			}
			number := strconv.FormatInt(int64(v), 10)
			if w[3] == "d" {
				number = strconv.FormatFloat(v, 'f', 7, 64)
			}
			fmt.Fprintf(&b, "%s{gpu=\"%d\",UUID=\"GPU-00000000-0000-0000-0000-00000000000%d\",pci_bus_id=\"00000000:%02X:00.0\",device=\"nvidia%d\",modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"node-a\",DCGM_FI_DRIVER_VERSION=\"580.65.06\",DCGM_FI_DEV_SERIAL=\"16514230%05d\"} %s\n",
				name, g, g+1, 0x1a+g*16, g, g, number)
		}
	}
	return b.String()
}
