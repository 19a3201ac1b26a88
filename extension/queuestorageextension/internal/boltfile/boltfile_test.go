package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// used are the options that file_storage opens its files with.
func used() *bbolt.Options {
	return &bbolt.Options{Timeout: time.Second, NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType}
}

// queue writes a file as a queue does: small notes, and large items that come and go.
func queue(t testing.TB, path string, seed uint64, steps, maxItem int) (left map[string][]byte) {
	t.Helper()
	o := used()
	o.FreelistType = bbolt.FreelistArrayType // the same file for the same seed
	db, err := bbolt.Open(path, 0o600, o)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(seed, 3))
	left = map[string][]byte{}
	first, next := 0, 0
	for range steps {
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("default"))
			if err != nil {
				return err
			}
			set := func(k string, v []byte) error {
				left[k] = v
				return b.Put([]byte(k), v)
			}
			if r.IntN(3) > 0 || first == next {
				if err := set(fmt.Sprint(next), bytes.Repeat([]byte{byte(next)}, r.IntN(maxItem))); err != nil {
					return err
				}
				next++
			} else {
				delete(left, fmt.Sprint(first))
				if err := b.Delete(fmt.Append(nil, first)); err != nil {
					return err
				}
				first++
			}
			return set("notes", fmt.Append(nil, first, next))
		}))
	}
	require.NoError(t, db.Close())
	return left
}

// contents are what bbolt reads, every byte of it. Then it goes on as a queue does, so that it uses what it thinks is free.
func contents(t testing.TB, path string) map[string][]byte {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, used())
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	out := map[string][]byte{}
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("default"))
		if err != nil {
			return err
		}
		return b.ForEach(func(k, v []byte) error {
			out[string(k)] = bytes.Clone(v)
			return nil
		})
	}))
	for i := range 8 {
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("default"))
			if i > 2 {
				key, want := fmt.Append(nil, i-2), bytes.Repeat([]byte{byte(i - 2)}, 20_000*(i-2))
				if !bytes.Equal(want, b.Get(key)) {
					return errors.New("what was written is not read")
				}
				if err := b.Delete(key); err != nil {
					return err
				}
			}
			return b.Put(fmt.Append(nil, i), bytes.Repeat([]byte{byte(i)}, 20_000*i))
		}))
	}
	return out
}

func TestSoundFilesAreSound(t *testing.T) {
	for _, size := range []int{1, 100, 20_000, 300_000} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprint(size, "/", seed), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "q")
				left := queue(t, path, seed, []int{1, 10, 200, 400, 30}[seed], size)
				require.NoError(t, Check(path))
				before, err := os.ReadFile(path)
				require.NoError(t, err)
				res, err := Repair(path)
				require.NoError(t, err)
				assert.Equal(t, Result{}, res)
				after, err := os.ReadFile(path)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(before, after), "it is left as it is")
				assert.Equal(t, left, contents(t, path))
			})
		}
	}
	t.Run("many keys", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "q")
		db, err := bbolt.Open(path, 0o600, used())
		require.NoError(t, err)
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			for _, name := range []string{"default"} {
				b, err := tx.CreateBucketIfNotExists([]byte(name))
				if err != nil {
					return err
				}
				for i := range 20_000 {
					if err := b.Put(fmt.Appendf(nil, "%08d", i), []byte("v")); err != nil {
						return err
					}
				}
			}
			return nil
		}))
		require.NoError(t, db.Close())
		require.NoError(t, Check(path))
	})
	t.Run("new", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "q")
		db, err := bbolt.Open(path, 0o600, used())
		require.NoError(t, err)
		require.NoError(t, db.Close())
		require.NoError(t, Check(path))
	})
	t.Run("empty", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "q")
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, Check(path))
	})
}

// damage is what a loss of power, or a bad disk, does to a file.
func damage(r *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	pages := len(b) / 4096
	switch r.IntN(7) {
	case 0: // cut off
		return b[:r.IntN(len(b))]
	case 1: // bytes
		for range 1 + r.IntN(20) {
			b[r.IntN(len(b))] = byte(r.Int())
		}
	case 2: // the head of a page
		at := r.IntN(pages) * 4096
		b[at+r.IntN(16)] = byte(r.IntN(8))
	case 3: // an element of a page
		at := r.IntN(pages)*4096 + 16 + r.IntN(64)
		b[at] ^= 1 << r.IntN(8)
	case 4: // a page that was never written
		at := r.IntN(pages) * 4096
		clear(b[at : at+4096])
	case 5: // a page that lies where another should
		copy(b[r.IntN(pages)*4096:], bytes.Clone(b[r.IntN(pages)*4096:][:4096]))
	case 6: // two bits in the tree
		for range 2 {
			at := r.IntN(pages) * 4096
			b[at+r.IntN(200)] ^= 1 << r.IntN(8)
		}
	}
	return b
}

