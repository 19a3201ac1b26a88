package boltfile

import (
	"errors"
	"io"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// ErrInUse is that another process has the file open.
var ErrInUse = errors.New("another process uses the file")

const (
	// Damaged is what a damaged file is called afterwards, behind its name. One of an earlier time is replaced.
	Damaged = ".damaged"
	// New is what the file in its place is called until it is complete.
	New = ".new"
)

// Result is what was done to a file.
type Result struct {
	Faults error // what is wrong with it; nil when it is sound, and then nothing was done
	Saved  int   // values that are in the new file
	// Unsaved is why nothing, or not all that is readable, is in the new file; there may be none then.
	Unsaved error
}

// Repair checks a file. A damaged one is renamed, and what can be read of it is put into a new one of its name. Its error is that nothing could be
// done: ErrInUse, or one of the file system.
func Repair(path string) (Result, error) {
	// For its lock: what another process is writing looks damaged.
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: 200 * time.Millisecond})
	switch {
	case err == nil:
		defer db.Close()
	case errors.Is(err, bbolt.ErrTimeout): //nolint:staticcheck // the newer name is in a package of its own
		return Result{}, ErrInUse
	}
	res := Result{Faults: Check(path)}
	if res.Faults == nil {
		return res, nil
	}
	fresh := path + New
	_ = os.Remove(fresh) // of an attempt that was broken off
	res.Saved, res.Unsaved = save(path, fresh)
	if err := os.Rename(path, path+Damaged); err != nil {
		return res, err
	}
	if res.Unsaved != nil {
		res.Saved = 0
		_ = os.Remove(fresh)
		return res, nil
	}
	return res, os.Rename(fresh, path)
}

// save puts what is readable into a new file.
func save(path, fresh string) (saved int, err error) {
	type value struct {
		bucket, key []byte
		at          place
	}
	var all []value
	use := func(r io.ReaderAt) error {
		db, err := bbolt.Open(fresh, 0o600, &bbolt.Options{NoFreelistSync: true})
		if err != nil {
			return err
		}
		for len(all) > 0 && err == nil {
			err = db.Update(func(tx *bbolt.Tx) error {
				for size := 0; len(all) > 0 && size < 4<<20; all = all[1:] {
					b, err := tx.CreateBucketIfNotExists(all[0].bucket)
					if err != nil {
						return err
					}
					v := make([]byte, all[0].at.size)
					if _, err := r.ReadAt(v, all[0].at.offset); err != nil {
						return err
					}
					if err := b.Put(all[0].key, v); err != nil {
						return err
					}
					size += len(v)
					saved++
				}
				return nil
			})
		}
		return errors.Join(err, db.Close())
	}
	var failed error
	_ = walk(path, func(bucket, key []byte, at place) {
		all = append(all, value{bucket, key, at})
	}, func(r io.ReaderAt) error {
		failed = use(r)
		return nil
	})
	return saved, failed
}
