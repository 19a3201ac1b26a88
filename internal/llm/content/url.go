package content

import "strings"

// stripURL drops from a URL, a path or a bare query what a user can type there: the values of the query, the fragment, the
// password, and path segments that are no tokens ('*' stands for them). False: s is no URL at all, or a data URL.
func stripURL(s string) (string, bool) {
	if isPlainURL(s) {
		return s, true
	}
	if len(s) > 8192 || isDataURL(s) {
		return "", false
	}
	s, _, _ = strings.Cut(s, "#")
	path, query, hasQuery := strings.Cut(s, "?")
	if !hasQuery && strings.IndexByte(path, '/') < 0 && strings.IndexByte(path, '=') >= 0 {
		return stripQuery(path), true // url.query without its '?'
	}
	scheme := ""
	if i := strings.Index(path, "://"); i >= 0 {
		scheme, path = path[:i+3], path[i+3:]
		if !allBytes(scheme, isLabelByte) {
			return "", false
		}
		authority, rest, slash := strings.Cut(path, "/")
		if at := strings.LastIndexByte(authority, '@'); at >= 0 {
			authority = authority[at+1:]
		}
		path = authority
		if slash {
			path += "/" + rest
		}
	}
	if path != "" && strings.IndexByte(path, '/') < 0 && !isLabel(path) && !isAddress(path) {
		return "", false
	}
	segments := strings.Split(path, "/")
	for i, seg := range segments {
		if !isPathSegment(seg) && (i != 0 || !isAddress(seg)) {
			segments[i] = "*"
		}
	}
	out := scheme + strings.Join(segments, "/")
	if hasQuery {
		if q := stripQuery(query); q != "" {
			out += "?" + q
		}
	}
	return out, true
}

// isPlainURL: nothing to drop. The common case, decided in one scan.
func isPlainURL(s string) bool {
	if len(s) > 512 {
		return false
	}
	run := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '/':
			run = 0
			if isCredential(s[i+1:]) {
				return false
			}
			continue
		case byteTable[c]&isLabelByte != 0 && c != '@', c == '{', c == '}':
		default:
			return false
		}
		if run++; run > maxLabel {
			return false
		}
	}
	return !isCredential(s)
}

// isPathSegment: a token, or a route's placeholder.
func isPathSegment(s string) bool {
	return isLabel(s) || len(s) <= maxLabel && len(s) > 2 && s[0] == '{' && s[len(s)-1] == '}' && isLabel(s[1:len(s)-1])
}

// isAddress: an IPv6 address in brackets, with or without a port.
func isAddress(s string) bool {
	return len(s) <= 64 && strings.HasPrefix(s, "[") && isLabel(strings.Replace(s[1:], "]", "", 1))
}

// stripQuery keeps the names of parameters that are tokens, and no value.
func stripQuery(q string) string {
	var out []byte
	for more := true; more; {
		var p string
		p, q, more = strings.Cut(q, "&")
		name, _, isPair := strings.Cut(p, "=")
		if !isPair || name == "" || !isIdentifier(name) {
			continue
		}
		if len(out) > 0 {
			out = append(out, '&')
		}
		out = append(append(out, name...), '=')
	}
	return string(out)
}

// userAgent keeps the products and versions of a user agent (python-requests/2.34.2) and drops comments and free words.
func userAgent(s string) string {
	if len(s) <= maxPhrase && !strings.ContainsAny(s, " ") && strings.IndexByte(s, '/') > 0 && isLabel(s) {
		return s
	}
	var out []byte
	depth := 0
	for more, n := true, 0; more && n < 32; n++ {
		var word string
		word, s, more = strings.Cut(s, " ")
		if depth > 0 || strings.HasPrefix(word, "(") {
			depth = max(0, depth+strings.Count(word, "(")-strings.Count(word, ")"))
			continue
		}
		if word == "" || !isLabel(word) || strings.IndexByte(word, '/') <= 0 && (word[0] < '0' || word[0] > '9') {
			continue
		}
		if len(out)+len(word) > maxPhrase {
			break
		}
		if len(out) > 0 {
			out = append(out, ' ')
		}
		out = append(out, word...)
	}
	return string(out)
}
