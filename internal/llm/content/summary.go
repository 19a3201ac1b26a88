package content

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxQuotes and maxEscaped bound the work of summing up one JSON text: some seventy messages, and little quoting within.
const (
	maxQuotes  = 1024
	maxEscaped = 128
)

// maxRoles bounds the roles that are written down for one value; the count goes on.
const maxRoles = 32

// The closed sets of roles and part types that may be told. A word outside them stays unsaid, so nothing a user typed can pass.
var (
	knownRoles = interned("system", "user", "assistant", "tool", "developer", "function", "model", "human", "ai", "critic", "observation")
	knownTypes = interned("text", "reasoning", "thinking", "tool_call", "tool_call_response", "tool_calls", "tool_use", "tool_result", "tool-call", "tool-result", "function", "function_call", "function_call_output", "blob", "uri", "file",
		"image", "image_url", "audio", "input_audio", "video", "document", "refusal", "message", "input_text", "output_text", "input_image", "input_file", "redacted_thinking", "server_tool_call", "server_tool_call_response", "json_schema",
		"json_object", "custom", "computer_call", "web_search_call", "file_search_call", "mcp_call")
)

// interned maps each word to itself, so that a word found in a message can be kept without keeping the message's memory.
func interned(words ...string) map[string]string {
	m := make(map[string]string, len(words))
	for _, w := range words {
		m[w] = w
	}
	return m
}

func isSummaryWord(s string) bool { return knownRoles[s] != "" || knownTypes[s] != "" }

// summary is what may be told about messages without their text.
type summary struct {
	roles []string // in order, at most maxRoles
	types []string // distinct, in the order they were seen
	count int64    // messages: values of role
}

func (s *summary) field(key, value string) {
	switch key {
	case "role":
		if role := knownRoles[value]; role != "" {
			if s.count++; len(s.roles) < maxRoles {
				s.roles = append(s.roles, role)
			}
		}
	case "type":
		if kind := knownTypes[value]; kind != "" && !slices.Contains(s.types, kind) {
			s.types = append(s.types, kind)
		}
	}
}

// json finds roles and types in JSON text without parsing it: it goes from quote to quote, so a string costs no more than
// finding its end, and looks at what follows a string "role" or "type" outside of strings. The values are checked against the
// closed sets. A text with more than maxEscaped quotes inside its strings, or maxQuotes around them, is not summed up at all:
// half a count would be a wrong one.
func (s *summary) json(text string) {
	if len(text) == 0 || text[0] != '[' && text[0] != '{' {
		return
	}
	before := *s
	start, key := -1, "" // of the string that is open; the key whose value comes next
	for i, quotes, escaped := 0, 0, 0; ; {
		j := strings.IndexByte(text[i:], '"')
		if j < 0 {
			return
		}
		j += i
		i = j + 1
		switch {
		case start < 0:
			if quotes += 2; quotes > maxQuotes {
				*s = before
				return
			}
			start = i
		case text[j-1] == '\\' && isEscaped(text[start:j]):
			if escaped++; escaped > maxEscaped {
				*s = before
				return
			}
		case key != "":
			s.field(key, text[start:j])
			start, key = -1, ""
		default:
			if word := text[start:j]; word == "role" || word == "type" {
				if v := skipBytes(text, i, " \n\t:"); v < len(text) && text[v] == '"' && v > i {
					key = word
				}
			}
			start = -1
		}
	}
}

// isEscaped reports whether what follows s in a JSON string is escaped: s ends in an odd number of backslashes.
func isEscaped(s string) bool {
	n := len(s)
	for n > 0 && s[n-1] == '\\' {
		n--
	}
	return (len(s)-n)%2 == 1
}

// attributes is how many write adds.
func (s *summary) attributes() (n int) {
	if s.count > 0 {
		n += 2
	}
	if len(s.types) > 0 {
		n++
	}
	return n
}

func (s *summary) write(m pcommon.Map, keys *measureKeys) {
	if s.count > 0 {
		m.PutInt(keys.count, s.count)
		putStrings(m, keys.roles, s.roles)
	}
	if len(s.types) > 0 {
		putStrings(m, keys.types, s.types)
	}
}

func putStrings(m pcommon.Map, key string, list []string) {
	out := m.PutEmptySlice(key)
	out.EnsureCapacity(len(list))
	for _, s := range list {
		out.AppendEmpty().SetStr(s)
	}
}
