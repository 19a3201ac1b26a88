package queuestorageextension

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// destination is where an exporter sends to. While it is away, exporters try again.
type destination struct {
	mu    sync.Mutex
	away  bool
	times map[string]int // each span's name came so often
}

func newDestination() *destination { return &destination{times: map[string]int{}} }

func (d *destination) setAway(away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = away
}

func (d *destination) push(_ context.Context, td ptrace.Traces) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		return errors.New("away")
	}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				d.times[s.Name()]++
			}
		}
	}
	return nil
}

// missing are those that did not come, twice those that came more than once.
func (d *destination) missing(names []string) (missing, twice []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range names {
		switch {
		case d.times[n] == 0:
			missing = append(missing, n)
		case d.times[n] > 1:
			twice = append(twice, n)
		}
	}
	return missing, twice
}

// sender is an exporter with a queue in a storage, and the names of what it took.
type sender struct {
	exporter.Traces
	taken []string
	next  int
}

const kib = 1 << 10

func newSender(t testing.TB, id component.ID, h component.Host, to *destination, queueSize int64) *sender {
	t.Helper()
	cfg := exporterhelper.NewDefaultQueueConfig()
	cfg.StorageID, cfg.QueueSize, cfg.NumConsumers = &id, queueSize, 3
	cfg.Sizer = exporterhelper.RequestSizerTypeBytes
	cfg.Batch = configoptional.None[exporterhelper.BatchConfig]()
	retry := configretry.NewDefaultBackOffConfig()
	retry.InitialInterval, retry.MaxInterval, retry.MaxElapsedTime = 100*time.Millisecond, time.Second, 0
	e, err := exporterhelper.NewTraces(t.Context(), exportertest.NewNopSettings(component.MustNewType("sender")), struct{}{}, to.push,
		exporterhelper.WithQueue(configoptional.Some(cfg)), exporterhelper.WithRetry(retry))
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), h))
	return &sender{Traces: e}
}

// offer offers a span of so many bytes, and tells whether it was taken.
func (s *sender) offer(bytes int) bool {
	s.next++
	name := fmt.Sprintf("%d", s.next)
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName(name)
	span.Attributes().PutStr("filler", strings.Repeat("x", bytes))
	if s.ConsumeTraces(context.Background(), td) != nil {
		return false
	}
	s.taken = append(s.taken, name)
	return true
}

// What our client is there for: the queue on a bare store empties itself into nothing when the disk is full. Once this fails, exporterhelper
// keeps what it cannot note, and this extension may not be needed any more.
func TestTheQueueAloneLosesData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, to := newDisk(), newDestination()
		to.setAway(true)
		s := newSender(t, diskID, newHost(map[component.ID]component.Component{diskID: d}), to, 1<<20)
		for range 50 {
			require.True(t, s.offer(kib))
		}
		synctest.Wait() // three are being sent, again and again
		d.setFull(true)
		to.setAway(false)
		time.Sleep(time.Minute)
		missing, _ := to.missing(s.taken)
		assert.Len(t, missing, 47, "all but the three that were being sent")
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

// A queue that holds data when the disk fills sends it, each once.
func TestAFullDiskLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, to := newDisk(), newDestination()
		_, h := started(t, d, nopSettings(), nil)
		to.setAway(true)
		s := newSender(t, ourID, h, to, 1<<20)
		for range 50 {
			require.True(t, s.offer(kib))
		}
		synctest.Wait() // three are being sent, again and again
		d.setFull(true)
		to.setAway(false)
		time.Sleep(time.Minute)
		missing, twice := to.missing(s.taken)
		assert.Empty(t, missing)
		assert.Empty(t, twice)
		// It goes on while the disk is full, since what it takes is sent at once.
		for range 50 {
			require.True(t, s.offer(kib))
			time.Sleep(10 * time.Millisecond)
		}
		missing, twice = to.missing(s.taken)
		assert.Empty(t, missing)
		assert.Empty(t, twice)
		d.setFull(false)
		time.Sleep(2 * retryInterval)
		require.NoError(t, s.Shutdown(t.Context()))
		assert.Len(t, d.data, 1, "only the queue's notes are left")
	})
}

// Sender, disk and destination in every order: what was taken comes once, and nothing else is left.
func TestAnyOrderOfFaults(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 1))
				d, to := newDisk(), newDestination()
				_, h := started(t, d, nopSettings(), func(c *Config) { c.MaxMemoryMiB = 1 })
				s := newSender(t, ourID, h, to, 4<<20)
				for range 300 {
					switch r.IntN(12) {
					case 0:
						d.setFull(r.IntN(2) == 0)
					case 1:
						to.setAway(r.IntN(2) == 0)
					case 2:
						time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
					default:
						s.offer(r.IntN(100 * kib))
					}
				}
				d.setFull(false)
				to.setAway(false)
				time.Sleep(time.Minute)
				missing, twice := to.missing(s.taken)
				assert.Empty(t, missing)
				assert.Empty(t, twice)
				assert.Len(t, to.times, len(s.taken), "what was refused did not come")
				require.NotEmpty(t, s.taken)
				require.NoError(t, s.Shutdown(t.Context()))
				assert.Len(t, d.data, 1, "only the queue's notes are left")
			})
		})
	}
}

