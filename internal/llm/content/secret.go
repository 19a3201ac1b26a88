package content

import "strings"

// secretMark stands where a credential was.
const secretMark = "[secret]"

// credentialPrefixes begin API keys and tokens of well-known issuers. A token that begins with one and goes on for
// minCredential bytes is a credential wherever it stands.
var credentialPrefixes = []string{
	"sk-", "sk_", "rk_", "pk-lf-", "hf_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-",
	"AKIA", "ASIA", "AIza", "ya29.", "eyJ", "lsv2_", "gsk_", "nvapi-", "r8_", "pplx-", "xai-", "dop_v1_", "npm_", "SG.",
}

const minCredential = 12

// credentialFirst marks the first bytes of credentialPrefixes, so that most text costs one table look-up a token.
var credentialFirst = func() (t [256]bool) {
	for _, p := range credentialPrefixes {
		t[p[0]] = true
	}
	return t
}()

// isCredential reports whether s as a whole begins like an API key.
func isCredential(s string) bool {
	if len(s) < minCredential || !credentialFirst[s[0]] {
		return false
	}
	for _, p := range credentialPrefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// isSecretKey reports whether a key names a credential: its last words are authorization, api key, cookie, password and so on.
// It is asked for keys that no table knows and for the keys of maps, so it reads any spelling: x-api-key, apiKey, API_KEY.
func isSecretKey(key string) bool {
	var buf [64]byte
	n := 0
	// The letters of the key without separators, lower case, are enough: "x-api-key" and "xApiKey" both end in "apikey".
	for i := len(key) - 1; i >= 0 && n < len(buf); i-- {
		c := key[i]
		switch {
		case c >= 'A' && c <= 'Z':
			c |= 0x20
		case c >= 'a' && c <= 'z':
		case c >= '0' && c <= '9' && n > 0: // a digit within: another word
		default:
			continue
		}
		buf[n] = c
		n++
	}
	for _, w := range secretWordsReversed {
		if n >= len(w) && string(buf[:len(w)]) == w {
			return true
		}
	}
	return false
}

// secretWordsReversed are spelled backwards because isSecretKey reads a key from its end.
var secretWordsReversed = func() []string {
	words := []string{
		"authorization", "apikey", "cookie", "password", "passwd", "passphrase", "secret", "secretkey", "privatekey", "credential", "credentials",
		"accesstoken", "authtoken", "idtoken", "refreshtoken", "sessiontoken", "bearertoken", "securitytoken", "bearer", "accesskey", "secretaccesskey",
		"signingkey", "clientsecret", "authkey", "subscriptionkey", "masterkey", "virtualkey", "apitoken", "hftoken", "bottoken", "usertoken", "csrftoken", "githubtoken",
	}
	for i, w := range words {
		b := []byte(w)
		for l, r := 0, len(b)-1; l < r; l, r = l+1, r-1 {
			b[l], b[r] = b[r], b[l]
		}
		words[i] = string(b)
	}
	return words
}()

func isTokenByte(c byte) bool {
	return byteTable[c]&isLabelByte != 0 && c != ':' && c != '@' || c == '~'
}

// scrubSecrets replaces the credentials in a text: tokens that begin like an API key, what follows Bearer or Basic, and what
// stands behind a key such as "api_key": in JSON, in a Python dict or in a header line. Only token bytes are replaced, so
// JSON stays JSON. It returns s itself and false when there is nothing to replace.
func scrubSecrets(s string) (string, bool) {
	var out []byte
	done := 0 // s[:done] has been copied to out
	cut := func(from, to int) {
		out = append(append(out, s[done:from]...), secretMark...)
		done = to
	}
	tokenStart := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !isTokenByte(c) {
			tokenStart = true
			continue
		}
		if !tokenStart {
			continue
		}
		tokenStart = false
		end := i
		for end < len(s) && isTokenByte(s[end]) {
			end++
		}
		word := s[i:end]
		switch {
		case isCredential(word):
			cut(i, end)
		case strings.EqualFold(word, "bearer"), strings.EqualFold(word, "basic"):
			from := skipBytes(s, end, " ")
			if to := tokenEnd(s, from); to-from >= 8 && from > end {
				cut(from, to)
				end = to
			}
		case isSecretKey(word):
			// quotes (escaped ones too), then ':' or '=', then quotes and spaces, then the value up to the next quote or separator
			sep := skipBytes(s, end, `"'\ `)
			if sep < len(s) && (s[sep] == ':' || s[sep] == '=') {
				from := skipBytes(s, sep+1, `["'\ `)
				if strings.HasPrefix(s[from-1:], secretMark) {
					end = from - 1 + len(secretMark)
					break
				}
				if to := secretEnd(s, from); to > from {
					if s[end] == '"' && strings.IndexByte(`"'`, s[from-1]) < 0 {
						out = append(append(out, s[done:from]...), "null"...) // a JSON number or constant
						done = to
					} else {
						cut(from, to)
					}
					end = to
				}
			}
		}
		i = end - 1
	}
	if out == nil {
		return s, false
	}
	return string(append(out, s[done:]...)), true
}

func skipBytes(s string, i int, set string) int {
	for i < len(s) && strings.IndexByte(set, s[i]) >= 0 {
		i++
	}
	return i
}

// tokenEnd is the end of the token at i, base64's padding included.
func tokenEnd(s string, i int) int {
	for i < len(s) && isTokenByte(s[i]) {
		i++
	}
	return skipBytes(s, i, "=")
}

// secretEnd: the value of a secret key may hold spaces ("Bearer x") but no quote, bracket or line break. A backslash begins an
// escape, unless the opening quote was escaped itself (JSON within JSON): then it begins the closing one.
func secretEnd(s string, i int) int {
	nested := i >= 2 && s[i-2] == '\\'
	for i < len(s) && strings.IndexByte("\"',;}])\r\n", s[i]) < 0 {
		if s[i] == '\\' {
			if nested {
				break
			}
			i++
		}
		i++
	}
	return min(i, len(s))
}
