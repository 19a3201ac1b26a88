package dimension

import (
	"fmt"
	"regexp"
	"strings"
)

// forbidden are what a key or a name may not stand for: each has as many values as there are requests or people, or is text.
var forbidden = []struct {
	like   *regexp.Regexp
	reason string
}{
	{
		regexp.MustCompile(`(^|_)(request|response|trace|span|parent|message|call|correlation|completion|transaction|req|x_request)_?ids?$|^(rid|traceparent|tracestate|id|uuid|guid)$`),
		"every request has a value of its own, so that each would be a time series; find single requests by their records or traces",
	},
	{
		regexp.MustCompile(`(^|_)(end_?user|user|person|email|e_mail|username|login|subject)(_(id|name|email|hash|pseudo_id|full_name))?$|^client_(address|ip)$|(^|_)(ip|forwarded_for|authorization|cookie|api_key|token)$`),
		"it names a person or a secret, and has as many values as there are users; use a team, an application or a tier",
	},
	{
		regexp.MustCompile(`(^|_)(session|conversation|thread|chat)(_?id)?$`),
		"every conversation has a value of its own, so that each would be a time series",
	},
	{
		regexp.MustCompile(`(^|_)(prompts?|completions?|messages?|content|input|output|question|answer|text|system_instructions|query)$`),
		"it is text, which never leaves; label by something that you chose",
	},
}

// allowed refuses what must not be a label, with the reason.
func allowed(key string) error {
	flat := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key)
	for _, f := range forbidden {
		if f.like.MatchString(flat) {
			return fmt.Errorf("%q must not be a dimension: %s", key, f.reason)
		}
	}
	return nil
}