// A process that is killed while the disk is full, and starts again while it is still full, loses what was in memory alone.
func TestKilledWhileTheDiskIsFull(t *testing.T) {
	for _, stillFull := range []bool{true, false} {
		t.Run(fmt.Sprintf("still full %t", stillFull), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, to := newDisk(), newDestination()
				_, h := started(t, d, nopSettings(), nil)
				to.setAway(true)
				s := newSender(t, ourID, h, to, 1<<20)
				for range 20 {
					require.True(t, s.offer(kib))
				}
				onDisk := len(s.taken)
				d.setFull(true)
				require.True(t, s.offer(kib)) // in memory
				time.Sleep(10 * time.Second)

				left := d.copied()
				left.setFull(stillFull)
				_, h2 := started(t, left, nopSettings(), nil)
				to2 := newDestination()
				s2 := newSender(t, ourID, h2, to2, 1<<20)
				time.Sleep(time.Minute)
				missing, twice := to2.missing(s.taken[:onDisk])
				assert.Empty(t, missing)
				assert.Empty(t, twice)
				require.NoError(t, s2.Shutdown(t.Context()))

				d.setFull(false)
				to.setAway(false)
				require.NoError(t, s.Shutdown(t.Context()))
			})
		})
	}
}

// Killed a second time, still full: what the first start moved was moved in memory, and is still where it was.
func TestKilledTwiceWhileTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, to := newDisk(), newDestination()
		to.setAway(true)
		var taken []string
		for round := range 4 {
			_, h := started(t, d, nopSettings(), nil)
			s := newSender(t, ourID, h, to, 1<<20)
			if round == 0 {
				for range 20 {
					require.True(t, s.offer(kib))
				}
				taken = s.taken
			}
			if round == 3 {
				to.setAway(false)
			}
			time.Sleep(time.Minute)
			d.setFull(true)
			next := d.copied()
			d.setFull(false) // so that the one that was killed, and still runs here, ends
			require.NoError(t, s.Shutdown(t.Context()))
			d = next
		}
		missing, twice := to.missing(taken)
		assert.Empty(t, missing)
		assert.Empty(t, twice)
	})
}

// What a process was sending when it was killed, the next one deletes and adds again. With room for the one and not for the other, it is still there
// for a third.
func TestMovedAtTheStartOrNotAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, to := newDisk(), newDestination()
		to.setAway(true)
		_, h := started(t, d, nopSettings(), nil)
		s := newSender(t, ourID, h, to, 1<<20)
		for range 5 {
			require.True(t, s.offer(kib))
		}
		synctest.Wait() // three are being sent
		second := d.copied()
		second.noSets = true
		_, h2 := started(t, second, nopSettings(), nil)
		s2 := newSender(t, ourID, h2, to, 1<<20)
		synctest.Wait()
		third := second.copied()
		third.noSets = false
		_, h3 := started(t, third, nopSettings(), nil)
		to3 := newDestination()
		s3 := newSender(t, ourID, h3, to3, 1<<20)
		time.Sleep(time.Minute)
		missing, twice := to3.missing(s.taken)
		assert.Empty(t, missing)
		assert.Empty(t, twice)
		second.mu.Lock()
		second.noSets = false
		second.mu.Unlock()
		for _, e := range []*sender{s, s2, s3} {
			require.NoError(t, e.Shutdown(t.Context()))
		}
	})
}

// What is refused counts as waiting until the queue has run empty. A queue that was idle when the disk filled takes data when it is free again.
func TestAnIdleQueueIsNotFullForEver(t *testing.T) {
	for _, ours := range []bool{false, true} {
		t.Run(fmt.Sprintf("with our storage %t", ours), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, to := newDisk(), newDestination()
				_, h := started(t, d, nopSettings(), func(c *Config) { c.MaxMemoryMiB = 1 })
				id := diskID
				if ours {
					id = ourID
				}
				const batch = 1100 * kib // more than may wait in memory
				s := newSender(t, id, h, to, 20*batch)
				require.True(t, s.offer(batch))
				time.Sleep(time.Second)
				d.setFull(true)
				for range 100 {
					s.offer(batch)
				}
				d.setFull(false)
				time.Sleep(time.Minute)
				assert.Equal(t, ours, s.offer(batch), "false is why our client takes a batch that is alone, however large")
				time.Sleep(time.Minute)
				missing, _ := to.missing(s.taken)
				assert.Empty(t, missing)
				require.NoError(t, s.Shutdown(t.Context()))
			})
		})
	}
}

// The real storage, at its max_size.
func TestFileStorageThatIsFull(t *testing.T) {
	f := filestorage.NewFactory()
	cfg := f.CreateDefaultConfig().(*filestorage.Config)
	cfg.Directory, cfg.MaxSize = t.TempDir(), 1<<20
	cfg.Compaction.Directory = cfg.Directory
	require.NoError(t, cfg.Validate())
	store, err := f.Create(t.Context(), extensiontest.NewNopSettings(f.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, store.Start(t.Context(), newHost(nil)))
	defer func() { require.NoError(t, store.Shutdown(context.Background())) }()
	_, h := started(t, store, nopSettings(), func(c *Config) { c.MaxMemoryMiB = 1 })
	to := newDestination()
	to.setAway(true)
	s := newSender(t, ourID, h, to, 64<<20)
	refused := 0
	for range 200 {
		if !s.offer(20 * kib) {
			refused++
		}
	}
	assert.Greater(t, refused, 50)
	assert.Greater(t, len(s.taken), 50)
	to.setAway(false)
	require.Eventually(t, func() bool { missing, _ := to.missing(s.taken); return len(missing) == 0 }, 30*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool { return s.offer(20 * kib) }, 30*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool { missing, _ := to.missing(s.taken); return len(missing) == 0 }, 30*time.Second, 20*time.Millisecond)
	_, twice := to.missing(s.taken)
	assert.Empty(t, twice)
	require.NoError(t, s.Shutdown(t.Context()))
}
