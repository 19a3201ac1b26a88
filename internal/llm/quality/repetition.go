package quality

import (
	"math/bits"
	"sync"
	"unicode"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/octets"
)

// A text is repetitive when most of its n-grams have been there before, or most of those of its end: a model that falls into a loop
// often writes sensibly until then. Units are words, and single characters of scripts that are written without spaces.
const (
	wordGram     = 6   // words
	charGram     = 12  // characters
	minUnits     = 40  // of a text; a shorter one says nothing
	minTail      = 48  // units of the end that are looked at by themselves
	repeatedAll  = .55 // share of n-grams of the text that have been there before
	repeatedTail = .92 // share of those of its last third
	maxRun       = 80  // times that one character stands in a row
)

// grams is the working memory of one call.
type grams struct {
	units []uint64
	table []uint64
}

var gramPool = sync.Pool{New: func() any { return new(grams) }}

func repetitive(text string, ascii bool) bool {
	if (!ascii || mayRun(text)) && runs(text) {
		return true
	}
	g := gramPool.Get().(*grams)
	defer gramPool.Put(g)
	chars := 0
	if ascii {
		g.splitASCII(text)
	} else {
		chars = g.split(text)
	}
	n := wordGram
	if chars*2 > len(g.units) {
		n = charGram
	}
	if len(g.units) < minUnits {
		return false
	}
	count := len(g.units) - n + 1
	from := count - max(count/3, minTail)
	tooMany := func(all, tail int) bool {
		return float64(all) >= repeatedAll*float64(count) || from > 0 && float64(tail) >= repeatedTail*float64(count-from)
	}
	hashes := g.hashes(n)
	return tooMany(g.mayRepeat(hashes, from)) && tooMany(g.repeated(hashes, from))
}

// mayRun is false for a text of one byte a character that has no run of maxRun: such a run covers one of the blocks that half of it is as
// long as, and of most blocks the ends differ.
func mayRun(text string) bool {
	const block = maxRun / 2
	for i := 0; i+block <= len(text); i += block {
		if c := text[i]; text[i+1] == c && text[i+block-1] == c {
			return true
		}
	}
	return false
}

// runs tells whether one character stands in a row too often. Lines and rows of dots are drawn with some.
func runs(text string) bool {
	var last rune
	n := 0
	for _, r := range text {
		if r != last {
			last, n = r, 1
			continue
		}
		n++
		if n < maxRun {
			continue
		}
		switch r {
		case ' ', '\n', '\t', '-', '=', '_', '*', '#', '.', '~', '─', '━', '═', '·':
		default:
			return true
		}
	}
	return false
}

const (
	hashSeed  = 0xcbf29ce484222325
	hashPrime = 0x100000001b3
)

// split cuts a text into units, hashed; chars is the number of those that are single characters.
func (g *grams) split(text string) (chars int) {
	g.units = g.units[:0]
	var h uint64
	inWord := false
	end := func() {
		if inWord {
			g.units = append(g.units, h)
			inWord = false
		}
	}
	for _, r := range text {
		switch {
		case r <= ' ' || unicode.IsSpace(r):
			end()
		case unspaced(r):
			end()
			g.units = append(g.units, mix(uint64(r)))
			chars++
		default:
			if !inWord {
				inWord, h = true, hashSeed
			}
			h = (h ^ uint64(r)) * hashPrime
		}
	}
	end()
	return chars
}

// splitASCII is split for a text that is ASCII alone, whose words lie between bytes up to a space.
func (g *grams) splitASCII(text string) {
	g.units = g.units[:0]
	start, i := 0, 0
	for ; i+8 <= len(text); i += 8 {
		// Marks with bit 7 the bytes up to a space; no byte of ASCII carries into the next.
		spaces := ^(octets.Word(text[i:]) + (0x7f-' ')*octets.Ones) & octets.High
		for ; spaces != 0; spaces &= spaces - 1 {
			at := i + bits.TrailingZeros64(spaces)/8
			g.word(text, start, at)
			start = at + 1
		}
	}
	for ; i < len(text); i++ {
		if text[i] <= ' ' {
			g.word(text, start, i)
			start = i + 1
		}
	}
	g.word(text, start, len(text))
}

