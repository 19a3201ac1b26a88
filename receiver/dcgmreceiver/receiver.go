package dcgmreceiver

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/metadata"
)

// dcgmReceiver asks its worker for a reading at each tick and passes on what comes back, once. It serves the metrics
// and the logs pipeline of one configuration.
type dcgmReceiver struct {
	cfg      *Config
	settings receiver.Settings
	obs      *receiverhelper.ObsReport
	tel      *metadata.TelemetryBuilder
	metrics  consumer.Metrics // nil without a metrics pipeline
	logs     consumer.Logs    // nil without a logs pipeline

	plan    *gpu.Plan
	tracker *gpu.Tracker
	worker  *worker
	pods    *podLookup // nil when turned off

	startOnce, stopOnce sync.Once
	cancel              context.CancelFunc
	done                sync.WaitGroup
	forget              func()
	newSource           func(component.Host) gpu.Source // replaced by tests

	// Owned by the loop's goroutine.
	host      component.Host
	condition string
	notes     map[string]bool
}

func newReceiver(cfg *Config, settings receiver.Settings, forget func()) (*dcgmReceiver, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: settings.ID, ReceiverCreateSettings: settings})
	if err != nil {
		return nil, err
	}
	tel, err := metadata.NewTelemetryBuilder(settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	r := &dcgmReceiver{
		cfg: cfg, settings: settings, obs: obs, tel: tel, forget: forget,
		plan: cfg.plan(), notes: map[string]bool{}, condition: gpu.SourceStarting,
	}
	r.tracker = gpu.NewTracker(r.plan)
	r.newSource = func(host component.Host) gpu.Source { return newSource(cfg, r.plan, host, settings) }
	if cfg.PodResourcesSocket != "" {
		r.pods = newPodLookup(cfg)
	}
	return r, nil
}

// Start begins reading. A missing library, engine or exporter is a condition to be reported, not a failed start.
func (r *dcgmReceiver) Start(_ context.Context, host component.Host) error {
	r.startOnce.Do(func() {
		r.host = host
		ctx, cancel := context.WithCancel(context.Background())
		r.cancel = cancel
		r.worker = newWorker(r.newSource(host), r.cfg.Timeout)
		if r.pods != nil {
			r.worker.enrich = func(ctx context.Context, in *gpu.Reading) { r.pods.fill(ctx, in, r.tel) }
		}
		r.done.Go(func() { r.worker.run(ctx) })
		r.done.Go(func() { r.loop(ctx) })
	})
	return nil
}

// Shutdown stops reading and lets go of the source. It waits no longer than ctx and the timeout for a call that hangs.
func (r *dcgmReceiver) Shutdown(ctx context.Context) error {
	var err error
	r.stopOnce.Do(func() {
		r.forget()
		if r.cancel == nil {
			r.tel.Shutdown()
			return
		}
		r.cancel()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			r.done.Wait()
			if r.pods != nil {
				r.pods.close()
			}
			r.tel.Shutdown()
		}()
		select {
		case <-stopped:
		case <-ctx.Done():
			err = ctx.Err()
		}
	})
	return err
}

// loop sends a request at each tick and passes on each outcome. A tick never waits: while the request before it is
// unanswered, it says that the source is down, or nothing when a good source merely takes its time.
func (r *dcgmReceiver) loop(ctx context.Context) {
	ticker := time.NewTicker(r.cfg.CollectionInterval)
	defer ticker.Stop()
	waiting := false
	tick := func() {
		if !waiting {
			waiting = true
			r.worker.requests <- struct{}{} // the channel has room: at most one request is out
			return
		}
		r.tel.ReceiverDcgmReads.Add(ctx, 1, outcomeAttr("skipped"))
		if c := r.worker.condition.Load().(string); c != gpu.SourceOK {
			r.emitDown(ctx, c)
		}
	}
	tick()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			tick()
		case o := <-r.worker.outcomes:
			waiting = false
			r.handle(ctx, &o)
		}
	}
}

