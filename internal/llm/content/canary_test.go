package content

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// A canary is a text with a token that is in no other text. All tokens begin with canaryMark, all canary numbers with
// canaryNumber, so that one search finds any of them; in bytes and JSON the same.
const (
	canaryMark   = "cnry"
	canaryNumber = 907_731_846
)

// scripts are samples of how people write; the canary's token stands in the middle of one.
var scripts = []string{
	"plain english", "Füße und Äpfel", "naïve café déjà", "¿dónde está?", "ção ões", "łódź żółć", "příliš žluťoučký", "ığdır şöför", "árvíztűrő", "smørrebrød æå", "þetta er", "ā ē ī ō", "ħaġa ġdida", "ŵyau",
	"тайное слово", "таємне", "тајна ђ", "μυστικό", "գաղտնիք", "საიდუმლო", "סוד כמוס", "سر خفي", "رازِ پنهان", "راز چھپا", "गुप्त बात", "গোপন কথা", "ਗੁਪਤ", "ગુપ્ત", "ரகசியம்", "రహస్యం", "ರಹಸ್ಯ", "രഹസ്യം", "රහසක්", "ความลับ", "ຄວາມລັບ", "လျှို့ဝှက်",
	"សម្ងាត់", "གསང་བ", "ምስጢር", "ᠨᠢᠭᠤᠴᠠ", "机密文件", "機密情報です", "ひみつ", "비밀 이야기", "bí mật", "ꦫꦲꦱꦶꦪ", "ᎤᏕᎵᏛ", "ᓄᓇ", "ⵜⴰⵎⴰⵣⵉⵖⵜ", "🤫 emoji 👩\u200d👩\u200d👧 \u202ertl\u202c", "math ∑ℵ𝔖𝔢𝔠", "e\u0301 combining", "zero\u200bwidth", "\ufeffbom",
}

// breaks stand around the token: line breaks of all kinds, tabs, nothing.
var breaks = []string{"\n", "\r\n", "\u2028", "\u0085", "\t", " ", "\v", "\x00", "\n\n", ""}

// canaries hands out texts, each with its own token.
type canaries struct{ n int }

func (c *canaries) token() string {
	c.n++
	return canaryMark + strconv.FormatInt(int64(c.n)+46656, 36)
}

func (c *canaries) text() string {
	tok := c.token()
	b := breaks[c.n%len(breaks)]
	return scripts[c.n%len(scripts)] + b + tok + b + scripts[(c.n*7)%len(scripts)]
}

// number is below 2^53, so that a double holds it.
func (c *canaries) number() int64 { c.n++; return canaryNumber*1_000_000 + int64(c.n) }

// form is one way to put text into an AnyValue.
type form struct {
	name string
	set  func(c *canaries, v pcommon.Value)
}

