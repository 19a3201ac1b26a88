package jsontext

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var seeds = []string{
	`[{"role":"user","parts":[{"type":"text","content":"a text of some length, without escapes"}]}]`, `{"a":"\n\u00e9\ud83d\ude00\ud83d x","b":[1,-0.5e+3,true,false,null,{}]}`,
	`"`, `"\`, `"\u12`, `"\x"`, "\"a\x01\"", "\"12345678\x1f\"", "\"\xff\xfe12345678\"", `[1,]`, `{"a"}`, `{"a":1,}`, `{a:1}`, `01`, `-`, `1.`, `1e`, `nul`, ` [ ] `, ``, `{]`, `[}`, `[1 2]`, `"a" "b"`,
	"\"\x7f\"", `"1234567"`, `"12345678"`, `"123456\"8"`, `"1234567\\"`, strings.Repeat("[", 20) + strings.Repeat("]", 20), "\u00a0[]",
}

func check(t *testing.T, s string) {
	assert.Equal(t, json.Valid([]byte(s)), Valid(s), "%q", s)
	if len(s) == 0 || s[0] != '"' {
		return
	}
	end, escaped, ok := String(s, 0)
	if !ok {
		return
	}
	assert.True(t, json.Valid([]byte(s[:end])), "%q", s)
	raw := s[1 : end-1]
	assert.Equal(t, strings.Contains(raw, `\`), escaped, "%q", s)
	var want string
	if utf8.ValidString(raw) && json.Unmarshal([]byte(s[:end]), &want) == nil {
		assert.Equal(t, want, Unescape(raw, len(raw)), "%q", s)
	}
}

func TestReadsWhatEncodingJSONReads(t *testing.T) {
	for _, s := range seeds {
		check(t, s)
	}
	deep := strings.Repeat("[", maxDepth)
	check(t, deep+strings.Repeat("]", maxDepth))
	check(t, "["+deep+strings.Repeat("]", maxDepth+1))
}

func TestAValueEndsWhereTheTextGoesOn(t *testing.T) {
	for s, want := range map[string]int{`{"a":1} and more`: 7, ` [1] [2]`: 4, `12abc`: 2, `"a"b`: 3} {
		end, ok := Value(s, 0)
		assert.True(t, ok, s)
		assert.Equal(t, want, end, s)
	}
}

func FuzzValid(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(check)
}

func BenchmarkString(b *testing.B) {
	s := `"` + strings.Repeat("words of a prompt that goes on, ", 128) + `"`
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		String(s, 0)
	}
}
