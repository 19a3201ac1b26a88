package quality

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// maxJSON is the longest text that is checked for being JSON, in bytes; a longer one is left unjudged.
const maxJSON = 1 << 20

// malformedJSON tells JSON that cannot be parsed: where the caller asked for it, or where the answer begins as JSON does. What follows a
// value that nobody asked for is the answer's own business.
func malformedJSON(text string, wanted bool) bool {
	s := strings.TrimSpace(text)
	fenced := false
	if rest, ok := strings.CutPrefix(s, "```json"); ok {
		fenced = true
		s, _, ok = strings.Cut(rest, "```")
		if !ok {
			s = rest
		}
		s = strings.TrimSpace(s)
	} else if wanted && strings.HasPrefix(s, "```") {
		_, s, _ = strings.Cut(s, "\n")
		s, _, _ = strings.Cut(s, "```")
		s, fenced = strings.TrimSpace(s), true
	}
	if len(s) > maxJSON || (!wanted && !begun(s) && !fenced) {
		return false
	}
	if wanted {
		return !json.Valid([]byte(s))
	}
	d := json.NewDecoder(strings.NewReader(s))
	var v json.RawMessage
	err := d.Decode(&v)
	return err != nil && (err != io.EOF || s != "")
}

// begun tells whether a text begins as a JSON object, or a list of objects or strings: a brace alone begins a template, and a bracket
// a footnote or a link, too.
func begun(s string) bool {
	if s == "" || (s[0] != '{' && s[0] != '[') {
		return false
	}
	rest := strings.TrimLeft(s[1:], " \t\r\n")
	if rest == "" {
		return false
	}
	if s[0] == '[' {
		if rest[0] == '{' {
			return begun(rest)
		}
		// ["a", "b"] and no ["quoted" words]
		if rest[0] != '"' {
			return false
		}
		after, ok := behindQuoted(rest)
		return !ok || strings.HasPrefix(after, ",") || strings.HasPrefix(after, "]")
	}
	if rest[0] == '}' {
		return true
	}
	if rest[0] != '"' {
		return false
	}
	after, ok := behindQuoted(rest)
	return !ok || strings.HasPrefix(after, ":")
}

// behindQuoted is what follows the quoted string that a text begins with, without blanks; ok is false when that does not end.
func behindQuoted(s string) (after string, ok bool) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return strings.TrimLeft(s[i+1:], " \t\r\n"), true
		}
	}
	return "", false
}

// messages parses the output messages of the GenAI conventions: [{"role":…,"parts":[{"type":"text","content":…}]}], or a chat API's
// {"role":…,"content":…}.
func (o *output) messages(text string) {
	if len(text) > maxJSON {
		return
	}
	var list []message
	data := bytes.TrimSpace([]byte(text))
	if len(data) == 0 {
		return
	}
	if data[0] == '{' {
		var one message
		if json.Unmarshal(data, &one) != nil {
			return
		}
		list = []message{one}
	} else if json.Unmarshal(data, &list) != nil {
		return
	}
	for i := range list {
		o.message(&list[i])
	}
}

type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Parts     []part          `json:"parts"`
	ToolCalls json.RawMessage `json:"tool_calls"`
	Message   *message        `json:"message"`
}

type part struct {
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
	Text    string          `json:"text"`
}

func (o *output) message(m *message) {
	if m.Message != nil { // {"index":0,"finish_reason":…,"message":{…}}
		o.message(m.Message)
		return
	}
	if len(m.ToolCalls) > 0 && string(m.ToolCalls) != "null" && string(m.ToolCalls) != "[]" {
		o.tools = true
	}
	var s string
	switch {
	case len(m.Content) > 0 && json.Unmarshal(m.Content, &s) == nil:
		o.add(s)
	case len(m.Content) > 0:
		var parts []part
		if json.Unmarshal(m.Content, &parts) == nil {
			m.Parts = append(m.Parts, parts...)
		}
	}
	for _, p := range m.Parts {
		o.part(p)
	}
}

func (o *output) part(p part) {
	switch p.Type {
	case "text", "output_text":
		s := p.Text
		if len(p.Content) > 0 {
			_ = json.Unmarshal(p.Content, &s) // content that is no text is none
		}
		o.add(s)
	case "tool_call", "tool_use", "function_call":
		o.tools = true
	case "reasoning":
		o.found = true
	}
}
