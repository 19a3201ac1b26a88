package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// Of bbolt's format, version 2. Integers are in the byte order of the machine, which for all that Go's bbolt is run on is little endian.
const (
	magic, version = 0xED0CDAED, 2
	headerSize     = 16 // of a page: id u64, flags u16, count u16, overflow u32
	elementSize    = 16 // of a branch: pos u32, ksize u32, page u64; of a leaf: flags u32, pos u32, ksize u32, vsize u32
	metaSize       = 64
	branchFlag     = 0x01
	leafFlag       = 0x02
	freelistFlag   = 0x10
	bucketFlag     = 0x01 // of a leaf's element: its value is a bucket
	bucketSize     = 16   // root page u64, sequence u64; with root page 0 a leaf page follows
	maxDepth       = 64   // of the tree of pages; a real one has four or five levels
	maxKeySize     = 32768
	noFreelist     = ^uint64(0)
	theBucket      = "default" // the only one that file_storage has
)

// place is where a value lies in the file.
type place struct {
	offset int64
	size   int
}

// file is a file that is read through.
type file struct {
	r        io.ReaderAt
	size     int64
	pageSize int64
	end      uint64 // the first page id that was never used
	free     uint64 // the page that lists free ones, or noFreelist
	seen     map[uint64]bool
	// value is told of each value of each bucket below the root, in the order of the keys.
	value func(bucket, key []byte, at place)
	// faults are what is wrong; reading goes on beside it.
	faults []error
}

// Check reads a bbolt file of file_storage and returns what is wrong with it, nil when nothing is. An empty file is sound: bbolt makes a new database of it.
func Check(path string) error {
	return walk(path, func(_, _ []byte, _ place) {}, nil)
}

// walk reads a file, tells value of each value that can be reached in good order, and use of the open file, before it is closed.
func walk(path string, value func(bucket, key []byte, at place), use func(io.ReaderAt) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return nil
	}
	w := &file{r: f, size: info.Size(), seen: map[uint64]bool{}, value: value}
	if root, err := w.meta(); err != nil {
		w.fault(err)
	} else {
		w.page(root, nil, nil, nil, 0)
		w.freelist()
	}
	if use != nil {
		w.fault(use(f))
	}
	return errors.Join(w.faults...)
}

func (w *file) fault(err error) {
	const enough = 20
	if err != nil && len(w.faults) < enough {
		w.faults = append(w.faults, err)
	}
}

func (w *file) read(offset, n int64) ([]byte, error) {
	if offset < 0 || n < 0 || offset+n > w.size || offset+n < offset {
		return nil, fmt.Errorf("the file ends before byte %d", offset+n)
	}
	b := make([]byte, n)
	_, err := w.r.ReadAt(b, offset)
	return b, err
}

// meta finds the newest of the two descriptions of the database, and returns its root page.
func (w *file) meta() (root uint64, err error) {
	var newest uint64
	found := false
	for _, offset := range []int64{0, int64(os.Getpagesize())} {
		b, err := w.read(offset, headerSize+metaSize)
		if err != nil {
			return 0, err
		}
		m := b[headerSize:]
		sum := fnv.New64a()
		_, _ = sum.Write(m[:metaSize-8])
		if binary.LittleEndian.Uint32(m) != magic || binary.LittleEndian.Uint32(m[4:]) != version || binary.LittleEndian.Uint64(m[56:]) != sum.Sum64() {
			continue
		}
		if tx := binary.LittleEndian.Uint64(m[48:]); !found || tx > newest {
			found, newest = true, tx
			w.pageSize = int64(binary.LittleEndian.Uint32(m[8:]))
			root, w.free, w.end = binary.LittleEndian.Uint64(m[16:]), binary.LittleEndian.Uint64(m[32:]), binary.LittleEndian.Uint64(m[40:])
		}
	}
	if !found {
		return 0, errors.New("neither of its two heads is sound")
	}
	if w.pageSize != int64(os.Getpagesize()) {
		return 0, fmt.Errorf("its pages have %d bytes, this machine's %d", w.pageSize, os.Getpagesize())
	}
	// bbolt uses free pages as if they were in the file, and in memory.
	if have := uint64(w.size / w.pageSize); have < w.end {
		w.fault(fmt.Errorf("it has %d pages of %d", have, w.end))
	}
	return root, nil
}

