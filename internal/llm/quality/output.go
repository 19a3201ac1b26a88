package quality

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// output is the answer on a span, wherever its source puts it.
type output struct {
	// texts are the answers: several with n > 1.
	texts []string
	// found says that the source captures answers, tools that the answer calls tools; wantsJSON that the caller asked for JSON.
	found, tools, wantsJSON bool
	// last is the text that is used when nothing else was found.
	last string
}

// maxTexts bounds the answers that are read from one span.
const maxTexts = 32

func (o *output) add(s string) {
	o.found = true
	if len(o.texts) < maxTexts {
		o.texts = append(o.texts, s)
	}
}

// collect reads the answer from a span's attributes and events. Sources: GenAI semantic conventions, OpenLLMetry, OpenInference, OpenLIT,
// Vercel's AI SDK; recordings of them.
func (o *output) collect(span ptrace.Span) {
	o.attributes(span.Attributes())
	for _, e := range span.Events().All() {
		switch e.Name() {
		case "gen_ai.choice", "gen_ai.content.completion", "gen_ai.client.inference.operation.details":
			o.event(e.Attributes())
		}
	}
	if !o.found && o.last != "" {
		o.add(o.last)
	}
}

func (o *output) attributes(a pcommon.Map) {
	a.Range(func(k string, v pcommon.Value) bool {
		switch {
		case strings.HasPrefix(k, "gen_ai."):
			o.genAI(k[len("gen_ai."):], v)
		case strings.HasPrefix(k, "llm.output_messages."):
			o.openInference(k, v)
		case k == "llm.invocation_parameters":
			o.wantsJSON = o.wantsJSON || (strings.Contains(v.AsString(), "response_format") && strings.Contains(v.AsString(), "json_"))
		case k == "output.value":
			if s := v.AsString(); s != "" && s[0] != '{' && s[0] != '[' { // else the provider's whole response
				o.last = s
			}
		case k == "ai.response.text":
			o.add(v.AsString())
		case k == "ai.response.object":
			o.wantsJSON = true
			o.add(v.AsString())
		case k == "ai.response.toolCalls":
			o.found, o.tools = true, true
		}
		return true
	})
}

func (o *output) genAI(k string, v pcommon.Value) {
	switch {
	case k == "output.messages":
		o.structured(v)
	case k == "output.type":
		o.wantsJSON = o.wantsJSON || v.AsString() == "json"
	case k == "openai.request.response_format", k == "request.response_format":
		o.wantsJSON = o.wantsJSON || strings.Contains(v.AsString(), "json")
	case k == "request.structured_output_schema":
		o.wantsJSON = true
	case k == "content.completion":
		o.add(v.AsString())
	case k == "completion":
		o.plain(v.AsString())
	case strings.HasPrefix(k, "completion."):
		switch {
		case strings.Contains(k, ".tool_calls."):
			o.found, o.tools = true, true
		case strings.HasSuffix(k, ".content"):
			o.add(v.AsString())
		}
	}
}

// plain is an answer as a text, or messages as JSON.
func (o *output) plain(s string) {
	if strings.HasPrefix(s, `[{"`) || strings.HasPrefix(s, `{"role"`) {
		before := len(o.texts)
		o.messages(s)
		if len(o.texts) > before || o.tools {
			return
		}
	}
	o.add(s)
}

// structured reads gen_ai.output.messages, which is a JSON string or a structure.
func (o *output) structured(v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		o.messages(v.Str())
	case pcommon.ValueTypeSlice:
		for _, m := range v.Slice().All() {
			if m.Type() == pcommon.ValueTypeMap {
				o.messageMap(m.Map())
			}
		}
	}
}

func (o *output) messageMap(m pcommon.Map) {
	if c, ok := m.Get("content"); ok && c.Type() == pcommon.ValueTypeStr {
		o.add(c.Str())
	}
	if c, ok := m.Get("tool_calls"); ok && c.Type() == pcommon.ValueTypeSlice && c.Slice().Len() > 0 {
		o.tools = true
	}
	parts, ok := m.Get("parts")
	if !ok || parts.Type() != pcommon.ValueTypeSlice {
		return
	}
	for _, p := range parts.Slice().All() {
		if p.Type() != pcommon.ValueTypeMap {
			continue
		}
		kind, ok := p.Map().Get("type")
		if !ok {
			continue
		}
		switch kind.AsString() {
		case "text":
			if c, ok := p.Map().Get("content"); ok {
				o.add(c.AsString())
			}
		case "tool_call":
			o.tools = true
		case "reasoning":
			o.found = true
		}
	}
}

// openInference reads llm.output_messages.N.message.*.
func (o *output) openInference(k string, v pcommon.Value) {
	switch {
	case strings.Contains(k, ".message.tool_calls."):
		o.found, o.tools = true, true
	case strings.HasSuffix(k, ".message.content"), strings.HasSuffix(k, ".message_content.text"):
		o.add(v.AsString())
	}
}

func (o *output) event(a pcommon.Map) {
	for _, k := range [...]string{"gen_ai.output.messages", "gen_ai.completion", "message", "content", "gen_ai.event.content"} {
		v, ok := a.Get(k)
		if !ok {
			continue
		}
		if v.Type() == pcommon.ValueTypeStr && k != "gen_ai.output.messages" {
			o.plain(v.Str())
		} else {
			o.structured(v)
		}
		return
	}
}
