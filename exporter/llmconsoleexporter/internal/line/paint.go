package line

import "strings"

// style is an ANSI SGR parameter (ECMA-48 §8.3.117).
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// painter joins fields with one space, each in its style when colours are on.
type painter struct {
	b  strings.Builder
	on bool
}

func (p *painter) field(s style, text string) {
	if p.b.Len() > 0 {
		p.b.WriteByte(' ')
	}
	p.paint(s, text)
}

// labelled writes a figure behind its name; the name is dim, so that the eye falls on the figures.
func (p *painter) labelled(name, figure string) {
	p.field(dim, name)
	p.field(plain, figure)
}

func (p *painter) paint(s style, text string) {
	if !p.on || s == plain {
		p.b.WriteString(text)
		return
	}
	p.b.WriteString("\x1b[" + string(s) + "m" + text + "\x1b[0m")
}

func statusColor(status string) style {
	switch status {
	case "ok":
		return green
	case "error":
		return red
	}
	return yellow
}
