package content

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// FuzzCanaries builds requests from the fuzzer's bytes: any key, any form of value, any place, several at once. No canary may
// come out, in strip and hash mode, and a second pass finds nothing.
func FuzzCanaries(f *testing.F) {
	for i := range 40 {
		f.Add([]byte{byte(i), byte(i * 7), byte(i * 13), byte(i * 31), byte(255 - i), byte(i * 3), 9, 200, 3})
	}
	base := baseTable()
	var keys []string
	for _, list := range contentKeys {
		keys = append(keys, list...)
	}
	for _, p := range contentPrefixes {
		keys = append(keys, p.prefix+"0.content", p.prefix+"x")
	}
	words := []string{"gen_ai", "llm", "prompt", "input", "messages", "0", "content", "text", "ai", "user", "custom", "output", "mlflow", "chat", "answer", "ÿ", "a b", "tool_calls", "arguments", "json"}
	r, err := New(Config{})
	require.NoError(f, err)
	h, err := New(Config{Mode: ModeHash, HashKey: testKey})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			v := int(data[0])
			if data = data[1:]; n > 256 && len(data) > 0 {
				v, data = v<<8|int(data[0]), data[1:]
			}
			return v % n
		}
		for _, red := range []*Redactor{r, h} {
			saved := data
			b := newBatch()
			var c canaries
			for n := 0; len(data) > 0 && n < 32; n++ {
				key := keys[next(len(keys))]
				if next(3) == 0 { // a key made of words that are known from keys
					var parts []string
					for range 1 + next(4) {
						parts = append(parts, words[next(len(words))])
					}
					parts = append(parts, []string{"prompt", "content", "text", "answer", "messages"}[next(5)])
					key = strings.Join(parts, []string{".", "_", "-"}[next(3)])
				}
				fm := forms[next(len(forms))]
				if (fm.name == "int" || fm.name == "double") && base.lookup(key).verb > verbSecret {
					continue
				}
				where := next(len(places) + 3)
				switch {
				case where < len(places):
					fm.set(&c, places[where].at(b).PutEmpty(key))
				case where == len(places):
					fm.set(&c, b.record.Body())
				case where == len(places)+1:
					b.span.Status().SetMessage(c.text())
				default: // a name that repeats a text of its span
					s := c.text()
					b.span.Attributes().PutStr("gen_ai.prompt", "x "+s+" y")
					b.span.SetName(s)
				}
			}
			b.redact(red)
			if found := escaped(b.bytes(t)); len(found) > 0 {
				t.Errorf("%s: %s", red.mode, strings.Join(found, "\n"))
			}
			before := b.bytes(t)
			again := b.redact(red)
			assert.Equal(t, string(before), string(b.bytes(t)), "a second pass changes nothing")
			assert.Zero(t, again.Total(), "a second pass finds nothing")
			data = saved
		}
	})
}

// FuzzOTLP redacts whatever decodes as OTLP: it must not panic, must not lose a span, record or point, and must be done after
// one pass.
func FuzzOTLP(f *testing.F) {
	files, _ := filepath.Glob("testdata/recordings/*.jsonl")
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(f, err)
		line, _, _ := strings.Cut(string(b), "\n")
		if len(line) < 20000 {
			f.Add([]byte(line))
		}
	}
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x","attributes":[{"key":"a","value":{"kvlistValue":{"values":[{"key":"b","value":{"bytesValue":"AAAA"}}]}}}]}]}]}]}`))
	rs := map[Mode]*Redactor{}
	for _, mode := range []Mode{ModeStrip, ModeHash, ModeTruncate, ModeKeep} {
		r, err := New(Config{Mode: mode, HashKey: testKey, HashIdentity: mode == ModeHash, MaxLength: 8})
		require.NoError(f, err)
		rs[mode] = r
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for mode, r := range rs {
			var first, second Facts
			var one, two []byte
			if td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(b); err == nil {
				n := td.SpanCount()
				r.Traces(td, &first)
				require.Equal(t, n, td.SpanCount())
				one, _ = (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
				r.Traces(td, &second)
				two, _ = (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
			} else if ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(b); err == nil {
				n := ld.LogRecordCount()
				r.Logs(ld, &first)
				require.Equal(t, n, ld.LogRecordCount())
				one, _ = (&plog.ProtoMarshaler{}).MarshalLogs(ld)
				r.Logs(ld, &second)
				two, _ = (&plog.ProtoMarshaler{}).MarshalLogs(ld)
			} else if md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(b); err == nil {
				n := md.DataPointCount()
				r.Metrics(md, &first)
				require.EqualValues(t, n, int64(md.DataPointCount())+first.Merged)
				one, _ = (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
				r.Metrics(md, &second)
				two, _ = (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
			}
			if mode == ModeTruncate {
				continue // a text that was cut may be part of a name that the whole text was not
			}
			assert.Equal(t, one, two, "%s: a second pass changes nothing", mode)
			assert.Zero(t, second.Total(), "%s: a second pass finds nothing", mode)
		}
	})
}

// FuzzJSON: what the JSON transformer accepts is JSON and stays JSON, and no text of it is left in hash mode.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{chat, `{"a":[1,2,{"b":"c"}],"role":"user"}`, `"x"`, `[`, `{"a":1}x`, `{"api_key":"x","b":1}`, `{"api_key":"x"}`, `[[[[]]]]`, `"\ud83d\ude00"`, `{"type":"text","text":"\u0000"}`} {
		f.Add(s)
	}
	r, err := New(Config{Mode: ModeHash, HashKey: testKey})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, s string) {
		for _, mode := range []Mode{ModeHash, ModeTruncate} {
			tr := transform{w: &walk{r: r}, mode: mode}
			out, ok := tr.json(s)
			if !ok {
				continue
			}
			require.True(t, json.Valid([]byte(s)), "accepted what is no JSON: %q", s)
			require.True(t, json.Valid([]byte(out)), "%q became %q", s, out)
			again, ok := (&transform{w: &walk{r: r}, mode: mode}).json(out)
			require.True(t, ok)
			require.Equal(t, out, again)
		}
	})
}

// FuzzText: the small rewriters end where they say, and once is enough.
func FuzzText(f *testing.F) {
	for s := range spanNames {
		f.Add(s)
	}
	for _, s := range []string{"https://h.example/s?q=my%20secret&page=2#x", "ot=th:8;rv:00112233445566,vendor=x", "Mozilla/5.0 (X11; Linux)", `{"api_key": "a b", "x": 1}`, "Bearer abcdefghijkl", "{'password': 'x'}", "302 ms", `["stop"]`} {
		f.Add(s)
	}
	r, err := New(Config{})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, s string) {
		if out, ok := stripURL(s); ok {
			again, ok := stripURL(out)
			require.True(t, ok)
			require.Equal(t, out, again)
		}
		require.Equal(t, userAgent(userAgent(s)), userAgent(s))
		require.Equal(t, traceState(traceState(s)), traceState(s))
		w := &walk{r: r, mode: ModeStrip}
		require.Equal(t, w.name(w.name(s)), w.name(s))
		once, _ := scrubSecrets(s)
		twice, _ := scrubSecrets(once)
		require.Equal(t, once, twice)
		if json.Valid([]byte(s)) {
			require.True(t, json.Valid([]byte(once)), "%q became %q", s, once)
		}
		if utf8.ValidString(s) {
			require.EqualValues(t, utf8.RuneCountInString(s), runeCount(s))
		}
	})
}
