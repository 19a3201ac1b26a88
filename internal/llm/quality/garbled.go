package quality

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/octets"
)

// A text is garbled when it is broken as text (characters that could not be decoded, control characters, tokens of the vocabulary that
// are never text) or as language (words that are pieced together from several scripts).
const (
	minBroken    = 3   // broken characters
	brokenShare  = .01 // of all characters
	minMarks     = 4   // special tokens
	minSwitches  = 8   // changes of script within words
	switchShare  = .15 // of words
	minScripts   = 5   // scripts in one text
	scriptChange = .4  // share of neighbouring words of different scripts
)

// marks are written only by a model, or a decoder, that has lost its way.
var (
	marks      = []string{"<unk>", "<pad>", "[PAD]", "[UNK]", "<0x", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|reserved_special_token"}
	otherMarks = []string{"Ġ", "Ċ", "▁"} // not in ASCII
)

// marked tells whether a text holds as many marks as a text never does.
func marked(text string, ascii bool) bool {
	total := 0
	count := func(marks []string) {
		for _, m := range marks {
			if total < minMarks {
				total += strings.Count(text, m)
			}
		}
	}
	if strings.IndexByte(text, '<') >= 0 || strings.IndexByte(text, '[') >= 0 {
		count(marks)
	}
	if !ascii {
		count(otherMarks)
	}
	return total >= minMarks
}

func garbled(text string, ascii bool) bool {
	if marked(text, ascii) {
		return true
	}
	if ascii { // one script, so that there is nothing else to find
		broken := controls(text)
		return broken >= minBroken && float64(broken) >= brokenShare*float64(len(text))
	}
	var t soup
	for _, r := range text {
		t.runes++
		if r == utf8.RuneError || control(r) {
			t.broken++
		}
		t.take(r)
	}
	t.endWord()
	if t.broken >= minBroken && float64(t.broken) >= brokenShare*float64(t.runes) {
		return true
	}
	if t.switches >= minSwitches && float64(t.switches) >= switchShare*float64(t.words) {
		return true
	}
	scripts := 0
	for _, n := range t.byScript {
		if n >= 2 {
			scripts++
		}
	}
	return scripts >= minScripts && float64(t.changes) >= scriptChange*float64(t.words)
}

// controls counts the control characters of a text that is ASCII alone.
func controls(text string) (broken int) {
	i := 0
	for ; i+8 <= len(text); i += 8 {
		// Bytes below a space, as they would make bit 7 of the sum stay 0; no byte of ASCII carries into the next.
		if low := ^(octets.Word(text[i:]) + (0x80-' ')*octets.Ones) & octets.High; low != 0 {
			broken += controlsOf(text[i : i+8])
		}
	}
	return broken + controlsOf(text[i:])
}

func controlsOf(text string) (broken int) {
	for i := range len(text) {
		if control(rune(text[i])) {
			broken++
		}
	}
	return broken
}

// control tells the control characters that no text has. Terminals' colours begin with 0x1b.
func control(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' && r != '\r' && r != '\f' && r != 0x1b
}

// soup counts how the scripts of a text alternate.
type soup struct {
	runes, broken            int
	words, switches, changes int
	byScript                 [numScripts]int // words
	last, lastWord           script
}

type script uint8

const (
	noScript script = iota
	latin
	eastAsian
	hangul
	cyrillic
	arabic
	hebrew
	greek
	indic
	thai
	otherScript
	numScripts
)

// take counts one character. Latin beside East Asian is normal in one word ("使用GPU的"), so that only other pairs count.
func (t *soup) take(r rune) {
	s := scriptOf(r)
	if s == noScript {
		t.endWord()
		return
	}
	if t.last != noScript && s != t.last && !neighbours(s, t.last) {
		t.switches++
	}
	t.last = s
}

func (t *soup) endWord() {
	if t.last == noScript {
		return
	}
	t.words++
	t.byScript[t.last]++
	if t.lastWord != noScript && t.lastWord != t.last {
		t.changes++
	}
	t.lastWord, t.last = t.last, noScript
}

func neighbours(a, b script) bool {
	east := func(s script) bool { return s == eastAsian || s == hangul }
	greekLetter := func(s script) bool { return s == greek || s == latin } // µs, Δt
	return (east(a) && (east(b) || b == latin)) || (east(b) && a == latin) || (greekLetter(a) && greekLetter(b))
}

func scriptOf(r rune) script {
	switch {
	case r < 0x80:
		if (r|0x20) >= 'a' && (r|0x20) <= 'z' {
			return latin
		}
		return noScript
	case r >= 0x4E00 && r <= 0x9FFC: // all of them letters
		return eastAsian
	case !unicode.IsLetter(r):
		if unicode.IsMark(r) { // belongs to the letter before it
			switch {
			case r >= 0x0900 && r <= 0x0DFF:
				return indic
			case r >= 0x0E00 && r <= 0x0EFF:
				return thai
			}
		}
		return noScript
	case r < 0x0370:
		return latin
	case r < 0x0400:
		return greek
	case r < 0x0530:
		return cyrillic
	case r >= 0x0590 && r <= 0x05FF:
		return hebrew
	case r >= 0x0600 && r <= 0x077F, r >= 0xFB50 && r <= 0xFEFC:
		return arabic
	case r >= 0x0900 && r <= 0x0DFF:
		return indic
	case r >= 0x0E00 && r <= 0x0EFF:
		return thai
	case r >= 0x1E00 && r <= 0x1EFF:
		return latin
	case r >= 0x1F00 && r <= 0x1FFF:
		return greek
	case r >= 0x3040 && r <= 0x9FFF, r >= 0xF900 && r <= 0xFAFF, r >= 0x20000 && r <= 0x3134F:
		return eastAsian
	case r >= 0xAC00 && r <= 0xD7AF, r >= 0x1100 && r <= 0x11FF:
		return hangul
	case r >= 0xFF21 && r <= 0xFF5A:
		return latin
	}
	return otherScript
}
