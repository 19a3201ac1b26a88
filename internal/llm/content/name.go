package content

import "strings"

// maxProse is the number of plain words that a name may have. Names of instrumentations have up to four ("Failed Proxy Server
// Request"); a sentence has more.
const maxProse = 4

// modelOperations begin span names that go on with a model: "chat llama-3" (GenAI conventions).
var modelOperations = set("chat", "text_completion", "generate_content", "embeddings", "completion", "responses", "embedding", "rerank", "generate")

// name returns the name as it may stand: itself when it has the form of a name that software gives, else what is left of it.
func (w *walk) name(s string) string {
	if s == "" || w.mode == ModeKeep {
		return s
	}
	op, rest, more := strings.Cut(s, " ")
	if more && in(modelOperations, op) {
		if _, ok := ModelName(rest); ok {
			if rest != w.models[0] && rest != w.models[1] && w.holdsContent(s, rest) {
				return op + " " + OtherName
			}
			return s
		}
		return op + " " + OtherName
	}
	if i := strings.IndexByte(s, '?'); i > 0 && (strings.IndexByte(s, '/') >= 0) {
		s = s[:i] // a route with its query
	}
	if !isName(s) {
		if more && isEnum(op) && strings.IndexByte(op, '_') > 0 || isMethod(op) && more {
			return op + " " + OtherName // execute_tool, invoke_agent, GET
		}
		return OtherName
	}
	if w.holdsContent(s, s) {
		return OtherName
	}
	return s
}

func isMethod(s string) bool {
	switch s {
	case "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "HTTP":
		return true
	}
	return false
}

// isName: short, ASCII, of the characters that software puts in names, and no more than maxProse plain words.
func isName(s string) bool {
	if len(s) > maxName {
		return false
	}
	prose, letters, other := 0, 0, false
	for i := 0; i <= len(s); i++ {
		if i == len(s) || s[i] == ' ' {
			if letters > 1 && !other {
				prose++
			}
			letters, other = 0, false
			continue
		}
		switch b := byteTable[s[i]]; {
		case b&isLetterByte != 0:
			letters++
		case b&isNameByte != 0:
			other = other || s[i] != ',' && s[i] != ':' && s[i] != '.'
		default:
			return false
		}
	}
	return prose <= maxProse && !isCredential(s)
}

// holdsContent reports whether a name repeats a text of the same span: it contains one, is one, or, having several words, is
// part of one. own is the part of the name that a caller can choose.
func (w *walk) holdsContent(name, own string) bool {
	for _, text := range w.seen {
		if len(text) <= len(name) {
			if text == own || len(text) >= 8 && strings.Contains(name, text) {
				return true
			}
			continue
		}
		if len(own) < 8 || strings.IndexByte(own, ' ') < 0 {
			continue
		}
		if w.searches++; w.searches > maxSearches || containsName(text, own) {
			return true
		}
	}
	return false
}

// containsName is strings.Contains, which looks for a text's first byte and so stops at every i of a prompt for "invoke_agent support".
// This looks for the byte that prompts have least of.
func containsName(text, name string) bool {
	at := 0
	for i := range len(name) {
		if commonness[name[i]] < commonness[name[at]] {
			at = i
		}
	}
	for from := at; ; from++ {
		i := strings.IndexByte(text[min(from, len(text)):], name[at])
		if i < 0 {
			return false
		}
		from += i
		if strings.HasPrefix(text[from-at:], name) {
			return true
		}
	}
}

// commonness orders bytes by how often they stand in a prompt; 0 is rare.
var commonness = func() (c [256]uint8) {
	for i, b := range []byte("[]{}'-,:/.\"zqjxkvbpygfwmucldrhsnioate ") {
		c[b] = uint8(i + 1)
	}
	return c
}()
