package dcgmreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/metadata"
)

// toMetrics writes a report as one resource for each device, and one for the source itself.
func toMetrics(rep *gpu.Report, version string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	at := pcommon.NewTimestampFromTime(rep.At)
	if len(rep.Points) > 0 {
		writePoints(scope(md, version), rep.Points, nil, at)
	}
	for i := range rep.Devices {
		d := &rep.Devices[i]
		if len(d.Points) == 0 {
			continue
		}
		rm := md.ResourceMetrics().AppendEmpty()
		writeResource(rm.Resource(), d.Device, d.Owner)
		sm := rm.ScopeMetrics().AppendEmpty()
		writeScope(sm.Scope(), version)
		writePoints(sm, d.Points, d.Device, at)
	}
	return md
}

func scope(md pmetric.Metrics, version string) pmetric.ScopeMetrics {
	sm := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	writeScope(sm.Scope(), version)
	return sm
}

func writeScope(s pcommon.InstrumentationScope, version string) {
	s.SetName(metadata.ScopeName)
	s.SetVersion(version)
}

// writePoints appends points that come grouped by metric.
func writePoints(sm pmetric.ScopeMetrics, points []gpu.Point, d *gpu.Device, at pcommon.Timestamp) {
	var dps pmetric.NumberDataPointSlice
	var last *gpu.Metric
	for i := range points {
		p := &points[i]
		if p.Metric != last {
			last, dps = p.Metric, newMetric(sm.Metrics().AppendEmpty(), p.Metric)
		}
		dp := dps.AppendEmpty()
		dp.SetTimestamp(at)
		if !p.Start.IsZero() {
			dp.SetStartTimestamp(pcommon.NewTimestampFromTime(p.Start))
		}
		if p.Value.IsInt {
			dp.SetIntValue(p.Value.Int)
		} else {
			dp.SetDoubleValue(p.Value.Double)
		}
		attrs := dp.Attributes()
		if d != nil {
			attrs.PutStr(gpu.AttrID, d.ID)
			attrs.PutStr(gpu.AttrType, "gpu")
		}
		for _, a := range p.Attrs {
			switch {
			case a.IsTrue:
				attrs.PutBool(a.Key, true)
			case a.IsInt:
				attrs.PutInt(a.Key, a.Int)
			case a.Str != "":
				attrs.PutStr(a.Key, a.Str)
			}
		}
	}
}

func newMetric(m pmetric.Metric, def *gpu.Metric) pmetric.NumberDataPointSlice {
	m.SetName(def.Name)
	m.SetUnit(def.Unit)
	m.SetDescription(def.Description)
	if def.Kind == gpu.KindGauge {
		return m.SetEmptyGauge().DataPoints()
	}
	s := m.SetEmptySum()
	s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	s.SetIsMonotonic(def.Kind == gpu.KindCounter)
	return s.DataPoints()
}

// writeResource writes what identifies a device. What is not known is absent.
func writeResource(res pcommon.Resource, d *gpu.Device, o *gpu.Owner) {
	attrs := res.Attributes()
	put := func(key, value string) {
		if value != "" {
			attrs.PutStr(key, value)
		}
	}
	put("host.name", d.Host)
	put(gpu.AttrID, d.ID)
	put(gpu.AttrType, "gpu")
	put("hw.name", d.Name)
	put("hw.model", d.Model)
	put("hw.vendor", "NVIDIA")
	put("hw.serial_number", d.Serial)
	put("hw.driver_version", d.Driver)
	put("hw.parent", d.Parent)
	if d.Index >= 0 {
		attrs.PutInt("nvidia.gpu.index", int64(d.Index))
	}
	put("nvidia.gpu.pci.bus_id", d.BusID)
	put("nvidia.gpu.mig.profile", d.Profile)
	if d.Instance >= 0 {
		attrs.PutInt("nvidia.gpu.mig.instance", int64(d.Instance))
	}
	if o != nil {
		put(gpu.AttrNamespace, o.Namespace)
		put(gpu.AttrPod, o.Pod)
		put(gpu.AttrContainer, o.Container)
	}
}

// upPoint says whether the source was read, and if not, why.
func upPoint(source, condition string) gpu.Point {
	m, _ := gpu.MetricByName(gpu.MetricUp)
	p := gpu.Point{Metric: m, Attrs: []gpu.Attr{{Key: gpu.AttrDCGMState, Str: condition}, {Key: gpu.AttrSource, Str: source}}}
	p.Value = gpu.Int(0)
	if condition == gpu.SourceOK {
		p.Value = gpu.Int(1)
	}
	return p
}

// toLogs writes XIDs as log records, grouped by device.
func toLogs(xids []gpu.XIDReport, now time.Time, inferred bool, version string) plog.Logs {
	ld := plog.NewLogs()
	scopes := map[*gpu.Device]plog.ScopeLogs{}
	for i := range xids {
		x := &xids[i]
		sl, ok := scopes[x.Device]
		if !ok {
			rl := ld.ResourceLogs().AppendEmpty()
			if x.Device != nil {
				writeResource(rl.Resource(), x.Device, x.Owner)
			} else {
				rl.Resource().Attributes().PutStr(gpu.AttrID, x.Event.DeviceID)
				rl.Resource().Attributes().PutStr(gpu.AttrType, "gpu")
			}
			sl = rl.ScopeLogs().AppendEmpty()
			writeScope(sl.Scope(), version)
			scopes[x.Device] = sl
		}
		lr := sl.LogRecords().AppendEmpty()
		lr.SetEventName("nvidia.gpu.xid")
		lr.SetTimestamp(pcommon.NewTimestampFromTime(x.Event.At))
		lr.SetObservedTimestamp(pcommon.NewTimestampFromTime(now))
		meaning, fatal := gpu.XIDMeaning(x.Event.XID)
		lr.SetSeverityNumber(plog.SeverityNumberWarn)
		lr.SetSeverityText("WARN")
		if fatal {
			lr.SetSeverityNumber(plog.SeverityNumberError)
			lr.SetSeverityText("ERROR")
		}
		lr.Body().SetStr(gpu.XIDText(x.Event.XID))
		attrs := lr.Attributes()
		attrs.PutStr(gpu.AttrID, x.Event.DeviceID)
		attrs.PutStr(gpu.AttrType, "gpu")
		attrs.PutInt(gpu.AttrXID, x.Event.XID)
		if meaning != "" {
			attrs.PutStr("nvidia.gpu.xid.meaning", meaning)
		}
		if inferred {
			attrs.PutBool("nvidia.gpu.xid.inferred", true)
		}
	}
	return ld
}
