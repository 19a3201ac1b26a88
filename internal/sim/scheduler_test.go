package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPrefixCache(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second func(*Call)
		wantHit       int
	}{
		{"the same prompt again, all whole blocks", func(c *Call) { c.PromptKey = 9 }, func(c *Call) { c.PromptKey = 9 }, 96},
		{"another prompt", func(*Call) {}, func(*Call) {}, 0},
		{"the team's prefix", func(c *Call) { c.SharedPrefix = 50 }, func(c *Call) { c.SharedPrefix = 50 }, 48},
		{"another team", func(c *Call) { c.SharedPrefix = 50 }, func(c *Call) { c.SharedPrefix, c.Team = 50, "other" }, 0},
		{
			"a multiple of the block: the last token is computed", func(c *Call) { c.PromptKey, c.Prompts = 9, []int{96} },
			func(c *Call) { c.PromptKey, c.Prompts = 9, []int{96} }, 80,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := New(only(nil), start)
			require.NoError(t, err)
			for _, change := range []func(*Call){tt.first, tt.second} {
				c := plain(w.engines[0].Model, 100, 3)
				change(&c)
				_, err = w.Submit(c)
				require.NoError(t, err)
				w.Advance(w.Now() + 10*time.Second)
			}
			truths := w.Drain().Truths
			require.Len(t, truths, 2)
			assert.Zero(t, truths[0].CachedTokens)
			assert.Equal(t, tt.wantHit, truths[1].CachedTokens)
		})
	}
}

func TestCacheEvictsTheLeastRecentlyUsed(t *testing.T) {
	c := newKVCache(4)
	put := func(key uint64) []*block {
		h := c.allocate(nil, 1)
		c.remember(h, []uint64{key})
		c.release(h)
		return h
	}
	for k := uint64(1); k <= 4; k++ {
		put(k)
	}
	c.release(c.share(nil, []uint64{1})) // used again: now the last to go
	put(5)
	hits := func(k uint64) int { n, _ := c.lookup([]uint64{k}); return n }
	assert.Equal(t, []int{1, 0, 1, 1, 1}, []int{hits(1), hits(2), hits(3), hits(4), hits(5)})
	assert.Equal(t, 4, c.free)
	assert.Zero(t, c.usage())
}

func TestSchedulerKeepsItsLimits(t *testing.T) {
	cfg := only(func(c *Config) {
		c.Rate, c.Mix = 40, DefaultConfig().Mix
		e := &c.Engines[0]
		e.MaxNumSeqs, e.MaxBatchedTokens, e.MaxModelLen, e.Blocks = 16, 512, 2048, 400
		e.Prompt = Lengths{Median: 300, Sigma: 1, Min: 1, Max: 1800}
	})
	w, err := New(cfg, start)
	require.NoError(t, err)
	e := w.engines[0]
	chunked := 0
	for range 6000 {
		w.Advance(w.Next())
		require.LessOrEqual(t, len(e.running), e.MaxNumSeqs)
		tokens := 0
		for _, x := range e.step.batch {
			tokens += x.tokens
		}
		require.LessOrEqual(t, tokens, e.MaxBatchedTokens)
		held := map[*block]bool{}
		for _, s := range e.running {
			if s.computed > 0 && s.computed < s.prompt {
				chunked++
			}
			for _, b := range s.held {
				held[b] = true
				if b.refs < 1 {
					t.Fatal("a held block has no reference")
				}
			}
		}
		require.Equal(t, e.Blocks, e.cache.free+len(held), "a block is held or free")
	}
	assert.Positive(t, chunked, "long prompts are computed in chunks")
	assert.Positive(t, w.totals.Preemptions, "the blocks were too few")
}

func TestStepTimeFollowsTheFormula(t *testing.T) {
	cfg := only(func(c *Config) {
		c.Engines[0].StepJitter, c.Engines[0].PrefillRate = 0, 10000
		c.Engines[0].StepBase, c.Engines[0].StepPerSequence = 10*time.Millisecond, time.Millisecond
	})
	w, err := New(cfg, start)
	require.NoError(t, err)
	_, err = w.Submit(plain(w.engines[0].Model, 1000, 11))
	require.NoError(t, err)
	w.Advance(time.Minute)
	q := w.Drain().Truths[0].Sequences[0]
	// One step for the prompt: 10 ms + 1000 ÷ 10000 s, less the moment between QUEUED and SCHEDULED; ten of 10 ms + 1 sequence.
	assert.Equal(t, 110*time.Millisecond, time.Duration(q.Queue+q.Prefill))
	assert.Equal(t, 110*time.Millisecond, time.Duration(q.Decode))
}

func TestWaitingForTheRunningStepIsAdmissionNotQueue(t *testing.T) {
	cfg := only(func(c *Config) {
		c.Engines[0].StepJitter, c.Engines[0].PrefillRate, c.Engines[0].MaxModelLen = 0, 1000, 8192
	})
	w, err := New(cfg, start)
	require.NoError(t, err)
	_, err = w.Submit(plain(w.engines[0].Model, 3000, 5)) // a step of 3 s
	require.NoError(t, err)
	w.Advance(time.Second)
	_, err = w.Submit(plain(w.engines[0].Model, 10, 5))
	require.NoError(t, err)
	w.Advance(time.Minute)
	for _, x := range w.Drain().Truths {
		if x.InputTokens == 10 {
			q := x.Sequences[0]
			assert.Greater(t, q.Admission.Float(), 1.9)
			assert.Less(t, q.Queue.Float(), 0.001)
			return
		}
	}
	t.Fatal("the short call is missing")
}

func TestGPUFollowsTheLoad(t *testing.T) {
	view := func(calls func(*World)) GPU {
		w, err := New(only(nil), start)
		require.NoError(t, err)
		calls(w)
		w.Advance(5 * time.Second)
		return w.GPUs()[0]
	}
	idle := view(func(*World) {})
	decode := view(func(w *World) {
		for range 64 {
			_, err := w.Submit(plain(w.engines[0].Model, 10, 1500))
			require.NoError(t, err)
		}
	})
	prefill := view(func(w *World) {
		for range 400 {
			_, err := w.Submit(plain(w.engines[0].Model, 6000, 1))
			require.NoError(t, err)
		}
	})
	assert.Zero(t, idle.Utilization)
	assert.Less(t, idle.SMClock, decode.SMClock)
	assert.InDelta(t, 1, decode.Utilization, 0.02)
	assert.InDelta(t, 1, prefill.Utilization, 0.02)
	assert.Greater(t, prefill.Tensor, 3*decode.Tensor, "prefill is bound by compute")
	assert.Greater(t, decode.DRAM, 1.5*prefill.DRAM, "decode is bound by memory")
	assert.Greater(t, prefill.Power, decode.Power)
	assert.Greater(t, decode.Power, 2*idle.Power)
	assert.Equal(t, idle.MemoryUsed, prefill.MemoryUsed, "vLLM takes its memory at the start")
	for _, g := range []GPU{idle, decode, prefill} {
		assert.LessOrEqual(t, g.Power, g.PowerLimit)
		assert.InDelta(t, g.Energy, 5*g.Power, 5*g.PowerLimit)
	}
}
