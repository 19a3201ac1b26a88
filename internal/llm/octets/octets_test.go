package octets

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWordBeginsWithTheLowestByte(t *testing.T) {
	assert.Equal(t, uint64(0x6867666564636261), Word("abcdefghi"))
	assert.Equal(t, Word("        "), uint64(Ones*' '))
}

func TestASCIISeesEveryByte(t *testing.T) {
	for n := range 70 {
		s := strings.Repeat("\x7f", n)
		assert.True(t, ASCII(s), n)
		for i := range n {
			assert.False(t, ASCII(s[:i]+"\x80"+s[i+1:]), "byte %d of %d", i, n)
		}
	}
}
