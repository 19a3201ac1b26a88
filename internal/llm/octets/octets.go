// Package octets reads eight bytes of a text at a time, for what has to look at every byte of kilobytes of prompts and answers.
package octets

// The same byte in each of eight places: Ones*' ' is eight spaces. High is their highest bits.
const (
	Ones = 0x0101010101010101
	High = 0x80 * Ones
)

// Word is the first eight bytes of s, the first of them lowest.
func Word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// ASCII tells whether s has no byte above 0x7f.
func ASCII(s string) bool {
	for len(s) >= 32 {
		if (Word(s)|Word(s[8:])|Word(s[16:])|Word(s[24:]))&High != 0 {
			return false
		}
		s = s[32:]
	}
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
