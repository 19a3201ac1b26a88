package content

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
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

// json finds roles and types in JSON text without parsing it: inside a JSON string a quote is written \", so the bytes
// "role" with both quotes bare can only be a token of their own. The values are checked against the closed sets.
func (s *summary) json(text string) {
	if len(text) == 0 || text[0] != '[' && text[0] != '{' {
		return
	}
	for _, key := range [2]string{`"role"`, `"type"`} {
		for rest := text; ; {
			i := strings.Index(rest, key)
			if i < 0 {
				break
			}
			rest = rest[i+len(key):]
			if j := skipBytes(rest, 0, " \n\t:"); j < len(rest) && rest[j] == '"' {
				value := rest[j+1:]
				if k := strings.IndexByte(value[:min(len(value), 48)], '"'); k > 0 {
					s.field(key[1:5], value[:k])
				}
			}
		}
	}
}

func (s *summary) write(m pcommon.Map, key string) {
	if s.count > 0 {
		m.PutInt(key+countSuffix, s.count)
		putStrings(m, key+rolesSuffix, s.roles)
	}
	if len(s.types) > 0 {
		putStrings(m, key+typesSuffix, s.types)
	}
}

func putStrings(m pcommon.Map, key string, list []string) {
	out := m.PutEmptySlice(key)
	out.EnsureCapacity(len(list))
	for _, s := range list {
		out.AppendEmpty().SetStr(s)
	}
}
