package dcgmreceiver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/metadatatest"
)

// fakeSource does what a test tells it to. open and read may block; they run on the worker's goroutines.
type fakeSource struct {
	mu     sync.Mutex
	open   func() error
	read   func(now time.Time) (*gpu.Reading, error)
	opens  int
	reads  int
	closes int
	inside atomic.Int32
	most   atomic.Int32
	closed chan struct{}
}

func newFake() *fakeSource {
	f := &fakeSource{closed: make(chan struct{})}
	f.open = func() error { return nil }
	f.read = func(now time.Time) (*gpu.Reading, error) { return oneGPU(now), nil }
	return f
}

func oneGPU(now time.Time) *gpu.Reading {
	return &gpu.Reading{At: now, Clock: now, Source: "fake", Step: 10 * time.Second, Devices: []gpu.DeviceReading{{
		Device: gpu.Device{ID: "GPU-1", UUID: "GPU-1", Index: 0, Minor: 0, Instance: gpu.None}, State: gpu.StateOK,
		Samples: []gpu.Sample{{Field: 203, Link: gpu.None, At: now, Value: gpu.Int(50)}, {Field: 140, Link: gpu.None, At: now, Value: gpu.Int(9223372036854775794)}},
	}}}
}

func (f *fakeSource) set(open func() error, read func(time.Time) (*gpu.Reading, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if open != nil {
		f.open = open
	}
	if read != nil {
		f.read = read
	}
}

func (f *fakeSource) enter() func() {
	n := f.inside.Add(1)
	f.most.Store(max(f.most.Load(), n))
	return func() { f.inside.Add(-1) }
}

func (f *fakeSource) Name() string { return "fake" }

func (f *fakeSource) Open(context.Context) error {
	defer f.enter()()
	f.mu.Lock()
	f.opens++
	open := f.open
	f.mu.Unlock()
	return open()
}

func (f *fakeSource) Read(_ context.Context, now time.Time) (*gpu.Reading, error) {
	defer f.enter()()
	f.mu.Lock()
	f.reads++
	read := f.read
	f.mu.Unlock()
	return read(now)
}

func (f *fakeSource) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closes++
	return nil
}

func (f *fakeSource) counts() (opens, reads, closes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opens, f.reads, f.closes
}

func TestReportsEachReadingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		r := newRig(t, config(SourceAuto), f)
		synctest.Wait()
		assert.Len(t, r.metrics.AllMetrics(), 1, "the first at once")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		_, reads, _ := f.counts()
		assert.Equal(t, 4, reads)
		assert.Len(t, r.metrics.AllMetrics(), reads)
		r.stop()
	})
}

func TestDownIsAGapNotOldValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		r := newRig(t, config(SourceAuto), f)
		synctest.Wait()
		lost := &gpu.Down{Condition: gpu.SourceLost, Err: errors.New("gone")}
		f.set(func() error { return &gpu.Down{Condition: gpu.SourceUnreachable, Err: errors.New("refused")} }, func(time.Time) (*gpu.Reading, error) { return nil, lost })
		time.Sleep(10 * time.Second)
		md := r.last()
		v, state := up(md)
		assert.Zero(t, v)
		assert.Equal(t, gpu.SourceLost, state)
		assert.Equal(t, 1, md.DataPointCount(), "nothing but dcgm.up")
		time.Sleep(60 * time.Second)
		_, state = up(r.last())
		assert.Equal(t, gpu.SourceUnreachable, state)

		f.set(func() error { return nil }, func(now time.Time) (*gpu.Reading, error) { return oneGPU(now), nil })
		time.Sleep(40 * time.Second)
		v, state = up(r.last())
		assert.Equal(t, 1.0, v)
		assert.Equal(t, gpu.SourceOK, state)
		r.stop()
		assert.Equal(t, []string{"StatusOK", "StatusRecoverableError", "StatusRecoverableError", "StatusOK"}, r.host.statuses())
		assert.Len(t, r.log.FilterMessageSnippet("cannot read GPUs").All(), 2, "once for each condition, not for each try")
		assert.EqualValues(t, 1, f.most.Load(), "calls never overlap")
	})
}

func TestBackoffGrowsToItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		var tried []time.Duration
		start := time.Now()
		f.set(func() error { tried = append(tried, time.Since(start)); return errors.New("no") }, nil)
		r := newRig(t, config(SourceAuto), f)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		r.stop()
		s := time.Second
		assert.Equal(t, []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s, 61 * s, 91 * s}, tried)
	})
}

