// Package page reads the text page of a dcgm-exporter into the core's model.
//
// Pages of every exporter since 1.x are understood: fields under their old, current and lower-case names, labels under
// all of their spellings. Nothing here does I/O; the source that fetches the page is in the receiver.
package page

import (
	"bytes"
	"strconv"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// label is one name="value" of a series.
type label struct{ name, value string }

// line is one series of a page.
type line struct {
	name   string
	labels []label
	value  gpu.Value
}

// get is the value of the first of the names that the series has, or "".
func (l *line) get(names ...string) string {
	for _, n := range names {
		for _, lb := range l.labels {
			if lb.name == n && lb.value != "" {
				return lb.value
			}
		}
	}
	return ""
}

// maxLabels bounds the labels of one series; a dcgm-exporter with pod labels has about 40.
const maxLabels = 256

// lines calls each for every series of a Prometheus or OpenMetrics text page and returns how many lines could not be
// read. A bad line costs itself, never the page. The line passed to each is reused.
func lines(text []byte, each func(*line)) (bad int) {
	var l line
	for raw := range bytes.Lines(text) {
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 || raw[0] == '#' {
			continue
		}
		l.labels = l.labels[:0]
		if parse(string(raw), &l) {
			each(&l)
		} else {
			bad++
		}
	}
	return bad
}

// parse reads `name{label="value", ...} number [timestamp] [# exemplar]`.
func parse(s string, l *line) bool {
	i := 0
	for i < len(s) && nameByte(s[i], i) {
		i++
	}
	if i == 0 {
		return false
	}
	l.name = s[:i]
	s = trimLeft(s[i:])
	if s != "" && s[0] == '{' {
		var ok bool
		if s, ok = parseLabels(s[1:], l); !ok {
			return false
		}
	}
	s = trimLeft(s)
	end := 0
	for end < len(s) && s[end] != ' ' && s[end] != '\t' {
		end++
	}
	number := s[:end]
	// An integer stays one: which sentinels apply depends on it.
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		l.value = gpu.Int(n)
		return true
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return false
	}
	l.value = gpu.Double(f)
	return true
}

// parseLabels reads up to and including the closing brace and returns what follows.
func parseLabels(s string, l *line) (rest string, ok bool) {
	for {
		s = trimLeft(s)
		if s != "" && s[0] == '}' {
			return s[1:], true
		}
		i := 0
		for i < len(s) && nameByte(s[i], i) {
			i++
		}
		name := s[:i]
		s = trimLeft(s[i:])
		if i == 0 || s == "" || s[0] != '=' {
			return "", false
		}
		s = trimLeft(s[1:])
		if s == "" || s[0] != '"' {
			return "", false
		}
		value, after, ok := unquote(s[1:])
		if !ok || len(l.labels) >= maxLabels {
			return "", false
		}
		l.labels = append(l.labels, label{name, value})
		s = trimLeft(after)
		if s != "" && s[0] == ',' {
			s = s[1:]
		} else if s == "" || s[0] != '}' {
			return "", false
		}
	}
}

// unquote reads a label value up to its closing quote, with the escapes \\, \" and \n.
func unquote(s string) (value, rest string, ok bool) {
	plain := true
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			if plain {
				return s[:i], s[i+1:], true
			}
			return unescape(s[:i]), s[i+1:], true
		case '\\':
			plain = false
			i++
		}
	}
	return "", "", false
}

func unescape(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			switch s[i] {
			case 'n':
				out = append(out, '\n')
			case '\\', '"':
				out = append(out, s[i])
			default:
				out = append(out, '\\', s[i])
			}
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

func nameByte(c byte, at int) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == ':':
		return true
	}
	return at > 0 && c >= '0' && c <= '9'
}

func trimLeft(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	return s
}
