package content

import (
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/keytable"
)

// Messages and tools have a skeleton that is no text: roles, part types, finish reasons, tool names, ids, counts. leafRule
// finds it in flattened keys (gen_ai.prompt.0.role), structRule in structured values and JSON.

// opaqueWords begin a part of a message that is the user's or the model's alone: whatever stands below one of these is text,
// even a key called role.
var opaqueWords = set("arguments", "args", "kwargs", "input", "output", "inputs", "outputs", "parameters", "result", "response", "data", "metadata", "json_schema", "schema", "properties", "variables", "template_variables",
	"value", "values", "body", "payload", "document", "documents", "items", "details", "extra", "function_call_arguments_json", "vector", "embedding", "headers")

// toolWords stand before a name that is a tool's: function.name, tool_calls.0.name.
var toolWords = set("function", "functions", "tool", "tools", "tool_call", "tool_calls", "function_call", "function_calls", "server_tool_call", "custom")

// leafRule tells the structural leaves under a content prefix from the text. rest is the key without the prefix.
func leafRule(p *prefixRule, rest string) rule {
	content := rule{verb: verbContent, class: p.class, noLength: !structuralPath(rest)}
	if p.userKeys {
		content.noLength = true
		return content
	}
	// A prefix such as gen_ai.tool.definitions. names what follows.
	last, before := "", strings.TrimSuffix(p.prefix, ".")
	before = before[strings.LastIndexByte(before, '.')+1:]
	for more := true; more; {
		var seg string
		seg, rest, more = strings.Cut(rest, ".")
		if isDigits(seg) {
			continue
		}
		if last != "" {
			before = last
		}
		if in(opaqueWords, last) {
			return content
		}
		last = seg
	}
	v, ok := skeletonVerb(last, in(toolWords, before))
	if !ok {
		return content
	}
	return rule{verb: v, class: p.class, noLength: content.noLength}
}

// skeletonVerb is the shape of a structural key of messages, tools and choices, if it is one. Names are structural only where
// they are a tool's.
func skeletonVerb(key string, ofTool bool) (verb, bool) {
	switch key {
	case "role", "type", "modality", "status", "object":
		return verbEnum, true
	case "finish_reason", "finishReason", "stop_reason":
		return verbFinish, true
	case "id", "tool_call_id", "toolCallId", "call_id", "tool_use_id":
		return verbLabels, true
	case "toolName", "tool_name":
		return verbLabels, true
	case "name":
		if ofTool {
			return verbLabels, true
		}
	case "mime_type", "mimeType", "media_type":
		return verbEnum, true
	case "index", "length", "count", "created", "score":
		return verbNumber, true
	case "roles", "types":
		return verbEnum, true
	}
	return 0, false
}

// structuralKeys are the keys of messages as SDKs spell them; any other key inside one may be what a user typed.
var structuralKeys = set("role", "type", "content", "contents", "text", "parts", "message", "messages", "finish_reason", "finishReason", "stop_reason", "name", "id", "index", "tool_calls", "tool_call", "tool_call_id", "toolCallId",
	"toolName", "tool_name", "call_id", "tool_use_id", "function", "function_call", "functions", "tool", "tools", "arguments", "args", "input", "output", "result", "response", "reasoning", "reasoning_content", "thinking", "refusal", "choices",
	"choice", "delta", "logprobs", "image_url", "image", "url", "uri", "file", "file_id", "blob", "data", "mime_type", "mimeType", "media_type", "modality", "description", "parameters", "system", "prompt", "completion", "message_content",
	"prompt_text", "json_schema", "strict", "annotations", "audio", "status", "object", "summary", "document", "metadata", "score", "vector", "embedding", "length", "count", "roles", "types", "reasoning_summary", "document_content",
	"chunk", "title", "query", "server_tool_call", "server_tool_call_response", "tool_call_response", "custom", "input_audio", "detail", "cache_control", "created", "content_filter_results", "arguments_json", "revised_prompt", "function_call_arguments_json")

// membership is what the key of a member of a message says about its value and itself.
type membership struct{ structural, opaqueWord, tool, secret bool }

// known: the key belongs to the vocabulary of messages, so that it may stand as it is.
func (m membership) known() bool { return m.structural || m.opaqueWord || m.tool }

// opaque: all that stands below the key is text.
func (m membership) opaque() bool { return m.opaqueWord || !m.structural }

// memberships are those of the vocabulary: one look-up for each member of each message instead of four.
var memberships = func() *keytable.Table[membership] {
	all := map[string]membership{}
	for _, words := range []map[string]struct{}{structuralKeys, opaqueWords, toolWords} {
		for w := range words {
			all[w] = membership{in(structuralKeys, w), in(opaqueWords, w), in(toolWords, w), isSecretKey(w)}
		}
	}
	return keytable.New(all)
}()

func member(key string) membership {
	if m, ok := memberships.Get(key); ok {
		return m
	}
	return membership{secret: isSecretKey(key)}
}

// structuralPath reports whether every segment of a flattened key is an index or a structural key.
func structuralPath(rest string) bool {
	for more := true; more; {
		var seg string
		seg, rest, more = strings.Cut(rest, ".")
		if !isDigits(seg) && !in(structuralKeys, seg) {
			return false
		}
	}
	return true
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
