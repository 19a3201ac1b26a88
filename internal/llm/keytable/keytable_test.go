package keytable

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestKnowsItsKeysAndNoOther(t *testing.T) {
	for _, size := range []int{0, 1, 2, 3, 1000} {
		m := map[string]int{}
		for i := range size {
			m[fmt.Sprint("gen_ai.", i*7919, ".length")] = i
		}
		table := New(m)
		for k, v := range m {
			got, ok := table.Get(k)
			assert.True(t, ok, k)
			assert.Equal(t, v, got, k)
			_, ok = table.Get(k + "x")
			assert.False(t, ok)
			_, ok = table.Get(k[:8] + "~" + k[9:])
			assert.False(t, ok)
		}
		for _, k := range []string{"", "a", "a.b", "1234567", "12345678", "a\x00"} {
			_, ok := table.Get(k)
			assert.False(t, ok, k)
		}
	}
	table := New(map[string]int{"": 1, "a": 2, "abcdefg": 3})
	for k, want := range map[string]int{"": 1, "a": 2, "abcdefg": 3} {
		got, ok := table.Get(k)
		assert.True(t, ok)
		assert.Equal(t, want, got)
	}
}