// Whatever happens to a file, it is either good enough for bbolt, or set aside, and what is put in its place is good enough. A panic of bbolt's ends
// this process.
func TestDamagedFilesAreSetAside(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30)) // a tree that leads into itself would eat all
	dir := t.TempDir()
	damaged, saved := 0, 0
	rounds := 80
	if testing.Short() {
		rounds = 50
	}
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 4))
		path := filepath.Join(dir, fmt.Sprint(seed))
		queue(t, path, seed, 5+r.IntN(150), []int{50, 3000, 60_000}[r.IntN(3)])
		good, err := os.ReadFile(path)
		require.NoError(t, err)
		bad := damage(r, good)
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		res, err := Repair(path)
		require.NoError(t, err, "seed %d", seed)
		got := contents(t, path)
		if res.Faults == nil {
			continue
		}
		damaged++
		saved += res.Saved
		aside, err := os.ReadFile(path + Damaged)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(bad, aside), "seed %d: what was set aside is as it was found", seed)
		require.NoError(t, res.Unsaved)
		assert.Len(t, got, res.Saved, "seed %d", seed)
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.Remove(path+Damaged))
	}
	t.Logf("%d of %d files were damaged; %d values saved", damaged, rounds, saved)
	assert.Greater(t, damaged, rounds/8)
	assert.Greater(t, saved, damaged)
}

// What lies beside the damage is saved, to the byte.
func TestWhatIsReadableIsSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "q")
	left := queue(t, path, 1, 200, 20_000)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	// The page of one item's key.
	at := bytes.Index(b, append([]byte("77"), bytes.Repeat([]byte{77}, 8)...)) / 4096 * 4096
	require.Positive(t, at)
	for b[at+8] != leafFlag || b[at+9] != 0 { // the page's head
		at -= 4096
	}
	b[at+8] = 0x40
	require.NoError(t, os.WriteFile(path, b, 0o600))
	res, err := Repair(path)
	require.NoError(t, err)
	require.ErrorContains(t, res.Faults, fmt.Sprintf("page %d: is no part of a tree", at/4096))
	require.NoError(t, res.Unsaved)
	got := contents(t, path)
	assert.Len(t, got, res.Saved)
	assert.Less(t, res.Saved, len(left))
	assert.Greater(t, res.Saved, len(left)-8)
	for k, v := range got {
		assert.True(t, bytes.Equal(left[k], v), k)
	}
}

func TestAFileInUseIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "q")
	db, err := bbolt.Open(path, 0o600, used())
	require.NoError(t, err)
	_, err = Repair(path)
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, db.Close())
}

func TestNothingButARenameWhenNothingCanBeSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "q")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("no database"), 3000), 0o600))
	res, err := Repair(path)
	require.NoError(t, err)
	require.ErrorContains(t, res.Faults, "neither of its two heads is sound")
	assert.Zero(t, res.Saved)
	assert.FileExists(t, path+Damaged)
	assert.Empty(t, contents(t, path))
}

// The fuzzer chooses which bytes of a file are others.
func FuzzCheck(f *testing.F) {
	var files [][]byte
	for seed := range uint64(4) {
		path := filepath.Join(f.TempDir(), "q")
		queue(f, path, seed, 40, []int{30, 3000, 9000, 20}[seed])
		b, err := os.ReadFile(path)
		require.NoError(f, err)
		files = append(files, b)
	}
	f.Add(byte(1), uint32(2*4096+8), byte(1), uint32(3*4096+10), byte(2), uint32(1<<31))
	f.Fuzz(func(t *testing.T, which byte, at1 uint32, xor1 byte, at2 uint32, xor2 byte, length uint32) {
		b := bytes.Clone(files[int(which)%len(files)])
		b[int(at1)%len(b)] ^= xor1
		b[int(at2)%len(b)] ^= xor2
		path := filepath.Join(t.TempDir(), "q")
		require.NoError(t, os.WriteFile(path, b[:min(int(length), len(b))], 0o600))
		_, err := Repair(path)
		require.NoError(t, err)
		contents(t, path)
	})
}
