package quality

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

var messageSeeds = []string{
	`[{"role":"assistant","parts":[{"type":"text","content":"It is done."}],"finish_reason":"stop"}]`,
	`[{"role":"assistant","content":"a\nb \u00e9 \ud83d\ude00"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}]`,
	`{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":[{"type":"output_text","text":"x"},{"type":"reasoning","content":"y"}]}}`,
	`{"role":"assistant","content":"","tool_calls":[]}`, `[{"ROLE":"assistant","Content":"x"}]`, `[{"content":"x","content":"y"}]`, `[{"parts":[{"type":"text","content":"x"}],"parts":[{}]}]`,
	`[{"c\u006fntent":"x"}]`, `[{"role":5,"content":"x"}]`, `[{"role":null,"content":"x"}]`, `[null,{"content":"x"}]`, `[{"parts":null,"content":"x"}]`, `[{"parts":[null,{"type":"text","text":"x"}]}]`,
	`[{"parts":[{"type":"text","content":null,"text":"x"},{"type":"text","content":{"a":1},"text":"y"},{"type":"tool_call"}]}]`, "[{\"content\":\"\xff\"}]", `[{"content":{"type":"text"}}]`, `[{"content":7}]`,
	`[{"message":null,"content":"x"}]`, `[{"message":{"message":{"content":"x"}}}]`, `[{"content":"x"}] y`, `[{"content":"x"}`, ` [ { "content" : "x" , "n" : -1.5e3 } ] `, `[]`, `{}`, `[1]`, `["x"]`, `[{"content":["x"]}]`,
	`[{"content":[{"type":"text","text":"a"}],"parts":[{"type":"text","content":"b"}]}]`, "[{\"\u017fontent\":1,\"me\u017f\u017fage\":{\"content\":\"x\"}}]",
}

func checkMessages(t *testing.T, text string) {
	var o output
	o.messages(text)
	var want output
	if text != "" && (text[0] == '[' || text[0] == '{') {
		if list, ok := decodeMessages(text); ok {
			for i := range list {
				want.message(&list[i])
			}
		}
		assert.Equal(t, want, o, "%q", text)
	}
}

// Reading in place finds what encoding/json finds.
func TestReadsMessagesAsEncodingJSON(t *testing.T) {
	fast := 0
	for _, s := range messageSeeds {
		checkMessages(t, s)
		if _, ok := readMessages(s); ok {
			fast++
		}
	}
	assert.Greater(t, fast, len(messageSeeds)/3)
	for _, s := range messageSeeds[:4] { // as SDKs write them
		_, ok := readMessages(s)
		assert.True(t, ok, s)
	}
}

func FuzzMessages(f *testing.F) {
	for _, s := range messageSeeds {
		f.Add(s)
	}
	f.Fuzz(checkMessages)
}
