package llmsimextension

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/extension/llmsimextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/sim"
	"github.com/otelcol-llm/otelcol-llm/internal/sim/live"
)

// simulator serves from Start on, and simulates between Ready and NotReady: before, its own Collector could not receive its
// spans, and after, it could no longer.
type simulator struct {
	cfg       *Config
	settings  component.TelemetrySettings
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder

	server  *http.Server
	serving sync.WaitGroup
	running sync.WaitGroup
	client  *http.Client
	replay  []sim.Arrival

	current atomic.Pointer[running]
	begun   chan struct{} // closed by the first Ready, or by Shutdown
	begin   sync.Once
	failing atomic.Bool // the last export failed
}

// running is what exists between Ready and NotReady.
type running struct {
	live            *live.Live
	handler         http.Handler
	pusher          *live.Pusher
	stopWorld, stop context.CancelFunc
	worldDone       chan struct{}
}

var (
	_ extension.Extension                   = (*simulator)(nil)
	_ extensioncapabilities.PipelineWatcher = (*simulator)(nil)
)

const (
	// flushTimeout is how long NotReady waits for the last spans to be accepted.
	flushTimeout = 3 * time.Second
	// startTimeout is how long a request waits for the first Ready. Receivers scrape as soon as they start, which is a moment earlier.
	startTimeout = 2 * time.Second
)

func newSimulator(set extension.Settings, cfg *Config) (*simulator, error) {
	t, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &simulator{cfg: cfg, settings: set.TelemetrySettings, logger: set.Logger, telemetry: t, begun: make(chan struct{})}, nil
}

// Start listens. An address in use or a replay that cannot be read is an error.
func (s *simulator) Start(ctx context.Context, host component.Host) error {
	var err error
	if s.replay, err = s.cfg.replay(); err != nil {
		return err
	}
	if s.client, err = s.cfg.Export.HTTP.ToClient(ctx, host.GetExtensions(), s.settings); err != nil {
		return err
	}
	if s.server, err = s.cfg.Server.ToServer(ctx, host.GetExtensions(), s.settings, http.HandlerFunc(s.serve)); err != nil {
		return err
	}
	listener, err := s.cfg.Server.ToListener(ctx)
	if err != nil {
		return err
	}
	s.logger.Info("simulator listens", zap.String("address", listener.Addr().String()))
	err = s.telemetry.RegisterExtensionLlmsimRequestsInFlightCallback(func(_ context.Context, o metric.Int64Observer) error {
		if r := s.current.Load(); r != nil {
			o.Observe(int64(r.live.InFlight()))
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	s.serving.Go(func() {
		if err := s.server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("simulator cannot serve", zap.Error(err))
		}
	})
	return nil
}

func (s *simulator) serve(w http.ResponseWriter, r *http.Request) {
	wait, cancel := context.WithTimeout(r.Context(), startTimeout)
	defer cancel()
	select {
	case <-s.begun:
	case <-wait.Done():
	}
	if x := s.current.Load(); x != nil {
		x.handler.ServeHTTP(w, r)
		return
	}
	http.Error(w, "the simulation is not running: the pipelines are starting or stopping", http.StatusServiceUnavailable)
}

// Ready begins the simulation.
func (s *simulator) Ready() error {
	cfg := s.cfg.simulation()
	cfg.Replay = s.replay
	ctx, stop := context.WithCancel(context.Background())
	worldCtx, stopWorld := context.WithCancel(ctx)
	x := &running{stop: stop, stopWorld: stopWorld, worldDone: make(chan struct{})}
	opts := live.Options{KeepTruths: s.cfg.KeepRequests, ExportEvery: s.cfg.Export.Interval, Ended: s.ended, Fault: s.fault}
	if s.cfg.Export.HTTP.Endpoint != "" {
		x.pusher = live.NewPusher(s.client, s.cfg.tracesURL(), s.cfg.Export.QueueSize, s.sent)
		opts.Push = x.pusher.Push
	}
	var err error
	if x.live, err = live.New(cfg, opts); err != nil {
		stop()
		return err
	}
	x.handler = x.live.Handler()
	if x.pusher != nil {
		s.running.Go(func() { x.pusher.Run(ctx) })
	}
	s.running.Go(func() {
		defer close(x.worldDone)
		x.live.Run(worldCtx)
	})
	s.current.Store(x)
	s.begin.Do(func() { close(s.begun) })
	return nil
}

// NotReady ends the simulation and sends the spans that are left, while the pipelines still receive.
func (s *simulator) NotReady() error {
	x := s.current.Swap(nil)
	if x == nil {
		return nil
	}
	x.stopWorld()
	<-x.worldDone
	if x.pusher != nil {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		if err := x.pusher.Flush(ctx); err != nil {
			s.logger.Warn("simulated spans could not be sent before the stop", zap.Error(err))
		}
	}
	x.stop()
	s.running.Wait()
	return nil
}

// Shutdown stops everything. It is safe without Start and after NotReady.
func (s *simulator) Shutdown(ctx context.Context) error {
	err := s.NotReady()
	s.begin.Do(func() { close(s.begun) })
	if s.server != nil {
		err = errors.Join(err, s.server.Shutdown(ctx))
		s.serving.Wait()
	}
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	s.telemetry.Shutdown()
	return err
}

func (s *simulator) ended(t *sim.Truth) {
	s.telemetry.ExtensionLlmsimRequests.Add(context.Background(), 1, metric.WithAttributes(attribute.String("status", string(t.Status))))
}

func (s *simulator) fault(active []sim.Fault) {
	names := make([]string, 0, len(active))
	for _, f := range active {
		names = append(names, string(f.Kind))
	}
	s.logger.Info("simulated faults changed", zap.Strings("active", names))
}

// sent counts what became of an export request, and says when that changes.
func (s *simulator) sent(x live.Sent) {
	if x.Err == nil {
		s.telemetry.ExtensionLlmsimSpansSent.Add(context.Background(), int64(x.Spans))
		if s.failing.Swap(false) {
			s.logger.Info("simulated spans are accepted again")
		}
		return
	}
	s.telemetry.ExtensionLlmsimSpansDropped.Add(context.Background(), int64(x.Spans), metric.WithAttributes(attribute.String("reason", string(x.Reason()))))
	if !s.failing.Swap(true) {
		s.logger.Warn("simulated spans are dropped; check export::endpoint and that a receiver listens there",
			zap.String("endpoint", s.cfg.tracesURL()), zap.Error(x.Err))
	}
}
