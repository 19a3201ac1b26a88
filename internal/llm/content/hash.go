package content

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"sync"
)

// hashPrefix marks a value that is a keyed hash, so that a second pass (agent, then gateway) leaves it alone.
const hashPrefix = "hmac:"

// hashHex is the length of a hash in hex digits: HMAC-SHA-256 cut to 128 bits, which still tells 2^64 texts apart.
const hashHex = 32

// hasher makes keyed hashes. Safe for concurrent use.
type hasher struct{ pool sync.Pool }

func newHasher(key []byte) *hasher {
	key = append([]byte(nil), key...)
	return &hasher{pool: sync.Pool{New: func() any { return &mac{Hash: hmac.New(sha256.New, key)} }}}
}

// mac takes strings through a buffer of its own: a hash takes bytes only, and converting a prompt to them would copy all of it to the heap.
type mac struct {
	hash.Hash
	buf [1024]byte
	sum [sha256.Size]byte
}

// WriteString adds s. It does not fail.
func (m *mac) WriteString(s string) {
	for len(s) > 0 {
		n := copy(m.buf[:], s)
		_, _ = m.Write(m.buf[:n]) // a hash returns no error
		s = s[n:]
	}
}

// text is "hmac:" and 32 hex digits of HMAC-SHA-256(key, s). A text that already has this form is returned as it is.
func (h *hasher) text(s string) string {
	if isHashed(s) {
		return s
	}
	var out [len(hashPrefix) + hashHex]byte
	return string(h.append(out[:0], s))
}

// append appends what text makes of a text that has not this form.
func (h *hasher) append(out []byte, s string) []byte {
	m := h.pool.Get().(*mac)
	defer h.pool.Put(m)
	m.Reset()
	m.WriteString(s)
	return hex.AppendEncode(append(out, hashPrefix...), m.Sum(m.sum[:0])[:hashHex/2])
}

// isHashed reports whether s has the form that text makes: too short and too regular to hide a text.
func isHashed(s string) bool {
	if len(s) != len(hashPrefix)+hashHex || s[:len(hashPrefix)] != hashPrefix {
		return false
	}
	for _, c := range []byte(s[len(hashPrefix):]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