func (r *dcgmReceiver) handle(ctx context.Context, o *outcome) {
	if o.opened {
		r.tel.ReceiverDcgmConnections.Add(ctx, 1)
	}
	r.tel.ReceiverDcgmReadDuration.Record(ctx, o.took.Seconds())
	r.changed(o)
	if o.reading == nil {
		name := "failed"
		if o.timedOut {
			name = "timeout"
		}
		r.tel.ReceiverDcgmReads.Add(ctx, 1, outcomeAttr(name))
		r.emitDown(ctx, o.condition)
		return
	}
	r.tel.ReceiverDcgmReads.Add(ctx, 1, outcomeAttr("ok"))
	r.tellNotes(o.reading.Notes)
	rep := r.tracker.Take(o.reading)
	r.count(ctx, rep)
	rep.Points = append(rep.Points, upPoint(o.reading.Source, gpu.SourceOK))
	r.sendMetrics(ctx, rep)
	r.sendLogs(ctx, rep, o.reading.XIDsAreChanges)
}

// changed logs a change of condition and reports it as component status, once each.
func (r *dcgmReceiver) changed(o *outcome) {
	if o.condition == r.condition {
		return
	}
	was := r.condition
	r.condition = o.condition
	if o.reading != nil {
		r.settings.Logger.Info("reading GPUs", zap.String("source", o.reading.Source), zap.String("endpoint", o.reading.Endpoint), zap.Int("devices", len(o.reading.Devices)), zap.String("was", was))
		componentstatus.ReportStatus(r.host, componentstatus.NewEvent(componentstatus.StatusOK))
		return
	}
	if o.err == nil {
		return
	}
	r.settings.Logger.Warn("cannot read GPUs; trying again until it works", zap.String("condition", o.condition), zap.Error(o.err))
	componentstatus.ReportStatus(r.host, componentstatus.NewRecoverableErrorEvent(o.err))
}

// tellNotes logs each note when it appears, and again only after it has gone.
func (r *dcgmReceiver) tellNotes(notes []gpu.Note) {
	now := make(map[string]bool, len(notes))
	for _, n := range notes {
		now[n.Key] = true
		if !r.notes[n.Key] {
			log := r.settings.Logger.Warn
			if strings.HasPrefix(n.Key, noteSource) {
				log = r.settings.Logger.Info
			}
			log(n.Message, zap.String("detail", n.Detail))
		}
	}
	r.notes = now
}

func (r *dcgmReceiver) count(ctx context.Context, rep *gpu.Report) {
	r.tel.ReceiverDcgmDevices.Record(ctx, int64(len(rep.Devices)))
	if rep.Overflow > 0 {
		r.tel.ReceiverDcgmOverflow.Add(ctx, int64(rep.Overflow))
	}
	if rep.Used > 0 {
		r.tel.ReceiverDcgmValues.Add(ctx, int64(rep.Used), reasonAttr("used"))
	}
	for why, n := range rep.Dropped {
		r.tel.ReceiverDcgmValues.Add(ctx, int64(n), reasonAttr(string(why)))
	}
}

// emitDown says that nothing was read, and why. Devices are silent then: a gap, never old values.
func (r *dcgmReceiver) emitDown(ctx context.Context, condition string) {
	r.sendMetrics(ctx, &gpu.Report{At: time.Now(), Points: []gpu.Point{upPoint(r.worker.src.Name(), condition)}})
}

func (r *dcgmReceiver) sendMetrics(ctx context.Context, rep *gpu.Report) {
	if r.metrics == nil {
		return
	}
	if !r.plan.On(gpu.MetricUp) {
		rep.Points = dropMetric(rep.Points, gpu.MetricUp)
	}
	md := toMetrics(rep, r.settings.BuildInfo.Version)
	n := md.DataPointCount()
	if n == 0 {
		return
	}
	opCtx := r.obs.StartMetricsOp(ctx)
	err := r.metrics.ConsumeMetrics(opCtx, md)
	r.obs.EndMetricsOp(opCtx, metadata.Type.String(), n, err)
}

func (r *dcgmReceiver) sendLogs(ctx context.Context, rep *gpu.Report, inferred bool) {
	if r.logs == nil || len(rep.XIDs) == 0 {
		return
	}
	ld := toLogs(rep.XIDs, rep.At, inferred, r.settings.BuildInfo.Version)
	opCtx := r.obs.StartLogsOp(ctx)
	err := r.logs.ConsumeLogs(opCtx, ld)
	r.obs.EndLogsOp(opCtx, metadata.Type.String(), ld.LogRecordCount(), err)
}

func dropMetric(points []gpu.Point, name string) []gpu.Point {
	out := points[:0]
	for _, p := range points {
		if p.Metric.Name != name {
			out = append(out, p)
		}
	}
	return out
}

func outcomeAttr(o string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", o)))
}

func reasonAttr(why string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", why)))
}
