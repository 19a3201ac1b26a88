package quality

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheMarksNeverSayThatATextRepeatsLessThanItDoes(t *testing.T) {
	texts := []string{strings.Repeat("one two three four five six seven ", 20), strings.Repeat("a b c ", 40) + "d e f g h"}
	for _, s := range samples(t) {
		texts = append(texts, s.Text)
	}
	for _, text := range texts {
		var g grams
		if g.split(text); len(g.units) < minUnits {
			continue
		}
		hashes := g.hashes(wordGram)
		from := len(hashes) / 2
		all, tail := g.repeated(hashes, from)
		mostAll, mostTail := g.mayRepeat(hashes, from)
		assert.GreaterOrEqual(t, mostAll, all, "%q", text)
		assert.GreaterOrEqual(t, mostTail, tail, "%q", text)
	}
}
