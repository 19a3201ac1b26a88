package pattern

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true},
		{"*", "Qwen/Qwen3-8B", true},
		{"Qwen/*", "Qwen/Qwen3-8B", true},
		{"Qwen/*", "qwen/Qwen3-8B", false},
		{"*-8B", "Qwen/Qwen3-8B", true},
		{"*-8B", "Qwen/Qwen3-8B-FP8", false},
		{"Qwen*8B*", "Qwen/Qwen3-8B-FP8", true},
		{"llama", "llama", true},
		{"llama", "llama-3", false},
		{"a*a", "a", false}, // the two ends may not share a character
		{"a*b*c", "a--b--c", true},
		{"a*b*c", "a--c--b", false},
		{"", "", true},
		{"", "x", false},
	} {
		assert.Equal(t, c.want, Match(c.pattern, c.name), "%q %q", c.pattern, c.name)
	}
}
