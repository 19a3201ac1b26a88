package quality

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/jsontext"
)

// message is one of the output messages of the GenAI conventions, {"role":…,"parts":[{"type":"text","content":…}]}, or of a chat API,
// {"role":…,"content":…}. What is raw is JSON, "" where it is absent.
type message struct {
	Role      string   `json:"role"`
	Content   raw      `json:"content"`
	Parts     []part   `json:"parts"`
	ToolCalls raw      `json:"tool_calls"`
	Message   *message `json:"message"` // {"index":0,"finish_reason":…,"message":{…}}
}

type part struct {
	Type    string `json:"type"`
	Content raw    `json:"content"`
	Text    string `json:"text"`
}

// raw is the JSON of a value.
type raw string

// UnmarshalJSON implements json.Unmarshaler.
func (r *raw) UnmarshalJSON(b []byte) error {
	*r = raw(b)
	return nil
}

// text is the text that the JSON of a string stands for, a part of it where nothing in it is escaped; that of null is empty, and there is
// none of anything else.
func (r raw) text() (s string, ok bool) {
	switch {
	case r == "null":
		return "", true
	case r[0] != '"':
		return "", false
	case !utf8.ValidString(string(r)):
		return s, json.Unmarshal([]byte(r), &s) == nil
	}
	s = string(r[1 : len(r)-1])
	if strings.IndexByte(s, '\\') >= 0 {
		s = jsontext.Unescape(s, len(s))
	}
	return s, true
}

// messages reads a JSON list of messages, or one message. Text that is not such JSON as a whole says nothing.
func (o *output) messages(text string) {
	if len(text) > maxJSON {
		return
	}
	text = strings.TrimSpace(text)
	if text == "" || text[0] != '[' && text[0] != '{' {
		return
	}
	list, ok := readMessages(text)
	if !ok {
		if list, ok = decodeMessages(text); !ok {
			return
		}
	}
	for i := range list {
		o.message(&list[i])
	}
}

// decodeMessages reads messages with all that encoding/json takes for them: keys in any case, twice or escaped.
func decodeMessages(text string) ([]message, bool) {
	if text[0] == '{' {
		var one message
		err := json.Unmarshal([]byte(text), &one)
		return []message{one}, err == nil
	}
	var list []message
	err := json.Unmarshal([]byte(text), &list)
	return list, err == nil
}

func (o *output) message(m *message) {
	if m.Message != nil {
		o.message(m.Message)
		return
	}
	if m.ToolCalls != "" && m.ToolCalls != "null" && m.ToolCalls != "[]" {
		o.tools = true
	}
	if m.Content != "" {
		if s, ok := m.Content.text(); ok {
			o.add(s)
		} else {
			m.Parts = append(m.Parts, m.Content.parts()...)
		}
	}
	for i := range m.Parts {
		o.part(&m.Parts[i])
	}
}

// parts are the parts that stand where a text can.
func (r raw) parts() []part {
	if r[0] != '[' {
		return nil
	}
	c := reader{s: string(r)}
	if list, ok := c.parts(); ok && c.i == len(r) {
		return list
	}
	var list []part
	if json.Unmarshal([]byte(r), &list) != nil {
		return nil
	}
	return list
}

func (o *output) part(p *part) {
	switch p.Type {
	case "text", "output_text":
		s := p.Text
		if p.Content != "" && p.Content != "null" {
			if text, ok := p.Content.text(); ok { // content that is no text is none
				s = text
			}
		}
		o.add(s)
	case "tool_call", "tool_use", "function_call":
		o.tools = true
	case "reasoning":
		o.found = true
	}
}

// readMessages reads messages as SDKs write them, in place: decoding them with encoding/json took half of the time that an answer is
// assessed in. ok is false where anything is unusual, which is left to decodeMessages; a fuzz test holds the two together.
func readMessages(text string) (list []message, ok bool) {
	r := reader{s: text}
	if text[0] == '{' {
		list = append(list, message{})
		ok = r.message(&list[0])
	} else {
		ok = r.array(func() bool {
			list = append(list, message{})
			return r.message(&list[len(list)-1])
		})
	}
	return list, ok && jsontext.Space(text, r.i) == len(text)
}

// reader reads s from i. Its methods report false where encoding/json has to decide.
type reader struct {
	s string
	i int
	// nested counts messages within messages.
	nested int
}

// next skips spaces and consumes b if it comes next.
func (r *reader) next(b byte) bool {
	r.i = jsontext.Space(r.s, r.i)
	if r.i < len(r.s) && r.s[r.i] == b {
		r.i++
		return true
	}
	return false
}

func (r *reader) array(element func() bool) bool {
	if !r.next('[') {
		return false
	}
	for first := true; !r.next(']'); first = false {
		if !first && !r.next(',') || !element() {
			return false
		}
	}
	return true
}

// object reads an object. member is given each key and the bit that it has for it, which must not come twice, and reads the value.
func (r *reader) object(keys []string, member func(key string) bool) bool {
	if !r.next('{') {
		return false
	}
	seen := 0
	for first := true; !r.next('}'); first = false {
		if !first && !r.next(',') || !r.next('"') {
			return false
		}
		end, escaped, ok := jsontext.String(r.s, r.i-1)
		if !ok || escaped {
			return false
		}
		key := r.s[r.i : end-1]
		if r.i = end; !r.next(':') {
			return false
		}
		known := false
		for bit, k := range keys {
			if known = key == k; known {
				if seen&(1<<bit) != 0 || !member(key) {
					return false
				}
				seen |= 1 << bit
				break
			}
			if strings.EqualFold(key, k) {
				return false
			}
		}
		if !known {
			if r.i, ok = jsontext.Value(r.s, r.i); !ok {
				return false
			}
		}
	}
	return true
}

var (
	messageKeys = []string{"role", "parts", "content", "tool_calls", "message"}
	partKeys    = []string{"type", "content", "text"}
)

func (r *reader) message(m *message) bool {
	const maxNested = 8
	if r.nested++; r.nested > maxNested {
		return false
	}
	defer func() { r.nested-- }()
	return r.object(messageKeys, func(key string) (ok bool) {
		switch key {
		case "role":
			m.Role, ok = r.text()
		case "parts":
			m.Parts, ok = r.parts()
		case "content":
			m.Content, ok = r.raw()
		case "tool_calls":
			m.ToolCalls, ok = r.raw()
		case "message":
			m.Message = new(message)
			ok = r.message(m.Message)
		}
		return ok
	})
}

func (r *reader) parts() (list []part, ok bool) {
	ok = r.array(func() bool {
		list = append(list, part{})
		p := &list[len(list)-1]
		return r.object(partKeys, func(key string) (ok bool) {
			switch key {
			case "type":
				p.Type, ok = r.text()
			case "content":
				p.Content, ok = r.raw()
			case "text":
				p.Text, ok = r.text()
			}
			return ok
		})
	})
	return list, ok
}

// raw is the next value as it stands.
func (r *reader) raw() (raw, bool) {
	from := jsontext.Space(r.s, r.i)
	end, ok := jsontext.Value(r.s, from)
	if !ok {
		return "", false
	}
	r.i = end
	return raw(r.s[from:end]), true
}

// text is the next value, when it is a text.
func (r *reader) text() (string, bool) {
	v, ok := r.raw()
	if !ok || v[0] != '"' {
		return "", false
	}
	return v.text()
}
