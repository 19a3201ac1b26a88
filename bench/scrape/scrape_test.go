// Package scrape compares this project's vllm receiver with contrib's prometheus receiver on the same page. It is a module of its own, because the
// prometheus receiver brings 1,500 packages that nothing else here needs.
package scrape

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver"
)

const scrapes = 40

// TestCostOfAScrape lets both receivers scrape the same server at the same interval and reads what the process used: CPU by getrusage, allocations
// by the runtime. The server and the transfer are part of both, so what they cost alone (a client that reads the page and drops it) is measured and
// taken off.
func TestCostOfAScrape(t *testing.T) {
	page, err := os.ReadFile("../../receiver/vllmreceiver/testdata/pages/synthetic_vllm_head_dp2_t1.prom")
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []struct {
		name string
		body string
	}{{"100KB", string(page)}, {"1MB", repeat(string(page), 10)}} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = w.Write([]byte(size.body))
		}))
		base := cost(t, func(next consumer.Metrics) component.Component {
			return &reader{url: srv.URL, next: next, done: make(chan struct{})}
		})
		ours := cost(t, func(next consumer.Metrics) component.Component { return vllm(t, srv.URL, next) })
		theirs := cost(t, func(next consumer.Metrics) component.Component { return prometheus(t, srv.URL, next) })
		fmt.Printf("%s (%d bytes)\n  page only  %v\n  vllm       %v\n  prometheus %v\n  above the page: CPU %.2f, allocations %.2f of the prometheus receiver's\n", size.name, len(size.body),
			base, ours, theirs, (ours.cpu-base.cpu)/(theirs.cpu-base.cpu), (ours.allocs-base.allocs)/(theirs.allocs-base.allocs))
		if ours.cpu-base.cpu > (theirs.cpu-base.cpu)/2 || ours.allocs-base.allocs > (theirs.allocs-base.allocs)/2 {
			t.Errorf("%s: more than half of the prometheus receiver's cost", size.name)
		}
		srv.Close()
	}
}

// repeat makes a page with the series of many ranks.
func repeat(page string, n int) string {
	var b strings.Builder
	for i := range n {
		for line := range strings.SplitSeq(page, "\n") {
			if strings.HasPrefix(line, "#") && i > 0 || line == "" {
				continue
			}
			for rank := range 2 {
				line = strings.Replace(line, fmt.Sprintf(`engine="%d"`, rank), fmt.Sprintf(`engine="%d"`, 1000+2*i+rank), 1)
			}
			if i > 0 && !strings.Contains(line, "engine=") {
				continue
			}
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// reader is a receiver that reads the page and does nothing with it.
type reader struct {
	url  string
	next consumer.Metrics
	done chan struct{}
	wg   sync.WaitGroup
}

func (r *reader) Start(context.Context, component.Host) error {
	r.wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-r.done:
				return
			case <-tick.C:
			}
			if resp, err := http.Get(r.url); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			_ = r.next.ConsumeMetrics(context.Background(), pmetric.NewMetrics())
		}
	})
	return nil
}

func (r *reader) Shutdown(context.Context) error {
	close(r.done)
	r.wg.Wait()
	return nil
}

type figures struct{ cpu, allocs, bytes float64 }

func (f figures) String() string {
	return fmt.Sprintf("%.2f ms CPU, %.0f allocations, %.0f KB a scrape", 1e3*f.cpu, f.allocs, f.bytes/1e3)
}

func cost(t *testing.T, start func(consumer.Metrics) component.Component) figures {
	got := make(chan int, 4*scrapes)
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		got <- md.DataPointCount()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r := start(next)
	if err := r.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	for range 3 { // warm
		<-got
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	cpu := used()
	for range scrapes {
		<-got
	}
	cpu = used() - cpu
	runtime.ReadMemStats(&after)
	if err := r.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	return figures{cpu / scrapes, float64(after.Mallocs-before.Mallocs) / scrapes, float64(after.TotalAlloc-before.TotalAlloc) / scrapes}
}

func used() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func settings(kind string) receiver.Settings {
	return receiver.Settings{ID: component.NewID(component.MustNewType(kind)), TelemetrySettings: componenttest.NewNopTelemetrySettings(), BuildInfo: component.NewDefaultBuildInfo()}
}

func vllm(t *testing.T, url string, next consumer.Metrics) component.Component {
	f := vllmreceiver.NewFactory()
	return create(t, f, map[string]any{"endpoints": []any{url + "/metrics"}, "collection_interval": "100ms"}, next)
}

func prometheus(t *testing.T, url string, next consumer.Metrics) component.Component {
	f := prometheusreceiver.NewFactory()
	return create(t, f, map[string]any{"config": map[string]any{"scrape_configs": []any{map[string]any{
		"job_name": "x", "scrape_interval": "100ms", "scrape_timeout": "100ms",
		"static_configs": []any{map[string]any{"targets": []any{strings.TrimPrefix(url, "http://")}}},
	}}}}, next)
}

func create(t *testing.T, f receiver.Factory, settingsMap map[string]any, next consumer.Metrics) component.Component {
	cfg := f.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(settingsMap).Unmarshal(&cfg); err != nil {
		t.Fatal(err)
	}
	r, err := f.CreateMetrics(context.Background(), settings(f.Type().String()), cfg, next)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
