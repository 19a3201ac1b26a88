package page

import (
	"strings"
)

// Parser reads pages. It keeps its buffers between pages, so one Parser serves one endpoint; not safe for concurrent use.
type Parser struct {
	// MaxSamples bounds the sample lines of a page; further ones are dropped and counted. Zero means no bound.
	MaxSamples int

	page   Page
	labels []Label
	spans  []span
	last   string // the name of the last sample
}

// span is where the labels of a sample lie in Parser.labels: the slice may move while the page is read.
type span struct{ from, to int32 }

// Parse reads a text. cut tells that the text is known to be incomplete (the connection broke, a size cap was reached); a text whose last line
// has no newline is taken for cut too, since half a number reads like a number. It never fails: what cannot be read is counted.
func (ps *Parser) Parse(text string, cut bool) *Page {
	ps.reset()
	p := &ps.page
	p.Cut = cut
	for len(text) > 0 {
		line, rest, ended := strings.Cut(text, "\n")
		text = rest
		line = strings.TrimSuffix(line, "\r")
		if !ended && line != "# EOF" && strings.TrimSpace(line) != "" {
			p.Cut = true
			p.BadLines++
			break
		}
		ps.line(line)
	}
	for i := range p.samples {
		s := ps.spans[i]
		p.samples[i].Labels = ps.labels[s.from:s.to:s.to]
	}
	return p
}

func (ps *Parser) reset() {
	p := &ps.page
	if p.byName == nil {
		p.byName, p.types, p.helps = map[string]int32{}, map[string]Type{}, map[string]string{}
	}
	clear(p.byName)
	clear(p.types)
	clear(p.helps)
	clear(ps.labels)
	clear(p.samples)
	*p = Page{
		byName: p.byName, types: p.types, helps: p.helps, declared: p.declared[:0],
		Names: p.Names[:0], runs: p.runs[:0], samples: p.samples[:0],
	}
	ps.labels, ps.spans, ps.last = ps.labels[:0], ps.spans[:0], ""
}

func (ps *Parser) line(line string) {
	line = trimBlank(line)
	if line == "" {
		return
	}
	if line[0] == '#' {
		ps.comment(line)
		return
	}
	p := &ps.page
	if ps.MaxSamples > 0 && len(p.samples) >= ps.MaxSamples {
		p.Dropped++
		return
	}
	from := len(ps.labels)
	name, value, ok := ps.sample(line)
	if !ok {
		ps.labels = ps.labels[:from]
		p.BadLines++
		return
	}
	p.Lines++
	ps.add(name, value, span{int32(from), int32(len(ps.labels))})
}

// comment reads HELP and TYPE and passes over everything else that begins with '#'.
func (ps *Parser) comment(line string) {
	p := &ps.page
	word, rest := cutWord(trimBlank(line[1:]))
	if word != "HELP" && word != "TYPE" {
		return
	}
	name, rest := cutWord(rest)
	if n, ok := quotedName(name); ok {
		name = n
	}
	if name == "" {
		p.BadLines++
		return
	}
	if word == "HELP" {
		if _, again := p.helps[name]; !again {
			p.helps[name] = rest
			ps.declare(name)
		}
		return
	}
	t, known := typeNames[strings.ToLower(trimBlank(rest))]
	if _, again := p.types[name]; again || !known {
		p.BadLines++
		return
	}
	p.types[name] = t
	ps.declare(name)
}

func (ps *Parser) declare(name string) {
	p := &ps.page
	if n := len(p.declared); n > 0 && p.declared[n-1] == name {
		return
	}
	p.declared = append(p.declared, name)
}

func (ps *Parser) add(name string, value float64, labels span) {
	p := &ps.page
	at := int32(len(p.samples))
	p.samples = append(p.samples, Sample{Value: value})
	ps.spans = append(ps.spans, labels)

	if n := len(p.runs); n > 0 && ps.last == name {
		p.runs[n-1].end++ // the line before had this name too
		return
	}
	ps.last = name
	head, known := p.byName[name]
	if known {
		if last := &p.runs[p.runs[head].tail]; last.end == at {
			last.end++
			return
		}
	}
	r := int32(len(p.runs))
	p.runs = append(p.runs, run{first: at, end: at + 1, next: -1, tail: r})
	if !known {
		p.byName[name] = r
		p.Names = append(p.Names, name)
		return
	}
	p.runs[p.runs[head].tail].next = r
	p.runs[head].tail = r
}
