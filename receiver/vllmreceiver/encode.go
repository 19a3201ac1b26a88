package vllmreceiver

import (
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/series"
	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/target"
)

const scopeName = "github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver"

// unknownService is the service.name of an endpoint that has not been an engine yet.
const unknownService = "inference_engine"

// encode appends an endpoint's points and events, and tells the log of the events.
func (s *engineScraper) encode(md pmetric.Metrics, ld plog.Logs, e *endpoint, before target.Report) {
	s.count(e)
	at := pcommon.NewTimestampFromTime(e.at)
	if len(e.report.Moved) > 0 {
		s.metrics(md, e, before, e.report.Moved, at)
	}
	s.metrics(md, e, e.report, e.report.Outputs, at)
	if len(e.report.Events) == 0 {
		return
	}
	for i := range e.report.Events {
		s.log(e, &e.report.Events[i])
	}
	if s.logs == nil {
		return
	}
	rl := ld.ResourceLogs().AppendEmpty()
	s.resource(rl.Resource().Attributes(), e, e.report)
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(scopeName)
	sl.Scope().SetVersion(s.set.BuildInfo.Version)
	for i := range e.report.Events {
		event(sl.LogRecords().AppendEmpty(), &e.report.Events[i], at)
	}
}

func (s *engineScraper) metrics(md pmetric.Metrics, e *endpoint, r target.Report, points []series.Output, at pcommon.Timestamp) {
	rm := md.ResourceMetrics().AppendEmpty()
	s.resource(rm.Resource().Attributes(), e, r)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(scopeName)
	sm.Scope().SetVersion(s.set.BuildInfo.Version)
	list := sm.Metrics()
	index := make(map[*engine.Metric]pmetric.Metric, 64)
	for i := range points {
		p := &points[i]
		m, ok := index[p.Metric]
		if !ok {
			m = list.AppendEmpty()
			describe(m, p.Metric)
			index[p.Metric] = m
		}
		point(m, p, at)
	}
}

// end appends a point without a value for every series that an endpoint had in its last scrape.
func (s *engineScraper) end(md pmetric.Metrics, e *endpoint) {
	var last []series.Output
	for _, o := range e.report.Outputs {
		if !o.Gone {
			o.Gone = true
			last = append(last, o)
		}
	}
	if len(last) > 0 {
		s.metrics(md, e, e.report, last, pcommon.NewTimestampFromTime(s.now()))
	}
}

func describe(m pmetric.Metric, d *engine.Metric) {
	m.SetName(d.Name)
	m.SetUnit(d.Unit)
	m.SetDescription(d.Description)
	switch d.Kind {
	case engine.Gauge:
		m.SetEmptyGauge()
	case engine.Counter:
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	case engine.Histogram:
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
}

func point(m pmetric.Metric, p *series.Output, at pcommon.Timestamp) {
	switch p.Metric.Kind {
	case engine.Gauge:
		number(m.Gauge().DataPoints().AppendEmpty(), p, at)
	case engine.Counter:
		number(m.Sum().DataPoints().AppendEmpty(), p, at)
	case engine.Histogram:
		dp := m.Histogram().DataPoints().AppendEmpty()
		dp.SetTimestamp(at)
		dp.SetStartTimestamp(timestamp(p.Start))
		attributes(dp.Attributes(), p.Attrs)
		if p.Gone {
			dp.SetFlags(dp.Flags().WithNoRecordedValue(true))
			return
		}
		dp.SetCount(p.Hist.Count)
		dp.SetSum(p.Hist.Sum)
		dp.ExplicitBounds().FromRaw(p.Hist.Bounds)
		dp.BucketCounts().FromRaw(p.Hist.Counts)
	}
}

func number(dp pmetric.NumberDataPoint, p *series.Output, at pcommon.Timestamp) {
	dp.SetTimestamp(at)
	dp.SetStartTimestamp(timestamp(p.Start))
	attributes(dp.Attributes(), p.Attrs)
	switch {
	case p.Gone:
		dp.SetFlags(dp.Flags().WithNoRecordedValue(true))
	case p.Metric.Int && p.Value == math.Trunc(p.Value) && math.Abs(p.Value) < 1<<63:
		dp.SetIntValue(int64(p.Value))
	default:
		dp.SetDoubleValue(p.Value)
	}
}

func timestamp(t time.Time) pcommon.Timestamp {
	if t.IsZero() {
		return 0
	}
	return pcommon.NewTimestampFromTime(t)
}

func attributes(m pcommon.Map, attrs []engine.Attr) {
	m.EnsureCapacity(len(attrs))
	for i := range attrs {
		m.PutStr(attrs[i].Key, attrs[i].Value)
	}
}

// resource says which engine it is. The instance is host:port, and its path where that is not the usual one.
func (s *engineScraper) resource(m pcommon.Map, e *endpoint, r target.Report) {
	name := s.cfg.ServiceName
	if name == "" {
		name = r.Kind
	}
	if name == "" {
		name = unknownService
	}
	instance := e.url.Host
	if e.url.Path != "/metrics" {
		instance += e.url.Path
	}
	m.EnsureCapacity(6)
	m.PutStr("service.name", name)
	m.PutStr("service.instance.id", instance)
	m.PutStr("server.address", e.url.Hostname())
	m.PutInt("server.port", port(e))
	if r.Kind != "" {
		m.PutStr("llm.engine.kind", r.Kind)
	}
	if r.Version != "" {
		m.PutStr("llm.engine.version", r.Version)
	}
}

func port(e *endpoint) int64 {
	if n, err := strconv.ParseInt(e.url.Port(), 10, 32); err == nil {
		return n
	}
	if e.url.Scheme == "https" {
		return 443
	}
	return 80
}

func event(lr plog.LogRecord, e *target.Event, at pcommon.Timestamp) {
	lr.SetTimestamp(at)
	lr.SetObservedTimestamp(at)
	lr.SetEventName(e.Name)
	lr.SetSeverityNumber(plog.SeverityNumberInfo)
	lr.SetSeverityText("INFO")
	if e.Warn {
		lr.SetSeverityNumber(plog.SeverityNumberWarn)
		lr.SetSeverityText("WARN")
	}
	lr.Body().SetStr(e.Text)
	attributes(lr.Attributes(), e.Attrs)
}

func (s *engineScraper) log(e *endpoint, ev *target.Event) {
	level := zap.InfoLevel
	if ev.Warn {
		level = zap.WarnLevel
	}
	message := "engine state"
	if ev.Name == target.EventAdvice {
		message = "engine advice"
	}
	s.logger.Log(level, message, zap.String("endpoint", e.url.Host+e.url.Path), zap.String("detail", ev.Text))
}
