//go:build cgo && linux && !nodcgm

package dcgmlib

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

func TestLibraryMissing(t *testing.T) {
	// The linker cannot find it only if this process has not loaded it: ask for the symbols of one that lacks some.
	old := symbols
	defer func() { symbols = old }()
	symbols = append(slices.Clone(old), "dcgmNotThere")
	r := newRig(t, h100s(t))
	err := r.src.Open(context.Background())
	assert.Equal(t, gpu.SourceNoLibrary, gpu.ConditionOf(err))
	assert.ErrorContains(t, err, "libdcgm.so.4 lacks dcgmNotThere")
}

func TestEngineDownThenUp(t *testing.T) {
	r := newRig(t, h100s(t))
	r.world(0, "engine ", "engine down")
	for range 5 {
		err := r.src.Open(context.Background())
		require.Equal(t, gpu.SourceUnreachable, gpu.ConditionOf(err))
		require.ErrorContains(t, err, `cannot connect to "localhost:5555"`)
		require.NoError(t, r.src.Close())
	}
	r.world(1, "engine ", "engine up")
	r.open()
	want(t, 0.97, r.step(10), busy, "hw.gpu.utilization", gpu.AttrTask, "general")
}

func TestEngineRestart(t *testing.T) {
	r := newRig(t, h100s(t))
	r.open()
	r.step(10)
	before := r.step(20)
	r.world(30, "epoch ", "epoch 2")
	_, err := r.src.Read(context.Background(), r.now())
	require.Equal(t, gpu.SourceLost, gpu.ConditionOf(err))
	require.NoError(t, r.src.Close())
	r.open()
	after := r.step(40)
	counter := func(rep *gpu.Report) float64 {
		v, ok := value(t, rep, busy, "hw.gpu.io", gpu.AttrDirection, "transmit", gpu.AttrLink, "pcie")
		require.True(t, ok)
		return v
	}
	b, a := counter(before), counter(after)
	assert.GreaterOrEqual(t, a, b, "the counter goes on")
	assert.LessOrEqual(t, a-b, 1.2e9*10.5, "and counts nothing for the time without an engine")
	assert.Regexp(t, `handles:1$`, leftovers(t))
}

func TestTwoHoursOfRestartsLeakNothing(t *testing.T) {
	r := newRig(t, h100s(t))
	var first string
	for i := range 240 { // every 30 s
		s := float64(i * 30)
		r.world(s, "epoch ", fmt.Sprintf("epoch %d", i+1))
		if err := r.src.Open(context.Background()); err != nil {
			require.NoError(t, r.src.Close())
			r.open()
		}
		r.step(s + 10)
		left := leftovers(t)
		if first == "" {
			first = left
		}
		require.Equal(t, first, left, "after restart %d", i)
		r.world(s+20, "epoch ", fmt.Sprintf("epoch %d", i+1000))
		_, err := r.src.Read(context.Background(), r.now())
		require.Error(t, err)
		require.NoError(t, r.src.Close())
	}
}

func TestRebuildingLeaksNothing(t *testing.T) {
	r := newRig(t, h100s(t))
	r.open()
	r.step(10)
	first := leftovers(t)
	for i := range 50 {
		r.src.again = true
		r.step(float64(20 + 10*i))
		require.Equal(t, first, leftovers(t))
	}
}

func TestTwoSources(t *testing.T) {
	a := newRig(t, h100s(t))
	a.open()
	other := newRig(t, h100s(t), func(o *Options) { o.Address = "gpu-2:5555" })
	err := other.src.Open(context.Background())
	require.Equal(t, gpu.SourceConflict, gpu.ConditionOf(err), "another endpoint would silently read the first engine")

	b := newRig(t, h100s(t))
	b.open()
	alone := leftovers(t)
	want(t, 0.97, b.step(10), busy, "hw.gpu.utilization", gpu.AttrTask, "general")
	require.NoError(t, b.src.Close())
	assert.NotEqual(t, alone, leftovers(t), "its watches are gone")
	want(t, 0.97, a.step(20), busy, "hw.gpu.utilization", gpu.AttrTask, "general")

	b.open()
	a.world(30, "epoch ", "epoch 2")
	_, err = a.src.Read(context.Background(), a.now())
	require.Equal(t, gpu.SourceLost, gpu.ConditionOf(err))
	require.NoError(t, a.src.Close())
	a.open()
	want(t, 0.97, a.step(35), busy, "hw.gpu.utilization", gpu.AttrTask, "general")
	b.text, b.at = a.text, a.at
	_, err = b.src.Read(context.Background(), b.now())
	require.Equal(t, gpu.SourceLost, gpu.ConditionOf(err), "the other one notices, and does not go on with groups of the old connection")
	require.NoError(t, b.src.Close())
	b.open()
	want(t, 0.97, a.step(40), busy, "hw.gpu.utilization", gpu.AttrTask, "general")
	b.text = a.text
	want(t, 0.97, b.step(40), busy, "hw.gpu.utilization", gpu.AttrTask, "general")
}

func TestCloseEndsAHungCall(t *testing.T) {
	r := newRig(t, h100s(t))
	r.open()
	r.world(10, "slow ", "slow dcgmEntitiesGetLatestValues 600000")
	done := make(chan error, 1)
	go func() {
		_, err := r.src.Read(context.Background(), r.now())
		done <- err
	}()
	require.Eventually(t, func() bool { return r.src.busy.Load() > 0 }, 10*time.Second, time.Millisecond)
	require.NoError(t, r.src.Close())
	assert.Equal(t, gpu.SourceLost, gpu.ConditionOf(<-done))
	r.world(20, "slow ", "# slow")
	r.open()
	want(t, 0.97, r.step(30), busy, "hw.gpu.utilization", gpu.AttrTask, "general")
}

func TestCloseEndsAHungCallThoughTheConnectionIsShared(t *testing.T) {
	a, b := newRig(t, h100s(t)), newRig(t, h100s(t))
	a.open()
	b.open()
	a.world(10, "slow ", "slow dcgmEntitiesGetLatestValues 600000")
	done := make(chan error, 1)
	go func() {
		_, err := a.src.Read(context.Background(), a.now())
		done <- err
	}()
	require.Eventually(t, func() bool { return a.src.busy.Load() > 0 }, 10*time.Second, time.Millisecond)
	require.NoError(t, a.src.Close())
	assert.Equal(t, gpu.SourceLost, gpu.ConditionOf(<-done))
	b.world(20, "slow ", "# slow")
	_, err := b.src.Read(context.Background(), b.now())
	assert.Equal(t, gpu.SourceLost, gpu.ConditionOf(err))
	require.NoError(t, b.src.Close())
}

func TestEmbeddedAndUnixSocket(t *testing.T) {
	r := newRig(t, h100s(t), func(o *Options) { o.Embedded = true })
	r.open()
	want(t, 0.97, r.step(10), busy, "hw.gpu.utilization", gpu.AttrTask, "general")
	require.NoError(t, r.src.Close())
	r = newRig(t, h100s(t), func(o *Options) { o.Address, o.UnixSocket = "/run/nv.sock", true })
	r.open()
	assert.Equal(t, "/run/nv.sock", r.read().Endpoint)
}

func TestOpenHonoursACancelledContext(t *testing.T) {
	r := newRig(t, h100s(t))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, r.src.Open(ctx), context.Canceled)
}
