package dcgmreceiver

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/simlib"
)

var update = flag.Bool("update", false, "write the golden files anew")

// exporterPage serves text, which may change.
func exporterPage(t *testing.T) (url string, text *atomic.Pointer[string]) {
	t.Helper()
	text = &atomic.Pointer[string]{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p := text.Load()
		if p == nil {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(*p))
	}))
	t.Cleanup(srv.Close)
	return srv.URL, text
}

func config(source SourceKind) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Source = source
	cfg.PodResourcesSocket = ""
	// An idle connection waits in the network, and the bubble's clock with it.
	cfg.HTTP.DisableKeepAlives = true //nolint:staticcheck // keepalive::enabled is a key of files; in code confighttp reads this field alone
	return cfg
}

// run reads a scenario through a source at seconds 0, 10 and 20 and returns the reports.
func run(t *testing.T, source SourceKind, dcgm, nvml string) (out []pmetric.Metrics) {
	t.Helper()
	if source != SourceExporter {
		simlib.Need(t)
	}
	cfg := config(source)
	url, text := exporterPage(t)
	if source == SourceExporter {
		cfg.Endpoint = url
	}
	synctest.Test(t, func(t *testing.T) {
		world := func(s float64) {
			switch source {
			case SourceDCGM:
				simlib.DCGM(t, at(dcgm, s))
			case SourceNVML:
				simlib.NVML(t, at(nvml, s))
			case SourceExporter:
				p := pageOf(t, dcgm, s)
				text.Store(&p)
			}
		}
		world(0)
		r := newRig(t, cfg, nil)
		for _, s := range []float64{10, 20} {
			synctest.Wait()
			time.Sleep(9 * time.Second)
			world(s)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		out = r.metrics.AllMetrics()
		require.Len(t, out, 3)
		r.stop()
	})
	return out
}

func TestGolden(t *testing.T) {
	one := []string{"gpu 1", "# one GPU is enough to review"}
	for _, tc := range []struct {
		name   string
		source SourceKind
		edit   []string
	}{
		{"dcgm", SourceDCGM, one},
		{"nvml", SourceNVML, one},
		{"exporter", SourceExporter, one},
		{"dcgm_degraded", SourceDCGM, []string{"prof ", "prof -37", "gpu 1", "gpu 1 status=4", "health ", "health 0 7 10", "failfield ", "failfield 140 -6"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := run(t, tc.source, simlib.Edit(read(t, "two_h100.scenario"), tc.edit...), simlib.Edit(read(t, "two_h100.nvml"), tc.edit...))[2]
			file := filepath.Join("testdata", "golden", tc.name+".yaml")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				require.NoError(t, golden.WriteMetrics(t, file, got, golden.SkipMetricTimestampNormalization()))
			}
			want, err := golden.ReadMetrics(file)
			require.NoError(t, err)
			require.NoError(t, pmetrictest.CompareMetrics(want, got,
				pmetrictest.IgnoreResourceMetricsOrder(), pmetrictest.IgnoreMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder()))
		})
	}
}

// TestTheSameGPUIsTheSameThroughEverySource compares series by series what two sources both have.
func TestTheSameGPUIsTheSameThroughEverySource(t *testing.T) {
	dcgm, nvml := read(t, "two_h100.scenario"), read(t, "two_h100.nvml")
	bySource, before := map[SourceKind]map[string]point{}, map[SourceKind]map[string]point{}
	for _, s := range []SourceKind{SourceDCGM, SourceNVML, SourceExporter} {
		reports := run(t, s, dcgm, nvml)
		for i, into := range []map[SourceKind]map[string]point{before, bySource} {
			into[s] = map[string]point{}
			for _, p := range points(reports[1+i]) {
				if _, device := p.resource.Get(gpu.AttrID); device {
					into[s][p.key()] = p
				}
			}
		}
	}
	for _, pair := range []struct {
		a, b    SourceKind
		atLeast int
	}{
		{SourceDCGM, SourceNVML, 140},
		{SourceDCGM, SourceExporter, 140},
		{SourceNVML, SourceExporter, 130},
	} {
		shared := 0
		for key, a := range bySource[pair.a] {
			b, ok := bySource[pair.b][key]
			if !ok {
				continue
			}
			shared++
			switch a.metric.Name() {
			case "hw.gpu.io":
				// A counter made of a rate starts with its source's first sample; what it counts in ten seconds is the same.
				da, db := a.value()-before[pair.a][key].value(), b.value()-before[pair.b][key].value()
				assert.InDelta(t, da, db, 1, key)
			default:
				assert.InDelta(t, a.value(), b.value(), 1e-6*max(1, a.value()), "%s: %s and %s", key, pair.a, pair.b)
			}
			assert.Equal(t, a.metric.Unit(), b.metric.Unit(), key)
			assert.Equal(t, a.metric.Type(), b.metric.Type(), key)
			for _, id := range []string{"hw.id", "hw.name", "hw.model", "hw.serial_number", "hw.driver_version", "nvidia.gpu.pci.bus_id", "nvidia.gpu.index"} {
				va, _ := a.resource.Get(id)
				vb, _ := b.resource.Get(id)
				assert.Equal(t, va.AsRaw(), vb.AsRaw(), "%s of %s", id, key)
			}
		}
		assert.GreaterOrEqual(t, shared, pair.atLeast, "series that %s and %s share", pair.a, pair.b)
	}
}

func TestAutoTriesEngineThenExporterThenNVML(t *testing.T) {
	simlib.Need(t)
	dcgm, nvml := read(t, "two_h100.scenario"), read(t, "two_h100.nvml")
	url, text := exporterPage(t)
	cfg := config(SourceAuto)
	cfg.Endpoint = url
	synctest.Test(t, func(t *testing.T) {
		simlib.DCGM(t, "engine down")
		simlib.NVML(t, "init 9")
		r := newRig(t, cfg, nil)
		v, state := up(r.last())
		assert.Zero(t, v)
		assert.Equal(t, gpu.SourceUnreachable, state)

		source := func() string {
			for _, p := range points(r.last()) {
				if p.metric.Name() == gpu.MetricUp {
					s, _ := p.dp.Attributes().Get(gpu.AttrSource)
					return s.Str()
				}
			}
			return ""
		}
		simlib.NVML(t, nvml)
		time.Sleep(40 * time.Second)
		assert.Equal(t, "nvml", source())

		simlib.NVML(t, "init 9")
		p := pageOf(t, dcgm, 0)
		text.Store(&p)
		// NVML goes on from the handle it has until a call fails.
		simlib.NVML(t, "fail nvmlDeviceGetCount_v2 999\ninit 9")
		time.Sleep(80 * time.Second)
		assert.Equal(t, "dcgm_exporter", source())

		simlib.DCGM(t, dcgm)
		text.Store(nil)
		time.Sleep(40 * time.Second)
		assert.Equal(t, "dcgm", source())
		r.stop()
		var chosen []string
		for _, e := range r.log.FilterMessageSnippet("reading GPUs through").All() {
			chosen = append(chosen, e.Message+": "+e.ContextMap()["detail"].(string))
		}
		require.Len(t, chosen, 3)
		assert.Contains(t, chosen[0], "reading GPUs through nvml: dcgm: cannot connect")
		assert.Contains(t, chosen[0], "503", "and why not the others")
		assert.Contains(t, chosen[2], "reading GPUs through dcgm: it is the first in order")
	})
}