// word adds the word text[from:to], unless it is empty.
func (g *grams) word(text string, from, to int) {
	if from == to {
		return
	}
	h := uint64(hashSeed)
	for ; to-from > 8; from += 8 {
		h = stir(h ^ octets.Word(text[from:]))
	}
	var last uint64
	if from+8 <= len(text) { // what follows the word is cut off
		last = octets.Word(text[from:]) << (64 - 8*(to-from))
	} else {
		for i := from; i < to; i++ {
			last = last>>8 | uint64(text[i])<<56
		}
	}
	g.units = append(g.units, stir(h^last))
}

// unspaced tells the scripts that are written without spaces between words, with their punctuation.
func unspaced(r rune) bool {
	switch {
	case r < 0x0E00:
		return false
	case r <= 0x0EFF: // Thai, Lao
		return true
	case r >= 0x1000 && r <= 0x109F, r >= 0x1780 && r <= 0x17FF: // Myanmar, Khmer
		return true
	case r >= 0x3000 && r <= 0x9FFF: // CJK, kana
		return true
	case r >= 0xF900 && r <= 0xFAFF, r >= 0xFF00 && r <= 0xFFEF, r >= 0x20000 && r <= 0x3134F:
		return true
	}
	return false
}

// stir is mix with one multiplication, enough for what is mixed again.
func stir(h uint64) uint64 {
	high, low := bits.Mul64(h, 0xff51afd7ed558ccd)
	return high ^ low
}

func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// hashes turns the units into the hashes of the n-grams that begin at them. That of an n-gram is its units, each turned by its place; the
// next one's is had by turning all and changing two. 7 has no divisor in common with 64, so that no two of the places are turned alike.
func (g *grams) hashes(n int) []uint64 {
	const turn = 7
	var sum uint64
	for _, u := range g.units[:n-1] {
		sum = bits.RotateLeft64(sum, turn) ^ u
	}
	hashes := g.units[:len(g.units)-n+1]
	var gone uint64
	for i, u := range hashes {
		sum = bits.RotateLeft64(sum, turn) ^ g.units[i+n-1] ^ bits.RotateLeft64(gone, turn*n)
		gone = u
		hashes[i] = mix(sum) | 1 // 0 is an empty place
	}
	return hashes
}

// zeroed is the table with room for so many words.
func (g *grams) zeroed(words int) []uint64 {
	if cap(g.table) < words {
		g.table = make([]uint64, words)
	}
	table := g.table[:words]
	clear(table)
	return table
}

// mayRepeat is at least what repeated counts. It marks a bit for each hash, in a sixteenth of the memory, which is enough for most texts:
// what finds its bit unmarked has not been there before.
func (g *grams) mayRepeat(hashes []uint64, from int) (all, tail int) {
	marks := g.zeroed(1 << bits.Len(uint(len(hashes)/4)))
	for i, h := range hashes {
		mark := &marks[h>>8&uint64(len(marks)-1)]
		if bit := uint64(1) << (h >> 58); *mark&bit == 0 {
			*mark |= bit
			continue
		}
		all++
		if i >= from {
			tail++
		}
	}
	return all, tail
}

// repeated counts the n-grams that have been there before: all of them, and those from a place on.
func (g *grams) repeated(hashes []uint64, from int) (all, tail int) {
	size := 1 << bits.Len(uint(2*len(hashes)))
	table := g.zeroed(size)
	for i, h := range hashes {
		at := h & uint64(size-1)
		for table[at] != 0 && table[at] != h {
			at = (at + 1) & uint64(size-1)
		}
		if table[at] == h {
			all++
			if i >= from {
				tail++
			}
		}
		table[at] = h
	}
	return all, tail
}
