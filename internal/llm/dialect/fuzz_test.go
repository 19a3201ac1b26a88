package dialect

import (
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Whatever a caller chose as an id: its base is a part of it, the sequences and prompts of one call share it, and nothing panics.
func FuzzBaseID(f *testing.F) {
	for _, id := range []string{
		"", "0_", "chatcmpl-a8fb35d26de9935a", "0_chatcmpl-e7c3", "cmpl-c3f1-0", "embd-c3f1-11", "chatcmpl-a8-b4-beam-0", "-beam-", "cmpl--", "é_cmpl-1-٣",
	} {
		f.Add(id, uint8(3))
	}
	f.Fuzz(func(t *testing.T, id string, n uint8) {
		base, prompt := BaseID(id)
		if !strings.Contains(id, base) || !strings.Contains(id, prompt) || !strings.HasPrefix(prompt, base) {
			t.Fatalf("%q: base %q, prompt %q", id, base, prompt)
		}
		if id == "" || id[0] < '0' || id[0] > '9' { // an id of its own form is not stripped twice
			b, p := BaseID(string([]byte{'0' + n%10}) + "_" + id)
			if b != base || p != prompt {
				t.Fatalf("sequence %d of %q: base %q, prompt %q", n%10, id, b, p)
			}
		}
		call := "cmpl-" + id
		item := call + "-" + string([]byte{'0' + n%10})
		if b, p := BaseID(item); id != "" && !strings.HasSuffix(id, "-beam") && (b != call || p != item) {
			t.Fatalf("prompt %d of %q: base %q, prompt %q", n%10, call, b, p)
		}
		if op := operationOfID(id); op != "" && inferenceOperations[op] == "" {
			t.Fatalf("operation %q of %q", op, id)
		}
	})
}

// Whatever value stands under a key that is read: a figure is within its bounds, a name is a name, and a second reader agrees.
func FuzzReadValue(f *testing.F) {
	var keys []string
	everyKey := map[string]bool{}
	for k := range spellings {
		if !everyKey[k] {
			everyKey[k] = true
			keys = append(keys, k)
		}
	}
	for _, s := range []string{"0.5", "-1", "NaN", "many words", "[\"stop\"]", "POST", "LLM", "/v1/completions", "HEALTH_CHECK_1"} {
		f.Add("gen_ai.latency.e2e", "gen_ai.usage.input_tokens", s, .5, int64(7), uint8(1))
	}
	f.Fuzz(func(t *testing.T, k1, k2, text string, d float64, n int64, kind uint8) {
		s := ptrace.NewSpan()
		s.SetName([]string{"llm_request", " Req 1", "http-request", "chat", "litellm_request", text}[int(kind)%6])
		s.SetKind(ptrace.SpanKind(kind % 7))
		s.SetEndTimestamp(second)
		a := s.Attributes()
		// Two keys that the fuzzer chose, or ones that are known, with values of each kind.
		known := func(k string) string {
			if everyKey[k] || len(k) == 0 {
				return k
			}
			return keys[int(k[0])%len(keys)]
		}
		a.PutDouble(known(k1), d)
		a.PutInt(known(k2), n)
		a.PutStr(known(text), text)
		a.PutEmptySlice(known(k2 + k1)).AppendEmpty().SetStr(text)
		r, ok := Read(s, &request.Source{})
		if !ok {
			return
		}
		for _, v := range []request.Tokens{r.InputTokens, r.OutputTokens, r.CachedTokens, r.ReasoningTokens, r.CacheWriteToken} {
			if v.Known && (v.Value < 0 || v.Value > maxTokens) {
				t.Fatalf("%d tokens", v.Value)
			}
		}
		for _, v := range []request.Seconds{r.Queue, r.Prefill, r.Decode, r.Admission, r.TTFT, r.E2E, r.UserTTFT, r.TPOT()} {
			if v.Known && !(v.Value >= 0 && v.Value <= maxSeconds) {
				t.Fatalf("%g seconds", v.Value)
			}
		}
		for _, v := range append([]string{r.Model, r.ResponseModel, r.Operation, r.Provider, r.ErrorType, r.FinishReason}, r.Invalid...) {
			if v != "" && !isName(v, modelLength) {
				t.Fatalf("%q would become a label", v)
			}
		}
		Write(&r, s)
		second, ok := Read(s, &request.Source{})
		if !ok || second.Layer != r.Layer || second.Dialect != r.Dialect || second.Status != r.Status || second.InputTokens != r.InputTokens || second.E2E != r.E2E {
			t.Fatalf("read again: %+v\nfirst: %+v", second, r)
		}
	})
}