func quoteASCII(s string) string { // as Python's json.dumps does: every non-ASCII character escaped
	b, _ := json.Marshal(s)
	var out strings.Builder
	for _, r := range string(b) {
		switch {
		case r < 0x80:
			out.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

func messagesJSON(c *canaries) string {
	args, _ := json.Marshal(map[string]any{"city": c.text(), "role": c.token(), c.token(): c.text(), "n": c.number()})
	return fmt.Sprintf(`[{"role":"user","parts":[{"type":"text","content":%s},{"type":"blob","data":%q},{"type":%q,"x":%s}]}, {"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":%s}}],"name":%q,%q:1,"finish_reason":"stop"}]`,
		quoteASCII(c.text()), "data:image/png;base64,"+c.token(), c.token()+" t", quoteASCII(c.text()), quoteASCII(string(args)), c.token(), c.token())
}

// forms: every AnyValue type, nested, and the ways in which SDKs write structure into strings.
var forms = []form{
	{"text", func(c *canaries, v pcommon.Value) { v.SetStr(c.text()) }},
	{"token", func(c *canaries, v pcommon.Value) { v.SetStr(c.token()) }},
	{"long text", func(c *canaries, v pcommon.Value) { v.SetStr(strings.Repeat(c.text()+" ", 200)) }},
	{"json", func(c *canaries, v pcommon.Value) { v.SetStr(messagesJSON(c)) }},
	{"json text", func(c *canaries, v pcommon.Value) { v.SetStr(quoteASCII(c.text())) }},
	{"json in json", func(c *canaries, v pcommon.Value) { v.SetStr(quoteASCII(messagesJSON(c))) }},
	{"cut json", func(c *canaries, v pcommon.Value) { s := messagesJSON(c); v.SetStr(s[:len(s)-7]) }},
	{"two documents", func(c *canaries, v pcommon.Value) { v.SetStr(messagesJSON(c) + ", " + messagesJSON(c)) }},
	{"python repr", func(c *canaries, v pcommon.Value) {
		v.SetStr("[{'role': 'user', 'content': '" + c.text() + "', 'n': None}]")
	}},
	{"data url", func(c *canaries, v pcommon.Value) {
		v.SetStr("data:image/png;name=" + c.token() + ";base64,iVBORw0KGgo=")
	}},
	{"int", func(c *canaries, v pcommon.Value) { v.SetInt(c.number()) }},
	{"double", func(c *canaries, v pcommon.Value) { v.SetDouble(float64(c.number())) }},
	{"bytes", func(c *canaries, v pcommon.Value) { v.SetEmptyBytes().FromRaw([]byte(c.text())) }},
	{"slice", func(c *canaries, v pcommon.Value) {
		s := v.SetEmptySlice()
		s.AppendEmpty().SetStr(c.text())
		s.AppendEmpty().SetStr(c.token())
		s.AppendEmpty().SetEmptyBytes().FromRaw([]byte(c.text()))
		s.AppendEmpty().SetInt(c.number())
		s.AppendEmpty().SetEmptyMap().PutStr("content", c.text())
	}},
	{"tokens", func(c *canaries, v pcommon.Value) { v.SetEmptySlice().AppendEmpty().SetStr(c.token()) }},
	{"vector", func(c *canaries, v pcommon.Value) {
		s := v.SetEmptySlice()
		for range 32 {
			s.AppendEmpty().SetDouble(float64(c.number()))
		}
	}},
	{"map", func(c *canaries, v pcommon.Value) { fillMap(c, v.SetEmptyMap()) }},
	{"messages", func(c *canaries, v pcommon.Value) {
		for _, role := range []string{"system", "user"} {
			m := v.SetEmptySlice().AppendEmpty().SetEmptyMap()
			m.PutStr("role", role)
			p := m.PutEmptySlice("parts").AppendEmpty().SetEmptyMap()
			p.PutStr("type", "text")
			p.PutStr("content", c.text())
			fillMap(c, m.PutEmptyMap("tool_calls"))
		}
	}},
	{"deep", func(c *canaries, v pcommon.Value) {
		for i := range 90 {
			if i%2 == 0 {
				v = v.SetEmptyMap().PutEmpty("content")
			} else {
				s := v.SetEmptySlice()
				s.AppendEmpty().SetStr(c.text())
				v = s.AppendEmpty()
			}
		}
		v.SetStr(c.text())
	}},
}

func fillMap(c *canaries, m pcommon.Map) {
	m.PutStr("content", c.text())
	m.PutStr("role", c.text())
	m.PutStr("type", c.text())
	m.PutStr("name", c.text())
	m.PutStr("id", c.text())
	m.PutStr(c.text(), "key")
	m.PutStr("anything", c.token())
	m.PutInt("n", c.number())
	m.PutEmptyMap("arguments").PutStr("role", c.token())
	m.PutEmptyBytes("data").FromRaw([]byte(c.token()))
	m.PutEmptySlice("parts").AppendEmpty().SetEmptyMap().PutStr("text", c.text())
	m.PutStr("api_key", c.token())
}

// escaped finds canaries in what came out; base64 is what JSON does to bytes, so the protobuf in out covers those.
func escaped(out []byte) (found []string) {
	for _, mark := range []string{canaryMark, strconv.Itoa(canaryNumber)} {
		for rest := out; ; {
			i := bytes.Index(rest, []byte(mark))
			if i < 0 {
				break
			}
			found = append(found, fmt.Sprintf("%q", rest[max(0, i-60):min(len(rest), i+30)]))
			rest = rest[i+len(mark):]
			if len(found) > 5 {
				return found
			}
		}
	}
	return found
}

// nonASCII finds pieces of the scripts: nothing that is redacted leaves anything but ASCII behind.
func nonASCII(out string) bool {
	return strings.ContainsFunc(out, func(r rune) bool { return r > 0x7e })
}

// canaryKeys are the keys of the tables and of the independent list. Those of the list that only the rules for unknown keys
// catch are left out for numbers: there a number is a measure as likely as a text.
func canaryKeys(t *testing.T, numbers bool) []string {
	keys := listedKeys(t)
	if numbers {
		base := baseTable()
		keys = slices.DeleteFunc(keys, func(k string) bool { return base.lookup(k).verb > verbSecret })
	}
	for _, list := range contentKeys {
		keys = append(keys, list...)
	}
	for _, p := range contentPrefixes {
		keys = append(keys, p.prefix+"0", p.prefix+"0.content", p.prefix+"0.message.content")
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// every is each n-th key, beginning with the one at offset.
func every(keys []string, n, offset int) (out []string) {
	for i := offset % n; i < len(keys); i += n {
		out = append(out, keys[i])
	}
	return out
}

// TestCanaries puts canaries of every form under every key into every place, in every mode that hides text.
func TestCanaries(t *testing.T) {
	for _, mode := range []Mode{ModeStrip, ModeHash} {
		r := redactor(t, Config{Mode: mode})
		for i, p := range places {
			t.Run(string(mode)+"/"+p.name, func(t *testing.T) {
				var c canaries
				for _, f := range forms {
					keys := canaryKeys(t, f.name == "int" || f.name == "double")
					if p.name != "span" && p.name != "log" && p.name != "sum point" {
						keys = every(keys, 7, i) // the rules are the same everywhere: a sample shows that they are applied
					}
					b := newBatch()
					m := p.at(b)
					m.EnsureCapacity(len(keys))
					for _, k := range keys {
						f.set(&c, m.PutEmpty(k))
					}
					facts := b.redact(r)
					if found := escaped(b.bytes(t)); len(found) > 0 {
						t.Errorf("%s: %s", f.name, strings.Join(found, "\n"))
					}
					assert.GreaterOrEqual(t, facts.Total(), int64(len(keys)), "%s: counted", f.name)
				}
			})
		}
	}
}

// TestUnknownKeysFailClosed: keys that nobody has seen, under the namespaces of LLM software, bare, and elsewhere.
func TestUnknownKeysFailClosed(t *testing.T) {
	var keys []string
	for _, ns := range []string{"gen_ai.", "llm.", "ai.", "traceloop.", "langfuse.", "mlflow.", "haystack.", "crewai.", "lk.", "gcp.vertex.agent.", "logfire.", "pydantic_ai.", "openinference.", "flue.", "litellm.", "newsdk.", "my.own.app.", ""} {
		for _, rest := range []string{"prompt", "zeta.input", "turn.3.output", "userQuery", "chat_history", "finalAnswer", "new_thing.text", "toolArgs", "rag.chunks", "what.did.she.say", "systemMessage", "a.b.c.d.response", "assistant-reply", "q.question"} {
			keys = append(keys, ns+rest)
		}
	}
	texts := []string{"text", "token", "long text", "json", "json text", "json in json", "cut json", "python repr", "data url", "bytes", "slice", "map", "messages", "deep", "vector"}
	for _, mode := range []Mode{ModeStrip, ModeHash} {
		r := redactor(t, Config{Mode: mode})
		for _, p := range places {
			var c canaries
			for _, f := range forms {
				if !slices.Contains(texts, f.name) {
					continue
				}
				b := newBatch()
				m := p.at(b)
				for _, k := range keys {
					f.set(&c, m.PutEmpty(k))
				}
				b.redact(r)
				if found := escaped(b.bytes(t)); len(found) > 0 {
					t.Errorf("%s %s: %s: %s", mode, p.name, f.name, strings.Join(found, "\n"))
				}
			}
		}
	}
}

// TestUnknownValuesFailClosed: keys that could be anybody's, without a word that gives them away. A sentence, structure or
// bytes never passes; a single token does where the key or the place promises one.
func TestUnknownValuesFailClosed(t *testing.T) {
	keys := []string{"x", "foo", "city", "gen_ai.foo", "llm.bar.baz", "ai.zip", "app.color", "acme.widget.id", "team", "gen_ai.agent.version", "genre:drama", "UPPER_CASE", "weird key with spaces", "ключ", "a", "k8s.pod.name2", "team.name", "gen_ai.tool.type"}
	r := redactor(t, Config{})
	for _, p := range places {
		var c canaries
		for _, f := range forms {
			if f.name == "token" || f.name == "tokens" || f.name == "int" || f.name == "double" {
				continue
			}
			b := newBatch()
			m := p.at(b)
			for _, k := range keys {
				if f.name == "map" && strings.HasPrefix(k, "k8s.") {
					continue // its entries are attributes of infrastructure: tokens and numbers stay
				}
				f.set(&c, m.PutEmpty(k))
			}
			b.redact(r)
			if found := escaped(b.bytes(t)); len(found) > 0 {
				t.Errorf("%s: %s: %s", p.name, f.name, strings.Join(found, "\n"))
			}
		}
	}
}

// TestCanariesOutsideAttributes: names, messages, bodies, states.
func TestCanariesOutsideAttributes(t *testing.T) {
	sets := map[string]func(b *batch, s string){
		"span name":        func(b *batch, s string) { b.span.SetName(s) },
		"event name":       func(b *batch, s string) { b.event.SetName(s) },
		"status message":   func(b *batch, s string) { b.span.Status().SetMessage(s) },
		"span state":       func(b *batch, s string) { b.span.TraceState().FromRaw("ot=th:8,baggage=" + s) },
		"link state":       func(b *batch, s string) { b.link.TraceState().FromRaw(s) },
		"trace scope":      func(b *batch, s string) { b.td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().SetName(s) },
		"scope version":    func(b *batch, s string) { b.td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().SetVersion(s) },
		"trace schema":     func(b *batch, s string) { b.td.ResourceSpans().At(0).SetSchemaUrl(s) },
		"scope schema":     func(b *batch, s string) { b.td.ResourceSpans().At(0).ScopeSpans().At(0).SetSchemaUrl(s) },
		"log scope":        func(b *batch, s string) { b.ld.ResourceLogs().At(0).ScopeLogs().At(0).Scope().SetName(s) },
		"log schema":       func(b *batch, s string) { b.ld.ResourceLogs().At(0).SetSchemaUrl(s) },
		"log scope schema": func(b *batch, s string) { b.ld.ResourceLogs().At(0).ScopeLogs().At(0).SetSchemaUrl(s) },
		"log event name":   func(b *batch, s string) { b.record.SetEventName(s) },
		"severity":         func(b *batch, s string) { b.record.SetSeverityText(s) },
		"metric scope":     func(b *batch, s string) { b.md.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().SetName(s) },
		"metric schema":    func(b *batch, s string) { b.md.ResourceMetrics().At(0).SetSchemaUrl(s) },
		"metric scope schema": func(b *batch, s string) {
			b.md.ResourceMetrics().At(0).ScopeMetrics().At(0).SetSchemaUrl(s)
		},
	}
	for _, mode := range []Mode{ModeStrip, ModeHash} {
		r := redactor(t, Config{Mode: mode})
		for name, set := range sets {
			var c canaries
			for range 3 * len(scripts) {
				s := c.text()
				if i := c.n % len(scripts); i == 0 {
					s = "Please tell me in one sentence what " + c.token() + " means" // ASCII, no line break
				}
				b := newBatch()
				set(b, s)
				f := b.redact(r)
				found := escaped(b.bytes(t))
				assert.Empty(t, found, "%s %s", mode, name)
				assert.Positive(t, f.Total(), "%s %s: counted", mode, name)
			}
		}
	}
}

func TestCanariesInBodies(t *testing.T) {
	for _, mode := range []Mode{ModeStrip, ModeHash} {
		r := redactor(t, Config{Mode: mode})
		for _, f := range forms {
			var c canaries
			for range len(scripts) {
				b := newBatch()
				f.set(&c, b.record.Body())
				facts := b.redact(r)
				assert.Empty(t, escaped(b.bytes(t)), "%s %s", mode, f.name)
				assert.False(t, nonASCII(b.record.Body().AsString()), "%s %s: %s", mode, f.name, b.record.Body().AsString())
				assert.Positive(t, facts.Total(), "%s %s: counted", mode, f.name)
			}
		}
	}
}

// TestTruncateCutsBeforeTheCanary: in a text longer than the limit nothing of the rest comes out, whatever the form.
func TestTruncateCutsBeforeTheCanary(t *testing.T) {
	r := redactor(t, Config{Mode: ModeTruncate, MaxLength: 24})
	for _, script := range scripts {
		head := strings.Repeat(script+" ", 24)
		text := head + canaryMark + "1"
		for name, v := range map[string]any{
			"text": text,
			"json": `[{"role":"user","content":` + quoteASCII(text) + `}]`,
			"map":  map[string]any{"role": "user", "content": text, text: "x", "parts": []any{text, map[string]any{"text": text}}},
			"list": []any{text},
		} {
			var f Facts
			got := redactAttribute(t, r, "gen_ai.input.messages", v, &f)
			out, ok := got.Get("gen_ai.input.messages")
			require.True(t, ok)
			assert.NotContains(t, out.AsString(), canaryMark, name)
			assert.EqualValues(t, 1, f.Total())
			if name == "json" {
				var doc []map[string]string
				require.NoError(t, json.Unmarshal([]byte(out.Str()), &doc), out.Str())
				assert.Equal(t, "user", doc[0]["role"])
				assert.Equal(t, string([]rune(text)[:24]), doc[0]["content"])
			}
			_, ok = got.Get("gen_ai.input.messages.length")
			assert.True(t, ok)
		}
	}
}