func TestAHungCallIsLeftAloneAndNothingElseStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		r := newRig(t, config(SourceAuto), f)
		synctest.Wait()
		release := make(chan struct{})
		f.set(nil, func(now time.Time) (*gpu.Reading, error) { <-release; return oneGPU(now), nil })
		time.Sleep(25 * time.Second) // a tick at 10 s, the deadline at 20 s, a second of grace
		v, state := up(r.last())
		assert.Zero(t, v)
		assert.Equal(t, gpu.SourceHung, state)
		opens, reads, closes := f.counts()
		assert.Equal(t, []int{1, 2, 1}, []int{opens, reads, closes}, "Close was called beside the call, to end it")

		n := len(r.metrics.AllMetrics())
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		again, readsNow, _ := f.counts()
		assert.Equal(t, []int{opens, reads}, []int{again, readsNow}, "no other call while one is stuck")
		assert.Len(t, r.metrics.AllMetrics(), n+30, "and every tick says so without waiting")

		f.set(nil, func(now time.Time) (*gpu.Reading, error) { return oneGPU(now), nil })
		close(release)
		time.Sleep(40 * time.Second)
		v, _ = up(r.last())
		assert.Equal(t, 1.0, v)
		r.stop()
		assert.EqualValues(t, 1, f.most.Load())
	})
}

func TestASlowReadDelaysItsReportOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := config(SourceAuto)
		cfg.CollectionInterval = 2 * time.Second
		r := newRig(t, cfg, f)
		synctest.Wait()
		f.set(nil, func(now time.Time) (*gpu.Reading, error) { time.Sleep(5 * time.Second); return oneGPU(now), nil })
		time.Sleep(20 * time.Second)
		synctest.Wait()
		for _, md := range r.metrics.AllMetrics() {
			v, _ := up(md)
			assert.Equal(t, 1.0, v, "a source that takes its time is not down")
			assert.Greater(t, md.DataPointCount(), 3, "and is not said to be up without a reading")
		}
		got := attrCounts(t, r, "otelcol_receiver_dcgm_reads", "outcome")
		assert.Positive(t, got["skipped"])
		r.stop()
	})
}

func TestAutoLetsGoOfWhatItDoesNotTake(t *testing.T) {
	refused, hung, good := newFake(), newFake(), newFake()
	refused.set(func() error { return &gpu.Down{Condition: gpu.SourceNoLibrary, Err: errors.New("no library")} }, nil)
	a := &autoSource{candidates: []gpu.Source{refused, good, hung}}
	require.NoError(t, a.Open(context.Background()))
	_, _, closes := refused.counts()
	assert.Equal(t, 1, closes)
	in, err := a.Read(context.Background(), time.Now())
	require.NoError(t, err)
	assert.Equal(t, []gpu.Note{{Key: "source_fake", Message: "reading GPUs through fake", Detail: "fake: no library"}}, in.Notes)
	require.NoError(t, a.Close())
	_, _, closes = good.counts()
	assert.Equal(t, 1, closes)
	opens, _, _ := hung.counts()
	assert.Zero(t, opens, "those behind the first that works are left alone")

	for _, f := range []*fakeSource{refused, good, hung} {
		f.set(func() error { return &gpu.Down{Condition: gpu.SourceNotBuilt, Err: errors.New("not built")} }, nil)
	}
	hung.set(func() error { return &gpu.Down{Condition: gpu.SourceUnreachable, Err: errors.New("nobody there")} }, nil)
	err = a.Open(context.Background())
	assert.Equal(t, gpu.SourceUnreachable, gpu.ConditionOf(err), "the condition that tells most")
	assert.ErrorContains(t, err, "not built")
	assert.ErrorContains(t, err, "nobody there")
}

func TestShutdownDoesNotWaitForAHungCallForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		release := make(chan struct{})
		f.set(func() error { <-release; return nil }, nil)
		r := newRig(t, config(SourceAuto), f)
		synctest.Wait()
		start := time.Now()
		r.stop()
		assert.Less(t, time.Since(start), 15*time.Second)
		close(release)
		synctest.Wait()
	})
}

func TestShutdownHonoursItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		release := make(chan struct{})
		f.set(func() error { <-release; return nil }, nil)
		r := newRig(t, config(SourceAuto), f)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		require.ErrorIs(t, r.receiver.Shutdown(ctx), context.DeadlineExceeded)
		close(release)
		time.Sleep(time.Minute)
		require.NoError(t, r.tel.Shutdown(context.Background()))
	})
}

func TestTwoHoursOfRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		r := newRig(t, config(SourceAuto), f)
		down := &gpu.Down{Condition: gpu.SourceLost, Err: errors.New("restarted")}
		for range 240 {
			f.set(nil, func(now time.Time) (*gpu.Reading, error) {
				f.set(nil, func(now time.Time) (*gpu.Reading, error) { return oneGPU(now), nil })
				return nil, down
			})
			time.Sleep(30 * time.Second)
			synctest.Wait()
		}
		opens, _, closes := f.counts()
		assert.Equal(t, 241, opens)
		assert.Equal(t, opens-1, closes)
		v, _ := up(r.last())
		assert.Equal(t, 1.0, v)
		r.stop()
	})
}

func TestShutdownWithoutStartAndTwice(t *testing.T) {
	f := newFake()
	r := newRig(t, config(SourceAuto), f)
	r.stop()
	require.NoError(t, r.receiver.Shutdown(context.Background()))
	recv, err := newReceiver(config(SourceAuto), receiverSettings(), func() {})
	require.NoError(t, err)
	require.NoError(t, recv.Shutdown(context.Background()))
}

// attrCounts are the values of a self-telemetry counter by one attribute.
func attrCounts(t *testing.T, r *rig, name, attr string) map[string]int64 {
	t.Helper()
	m, err := r.tel.GetMetric(name)
	require.NoError(t, err)
	out := map[string]int64{}
	for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints {
		v, _ := dp.Attributes.Value(attribute.Key(attr))
		out[v.AsString()] += dp.Value
	}
	return out
}

func TestSelfTelemetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		r := newRig(t, config(SourceAuto), f)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		f.set(nil, func(time.Time) (*gpu.Reading, error) { return nil, errors.New("no") })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		set := func(k, v string) attribute.Set { return attribute.NewSet(attribute.String(k, v)) }
		ignore := metricdatatest.IgnoreTimestamp()
		metadatatest.AssertEqualReceiverDcgmReads(t, r.tel, []metricdata.DataPoint[int64]{
			{Value: 2, Attributes: set("outcome", "ok")}, {Value: 1, Attributes: set("outcome", "failed")},
		}, ignore)
		metadatatest.AssertEqualReceiverDcgmValues(t, r.tel, []metricdata.DataPoint[int64]{
			{Value: 2, Attributes: set("reason", "used")}, {Value: 2, Attributes: set("reason", "notsupported")},
		}, ignore)
		metadatatest.AssertEqualReceiverDcgmDevices(t, r.tel, []metricdata.DataPoint[int64]{{Value: 1}}, ignore)
		metadatatest.AssertEqualReceiverDcgmConnections(t, r.tel, []metricdata.DataPoint[int64]{{Value: 1}}, ignore)
		r.stop()
	})
}

func TestXIDsAreLogRecordsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(nil, func(now time.Time) (*gpu.Reading, error) {
			in := oneGPU(now)
			in.Devices[0].Owners = []gpu.Owner{{Namespace: "ns", Pod: "vllm-0", Container: "vllm"}}
			in.XIDsAreChanges = true
			in.Events = []gpu.Event{{DeviceID: "GPU-1", At: now, XID: 79}, {DeviceID: "GPU-1", At: now, XID: 31}, {DeviceID: "GPU-9", At: now, XID: 4242}}
			return in, nil
		})
		r := newRig(t, config(SourceAuto), f)
		synctest.Wait()
		all := r.logs.AllLogs()
		require.Len(t, all, 1)
		require.Equal(t, 2, all[0].ResourceLogs().Len())
		res := all[0].ResourceLogs().At(0)
		pod, _ := res.Resource().Attributes().Get("k8s.pod.name")
		assert.Equal(t, "vllm-0", pod.Str())
		records := res.ScopeLogs().At(0).LogRecords()
		require.Equal(t, 2, records.Len())
		lr := records.At(0)
		assert.Equal(t, "nvidia.gpu.xid", lr.EventName())
		assert.Equal(t, "XID 79: GPU has fallen off the bus", lr.Body().Str())
		assert.Equal(t, "ERROR", lr.SeverityText())
		assert.Equal(t, "WARN", records.At(1).SeverityText())
		assert.Equal(t, map[string]any{"hw.id": "GPU-1", "hw.type": "gpu", "nvidia.gpu.xid": int64(79), "nvidia.gpu.xid.meaning": "GPU has fallen off the bus", "nvidia.gpu.xid.inferred": true}, lr.Attributes().AsRaw())
		unknown := all[0].ResourceLogs().At(1).ScopeLogs().At(0).LogRecords().At(0)
		assert.Equal(t, "XID 4242", unknown.Body().Str())
		r.stop()
	})
}
