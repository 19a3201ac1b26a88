// Package keytable looks attribute keys up in a fixed set of known ones. Every key of every span is looked up two or three times, and most
// are known; a map hashes all of a key each time, and was a twelfth of what a span without text costs.
package keytable

import (
	"math/bits"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/octets"
)

// Table is a set of keys with a value each. It is safe for concurrent use.
type Table[V any] struct {
	slots []slot[V] // a power of two, at least twice as many as keys; a key stands at its hash or in the next free place
	shift int
	empty V
	blank bool // the empty key is in the table
}

type slot[V any] struct {
	key   string // "" where there is none
	value V
}

// New returns a table of a map's keys.
func New[V any](m map[string]V) *Table[V] {
	size := bits.Len(uint(2*len(m) + 1))
	t := &Table[V]{slots: make([]slot[V], 1<<size), shift: 64 - size}
	for k, v := range m {
		if k == "" {
			t.empty, t.blank = v, true
			continue
		}
		i := hash(k) >> t.shift
		for t.slots[i].key != "" {
			i = (i + 1) & uint64(len(t.slots)-1)
		}
		t.slots[i] = slot[V]{k, v}
	}
	return t
}

// Get is the value of a key, if it is in the table.
func (t *Table[V]) Get(key string) (v V, ok bool) {
	if key == "" {
		return t.empty, t.blank
	}
	for i := hash(key) >> t.shift; ; i = (i + 1) & uint64(len(t.slots)-1) {
		s := &t.slots[i&uint64(len(t.slots)-1)]
		if s.key == key {
			return s.value, true
		}
		if s.key == "" {
			return v, false
		}
	}
}

// hash looks at the beginning, the middle and the end of a key, which is enough to tell most known ones apart. Who chooses keys cannot
// make it slow: nothing is ever added.
func hash(s string) uint64 {
	n := len(s)
	h := uint64(n)
	if n >= 8 {
		h ^= octets.Word(s) ^ bits.RotateLeft64(octets.Word(s[n-8:]), 21) ^ bits.RotateLeft64(octets.Word(s[n/2-4:]), 42)
	} else {
		for i := range n {
			h = h<<8 ^ uint64(s[i]) ^ h>>56
		}
	}
	h *= 0x9e3779b97f4a7c15
	h ^= h >> 32
	return h * 0xd6e8feb86659fd93
}
