//go:build engine

package engine

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// lines are the lines of a file of the file exporter; none when there is no file. A last line that is not complete yet is left out.
func lines(path string) [][]byte {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	whole, _, _ := bytes.Cut(b[:bytes.LastIndexByte(b, '\n')+1], []byte{0})
	return slices.Collect(bytes.Lines(whole))
}

// series are the last points of all series of a file of metrics: counters, gauges, and of histograms count and sum.
type series []point

type point struct {
	name       string
	attributes pcommon.Map
	value      float64 // a histogram's sum
	count      float64
	time       pcommon.Timestamp
}

func readSeries(path string) (series, error) {
	last := map[string]point{}
	for _, l := range lines(path) {
		md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(l)
		if err != nil {
			return nil, err
		}
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					keep := func(p point) {
						p.name = m.Name()
						last[m.Name()+fmt.Sprint(rm.Resource().Attributes().AsRaw(), p.attributes.AsRaw())] = p
					}
					numbers := func(ps pmetric.NumberDataPointSlice) {
						for _, p := range ps.All() {
							v := p.DoubleValue()
							if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
								v = float64(p.IntValue())
							}
							keep(point{attributes: p.Attributes(), value: v, time: p.Timestamp()})
						}
					}
					switch m.Type() {
					case pmetric.MetricTypeSum:
						numbers(m.Sum().DataPoints())
					case pmetric.MetricTypeGauge:
						numbers(m.Gauge().DataPoints())
					case pmetric.MetricTypeHistogram:
						for _, p := range m.Histogram().DataPoints().All() {
							keep(point{attributes: p.Attributes(), value: p.Sum(), count: float64(p.Count()), time: p.Timestamp()})
						}
					}
				}
			}
		}
	}
	return slices.Collect(maps.Values(last)), nil
}

// total adds up a metric over the series with all these attributes ("key=value").
func (s series) total(name string, with ...string) (value, count float64) {
	for _, p := range s {
		if p.name != name || slices.ContainsFunc(with, func(w string) bool {
			key, want, _ := strings.Cut(w, "=")
			got, ok := p.attributes.Get(key)
			return !ok || got.AsString() != want
		}) {
			continue
		}
		value += p.value
		count += p.count
	}
	return value, count
}

// record is what is compared of a request record.
type record struct {
	trace, status string
	attributes    pcommon.Map
}

func (r record) number(key string) (float64, bool) {
	v, ok := r.attributes.Get(key)
	switch {
	case !ok:
		return 0, false
	case v.Type() == pcommon.ValueTypeInt:
		return float64(v.Int()), true
	default:
		return v.Double(), true
	}
}

func readRecords(path string) (all []record, err error) {
	for _, l := range lines(path) {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(l)
		if err != nil {
			return nil, err
		}
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					status, _ := lr.Attributes().Get("llmspan.status")
					all = append(all, record{lr.TraceID().String(), status.AsString(), lr.Attributes()})
				}
			}
		}
	}
	return all, nil
}

// readTraces are the spans of a file by trace id.
func readTraces(path string) (map[string][]ptrace.Span, error) {
	all := map[string][]ptrace.Span{}
	for _, l := range lines(path) {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(l)
		if err != nil {
			return nil, err
		}
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					all[s.TraceID().String()] = append(all[s.TraceID().String()], s)
				}
			}
		}
	}
	return all, nil
}

// page is the sum of each sample's name on a page in Prometheus' format.
type page map[string]float64

func parsePage(text string) page {
	p := page{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		if i < 0 {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
		if err != nil {
			continue
		}
		name, _, _ := strings.Cut(line[:i], "{")
		p[name] += v
	}
	return p
}

// since is what was added to a page after an earlier one.
func (p page) since(earlier page) page {
	d := page{}
	for k, v := range p {
		d[k] = v - earlier[k]
	}
	return d
}

// partition says how far the stage spans of a request with one sequence are from touching, standing in order, and filling its
// outermost span, in nanoseconds; ok is false when a stage is missing.
func partition(spans []ptrace.Span) (off int64, ok bool) {
	var outer ptrace.Span
	found := false
	stages := map[string]ptrace.Span{}
	for _, s := range spans {
		if v, ok := s.Attributes().Get("llmspan.stage"); ok {
			stages[v.Str()] = s
		}
		if layer, ok := s.Attributes().Get("llmspan.layer"); ok && layer.Str() == "gateway" {
			outer, found = s, true
		}
	}
	if !found {
		return 0, false
	}
	at := outer.StartTimestamp()
	abs := func(a, b pcommon.Timestamp) int64 { return max(int64(a)-int64(b), int64(b)-int64(a)) }
	for _, name := range []string{"ingress", "admission", "queue", "prefill", "decode", "return"} {
		s, ok := stages[name]
		if !ok {
			return 0, false
		}
		off += abs(s.StartTimestamp(), at)
		at = s.EndTimestamp()
	}
	return off + abs(outer.EndTimestamp(), at), true
}