// pages is the number of pages that are in the file and were ever used.
func (w *file) pages() uint64 {
	return min(w.end, uint64(w.size/w.pageSize)) //nolint:gosec // no file has a negative size
}

// page reads a page and what is below it. Keys must be at least from and below to, where those are set.
func (w *file) page(id uint64, bucket, from, to []byte, depth int) {
	if id < 2 || id >= w.pages() {
		w.fault(fmt.Errorf("page %d: outside of the database", id))
		return
	}
	if depth > maxDepth {
		w.fault(fmt.Errorf("page %d: %d levels deep", id, depth))
		return
	}
	offset := int64(id) * w.pageSize //nolint:gosec // within the file
	b, err := w.read(offset, headerSize)
	if err != nil {
		w.fault(fmt.Errorf("page %d: %w", id, err))
		return
	}
	overflow := uint64(binary.LittleEndian.Uint32(b[12:]))
	if got := binary.LittleEndian.Uint64(b); got != id {
		w.fault(fmt.Errorf("page %d: says that it is page %d", id, got))
		return
	}
	if overflow >= w.pages()-id {
		w.fault(fmt.Errorf("page %d: its %d pages of overflow are outside of the database", id, overflow))
		return
	}
	for i := id; i <= id+overflow; i++ {
		if w.seen[i] {
			w.fault(fmt.Errorf("page %d: page %d is used twice", id, i))
			return
		}
	}
	for i := id; i <= id+overflow; i++ {
		w.seen[i] = true
	}
	w.content(id, place{offset, int(overflow+1) * int(w.pageSize)}, bucket, from, to, depth) //nolint:gosec // within the file's size
}

// content reads the elements of a page that lies at in, which is a part of the page where a small bucket lies in its parent's.
func (w *file) content(id uint64, in place, bucket, from, to []byte, depth int) {
	b, err := w.read(in.offset, headerSize)
	if err != nil {
		w.fault(fmt.Errorf("page %d: %w", id, err))
		return
	}
	flags, count := binary.LittleEndian.Uint16(b[8:]), int(binary.LittleEndian.Uint16(b[10:]))
	if flags != branchFlag && flags != leafFlag {
		w.fault(fmt.Errorf("page %d: is no part of a tree (flags %#x)", id, flags))
		return
	}
	if flags == branchFlag && count == 0 {
		w.fault(fmt.Errorf("page %d: a branch without a leaf", id))
		return
	}
	if headerSize+count*elementSize > in.size {
		w.fault(fmt.Errorf("page %d: no room for its %d elements", id, count))
		return
	}
	elements, err := w.read(in.offset+headerSize, int64(count*elementSize))
	if err != nil {
		w.fault(fmt.Errorf("page %d: %w", id, err))
		return
	}
	keys, values := make([][]byte, count), make([]place, count)
	previous, end := from, int64(headerSize+count*elementSize) // keys and values lie one behind the other
	for i := range count {
		e := elements[i*elementSize:]
		kind, rest := uint32(0), e
		if flags == leafFlag {
			kind, rest = binary.LittleEndian.Uint32(e), e[4:]
		}
		pos, ksize, vsize := int64(binary.LittleEndian.Uint32(rest)), int64(binary.LittleEndian.Uint32(rest[4:])), int64(0)
		if flags == leafFlag {
			vsize = int64(binary.LittleEndian.Uint32(rest[8:]))
		}
		start := int64(headerSize+i*elementSize) + pos
		if start != end || start+ksize+vsize > int64(in.size) || ksize == 0 || ksize > maxKeySize || kind > bucketFlag {
			w.fault(fmt.Errorf("page %d: element %d is not where it belongs", id, i))
			return
		}
		end = start + ksize + vsize
		if keys[i], err = w.read(in.offset+start, ksize); err != nil {
			w.fault(fmt.Errorf("page %d: %w", id, err))
			return
		}
		values[i] = place{in.offset + start + ksize, int(vsize)}
		// The first may be what it is said to begin with; the next must be larger.
		if c := bytes.Compare(keys[i], previous); previous != nil && (c < 0 || c == 0 && i > 0) || to != nil && bytes.Compare(keys[i], to) >= 0 {
			w.fault(fmt.Errorf("page %d: element %d is out of order", id, i))
			return
		}
		previous = keys[i]
	}
	for i := range count {
		switch {
		case flags == branchFlag:
			next := to
			if i+1 < count {
				next = keys[i+1]
			}
			w.page(binary.LittleEndian.Uint64(elements[i*elementSize+8:]), bucket, keys[i], next, depth+1)
		// The root has the bucket, and the bucket values.
		case (binary.LittleEndian.Uint32(elements[i*elementSize:]) == bucketFlag) != (bucket == nil):
			w.fault(fmt.Errorf("page %d: element %d is no bucket, or one where none belongs", id, i))
		case bucket == nil:
			w.bucket(id, keys[i], values[i], depth)
		default:
			w.value(bucket, keys[i], values[i])
		}
	}
}

