package content

import "strings"

// traceState keeps the members of a W3C trace state that carry no text: OpenTelemetry's own, and those of vendors whose value
// is made of hex digits and separators. Anything else is somebody's baggage.
func traceState(s string) string {
	if s == "" {
		return s
	}
	keep := true
	for rest, more := s, true; more && keep; {
		var m string
		m, rest, more = strings.Cut(rest, ",")
		keep = isStateMember(m)
	}
	if keep {
		return s
	}
	var out []byte
	for more := true; more; {
		var m string
		m, s, more = strings.Cut(s, ",")
		if m = strings.Trim(m, " \t"); !isStateMember(m) {
			continue
		}
		if len(out) > 0 {
			out = append(out, ',')
		}
		out = append(out, m...)
	}
	return string(out)
}

func isStateMember(m string) bool {
	key, value, ok := strings.Cut(strings.Trim(m, " \t"), "=")
	if !ok || len(key) > 64 || len(value) > 256 || !allBytes(key, isLabelByte) || strings.ContainsAny(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		return false
	}
	if key == "ot" {
		// th:8;rv:00112233445566: sub-keys are lower case, values hex digits
		for more := true; more; {
			var sub string
			sub, value, more = strings.Cut(value, ";")
			k, v, ok := strings.Cut(sub, ":")
			if !ok || len(k) > 4 || !isEnum(k) || !isOpaque(v) {
				return false
			}
		}
		return true
	}
	return isOpaque(value)
}

// isOpaque: hex digits and separators, short enough for ids and flags.
func isOpaque(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', strings.IndexByte(":;._-~@x", c) >= 0:
		default:
			return false
		}
	}
	return true
}
