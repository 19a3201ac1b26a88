package content

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestURLs(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:8000/v1/chat/completions": "http://127.0.0.1:8000/v1/chat/completions",
		"/v1/models":                 "/v1/models",
		"https://h.example/a#secret": "https://h.example/a",
		"/v1/{path:path}":            "/v1/{path:path}",
		"10.0.0.7":                   "10.0.0.7",
		"[::1]:8000":                 "[::1]:8000",
		"https://h.example/s?q=my%20secret&page=2#x": "https://h.example/s?q=&page=",
		"/s?just text":                          "/s",
		"?q=secret":                             "?q=",
		"q=secret&lang=de":                      "q=&lang=",
		"q=secret&my secret=1":                  "q=",
		"https://user:pw@h.example/a":           "https://h.example/a",
		"/ask/what%20is%20this/now":             "/ask/*/now",
		"/ask/what is this":                     "/ask/*",
		"/ask/机密":                               "/ask/*",
		"https://h.example/sk-abcdefghijklmnop": "https://h.example/*",
		"s3://bucket/prompts/1.json":            "s3://bucket/prompts/1.json",
	} {
		got, ok := stripURL(in)
		assert.True(t, ok, in)
		assert.Equal(t, want, got, in)
		again, ok := stripURL(got)
		assert.True(t, ok)
		assert.Equal(t, got, again, "a second pass changes nothing")
	}
	for _, in := range []string{"data:text/plain,secret", "some words", "机密", "javascript secret()://x", strings.Repeat("a/", 5000)} {
		_, ok := stripURL(in)
		assert.False(t, ok, in)
	}
}

func TestUserAgents(t *testing.T) {
	for in, want := range map[string]string{
		"python-requests/2.34.2": "python-requests/2.34.2",
		"OpenAI/Python 2.54.0":   "OpenAI/Python 2.54.0",
		"ai/6.0.326 ai-sdk/provider-utils/4.0.65 runtime/node.js/20":             "ai/6.0.326 ai-sdk/provider-utils/4.0.65 runtime/node.js/20",
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)": "Mozilla/5.0 AppleWebKit/537.36",
		"tell me a secret": "",
		"机密/1 curl/8":      "curl/8",
	} {
		assert.Equal(t, want, userAgent(in))
		assert.Equal(t, want, userAgent(want), "a second pass changes nothing")
	}
}

func TestTraceState(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"ot=th:f3333333333333":               "ot=th:f3333333333333",
		"ot=th:8;rv:00112233445566,vendor=x": "ot=th:8;rv:00112233445566,vendor=x",
		"dd=s:1,ot=th:8":                     "ot=th:8",
		"ot=th:8,chat=what is this":          "ot=th:8",
		"chat=secret,ot=th:8 , b3=00f067aa0ba902b7": "ot=th:8,b3=00f067aa0ba902b7",
		"ot=th:secret":  "",
		"ot=longname:8": "",
		"A=1":           "",
		"no member":     "",
		"a=机密":          "",
	} {
		assert.Equal(t, want, traceState(in), in)
	}
}

func TestScrubSecrets(t *testing.T) {
	for in, want := range map[string]string{
		"nothing here": "nothing here",
		"risk-management, eyJ, sk-1, task-abcdefghijklm": "risk-management, eyJ, sk-1, task-abcdefghijklm",
		"sk-abcdefghijklmnop":                            "[secret]",
		"Authorization: Bearer abc.def-ghi_jkl":          "Authorization: [secret]",
		"bearer of bad news":                             "bearer of bad news",
		"Basic dXNlcjpwYXNzd29yZA==":                     "Basic [secret]",
		`{"api_key": "a b", "x": 1}`:                     `{"api_key": "[secret]", "x": 1}`,
		`{"api_key": 12345678, "x": 1}`:                  `{"api_key": null, "x": 1}`,
		`{\"api_key\": \"abc\", \"x\": 1}`:               `{\"api_key\": \"[secret]\", \"x\": 1}`,
		`{"password": "a\"b"}`:                           `{"password": "[secret]"}`,
		"{'X-API-Key': 'abc', 'n': None}":                "{'X-API-Key': '[secret]', 'n': None}",
		"password=hunter2&x=1":                           "password=[secret]",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc":       "[secret]",
		"a token count of 5":                             "a token count of 5",
	} {
		got, found := scrubSecrets(in)
		assert.Equal(t, want, got, in)
		assert.Equal(t, in != want, found, in)
	}
}

func TestSecretKeys(t *testing.T) {
	for _, k := range []string{"authorization", "Authorization", "x-api-key", "api_key", "apiKey", "OPENAI_API_KEY", "set-cookie", "db.password", "client_secret", "aws.secretAccessKey", "proxy-authorization", "access_token", "api_key_2"} {
		assert.True(t, isSecretKey(k), k)
	}
	for _, k := range []string{"gen_ai.usage.output_token", "time_to_first_token", "api_key_alias", "cookies_count", "secretary", "authorization.type", "", "key", "x"} {
		assert.False(t, isSecretKey(k), k)
	}
}
