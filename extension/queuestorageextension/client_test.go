package queuestorageextension

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

func quiet() events {
	return events{failing: func(error) {}, written: func() {}, refused: func(context.Context) {}}
}

// Whatever is put off, a reader sees what a storage that can always be written would have; and once it can be written, so does the disk.
func TestPendingLiesOverTheStorage(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 2))
				d, model := newDisk(), newDisk()
				c, m := newClient(diskClient{d}, 1<<40, quiet()), diskClient{model}
				for step := range 400 {
					if r.IntN(20) == 0 {
						d.setFull(r.IntN(2) == 0)
					}
					if r.IntN(20) == 0 {
						time.Sleep(retryInterval)
					}
					var ops, same []*storage.Operation
					for range 1 + r.IntN(4) {
						key := fmt.Sprint(r.IntN(8))
						value := fmt.Appendf(nil, "%d", step)
						op := [...]*storage.Operation{storage.GetOperation(key), storage.SetOperation(key, value), storage.DeleteOperation(key)}[r.IntN(3)]
						twin := *op
						ops, same = append(ops, op), append(same, &twin)
					}
					require.NoError(t, c.Batch(t.Context(), ops...))
					require.NoError(t, m.Batch(t.Context(), same...))
					for i, op := range ops {
						require.Equal(t, same[i].Value, op.Value, "step %d: %v", step, op)
					}
					c.mu.Lock()
					var held int64
					for _, e := range c.pending {
						held += int64(len(e.value))
					}
					assert.Equal(t, held, c.held)
					c.mu.Unlock()
				}
				d.setFull(false)
				require.NoError(t, c.Close(t.Context()))
				assert.Equal(t, model.data, d.data)
			})
		})
	}
}

func TestDataThatNeverReachedTheDiskLeavesNothingToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.setFull(true)
		c := newClient(diskClient{d}, 1<<20, quiet())
		for i := range 1000 {
			key := fmt.Sprint(i)
			require.NoError(t, c.Batch(t.Context(), storage.SetOperation("notes", []byte{1}), storage.SetOperation(key, make([]byte, 1000))))
			require.NoError(t, c.Batch(t.Context(), storage.SetOperation("notes", []byte{2}), storage.DeleteOperation(key)))
		}
		assert.Len(t, c.pending, 1)
		assert.Equal(t, int64(1), c.state().held)
		d.setFull(false)
		require.NoError(t, c.Close(t.Context()))
	})
}

func TestCloseSaysWhatIsLost(t *testing.T) {
	d := newDisk()
	c := newClient(diskClient{d}, 1<<20, quiet())
	require.NoError(t, c.Set(t.Context(), "notes", []byte("old")))
	d.setFull(true)
	require.NoError(t, c.Batch(t.Context(), storage.SetOperation("notes", []byte("new")), storage.SetOperation("1", []byte("four"))))
	err := c.Close(t.Context())
	require.ErrorContains(t, err, "1 items of 4 bytes that only memory had are lost")
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.Equal(t, 1, d.closed)
	assert.Equal(t, "old", string(d.has("notes")))
}

func TestCloseWithNothingLostIsNoError(t *testing.T) {
	d := newDisk()
	c := newClient(diskClient{d}, 1<<20, quiet())
	require.NoError(t, c.Batch(t.Context(), storage.SetOperation("notes", []byte("old")), storage.SetOperation("1", []byte("four"))))
	d.setFull(true)
	require.NoError(t, c.Batch(t.Context(), storage.SetOperation("notes", []byte("new")), storage.DeleteOperation("1")))
	require.NoError(t, c.Close(t.Context()))
	assert.Equal(t, "four", string(d.has("1")), "and is sent again")
}

// What cannot be read is an error, as with any storage, and changes nothing.
func TestAStorageThatCannotBeRead(t *testing.T) {
	d := newDisk()
	c := newClient(diskClient{d}, 1<<20, quiet())
	require.NoError(t, c.Set(t.Context(), "1", []byte("one")))
	d.broken = true
	require.ErrorIs(t, c.Batch(t.Context(), storage.SetOperation("notes", nil), storage.GetOperation("1")), syscall.EIO)
	_, err := c.Get(t.Context(), "1")
	require.ErrorIs(t, err, syscall.EIO)
	assert.Empty(t, c.pending)
	d.broken = false
	v, err := c.Get(t.Context(), "1")
	require.NoError(t, err)
	assert.Equal(t, "one", string(v))
	require.NoError(t, c.Close(t.Context()))
}

// While nothing is wrong, a batch is one transaction of the storage and nothing else.
func BenchmarkBatch(b *testing.B) {
	value := make([]byte, 64<<10)
	for name, c := range map[string]storage.Client{"alone": diskClient{newDisk()}, "behind ours": newClient(diskClient{newDisk()}, 1<<20, quiet())} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Batch(b.Context(), storage.SetOperation("notes", value[:64]), storage.SetOperation("1", value)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