// bucket reads a bucket that is the value of a key.
func (w *file) bucket(id uint64, name []byte, at place, depth int) {
	if string(name) != theBucket {
		w.fault(fmt.Errorf("page %d: a bucket that is not file_storage's", id))
		return
	}
	if at.size < bucketSize {
		w.fault(fmt.Errorf("page %d: bucket %q is cut off", id, name))
		return
	}
	b, err := w.read(at.offset, bucketSize)
	if err != nil {
		w.fault(fmt.Errorf("page %d: bucket %q: %w", id, name, err))
		return
	}
	if root := binary.LittleEndian.Uint64(b); root != 0 {
		w.page(root, name, nil, nil, depth+1)
		return
	}
	if at.size < bucketSize+headerSize {
		w.fault(fmt.Errorf("page %d: bucket %q is cut off", id, name))
		return
	}
	h, err := w.read(at.offset+bucketSize, headerSize)
	if err != nil || binary.LittleEndian.Uint64(h) != 0 || binary.LittleEndian.Uint16(h[8:]) != leafFlag || binary.LittleEndian.Uint32(h[12:]) != 0 {
		w.fault(fmt.Errorf("page %d: bucket %q has no page inside of it", id, name))
		return
	}
	w.content(id, place{at.offset + bucketSize, at.size - bucketSize}, name, nil, nil, depth+1)
}

// freelist reads the list of free pages, which a file has until bbolt, with the options that it is used with here, has written it once.
func (w *file) freelist() {
	if w.free == noFreelist {
		return
	}
	fault := func(what string) { w.fault(fmt.Errorf("page %d: as the list of free pages: %s", w.free, what)) }
	if w.free < 2 || w.free >= w.pages() || w.seen[w.free] {
		fault("is none")
		return
	}
	b, err := w.read(int64(w.free)*w.pageSize, w.pageSize) //nolint:gosec // within the file
	if err != nil {
		w.fault(err)
		return
	}
	count, overflow := int(binary.LittleEndian.Uint16(b[10:])), binary.LittleEndian.Uint32(b[12:])
	if binary.LittleEndian.Uint64(b) != w.free || binary.LittleEndian.Uint16(b[8:]) != freelistFlag || overflow > 0 || headerSize+8*count > len(b) {
		fault("is none that a young file has")
		return
	}
	for i := range count {
		if id := binary.LittleEndian.Uint64(b[headerSize+8*i:]); id < 2 || id >= w.end || id == w.free || w.seen[id] {
			fault(fmt.Sprintf("page %d is in use", id))
			return
		}
	}
}
