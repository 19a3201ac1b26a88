package engine

import (
	"strings"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/page"
)

// Mapper turns pages into points. It keeps buffers, so one Mapper serves one endpoint; not safe for concurrent use.
type Mapper struct {
	view   view
	points []Point
}

// Result is what a page says. Points are valid until the next call; their attribute values point into the page.
type Result struct {
	Points []Point
	// Invalid counts values no metric can have: a negative counter, a histogram without its end.
	Invalid int
	// Unknown are families with the engine's own prefix that its table does not name, at most maxUnknownNames of UnknownCount.
	Unknown      []string
	UnknownCount int
	// Missing are the first names of the groups of required families of which the page has none.
	Missing []string
	// ProcessStart is when the serving process began, in Unix seconds; 0 when the page does not say.
	ProcessStart float64
	// Model is the model's name when the page has exactly one.
	Model string
}

// Map reads a page by a table.
func (m *Mapper) Map(p *page.Page, t *Table) Result {
	m.points = m.points[:0]
	v := &m.view
	v.page, v.table, v.invalid = p, t, 0
	r := Result{Missing: missing(p, t)}
	if start, ok := p.Value("process_start_time_seconds"); ok && start > 0 {
		r.ProcessStart = start
	}
	inherit := make([]int, 0, 8)
	for i := range t.Rules {
		rule := &t.Rules[i]
		for j := range rule.From {
			src := &rule.From[j]
			got := v.source(rule, src)
			if rule.Metric.ZeroMeansOff && allZero(got) {
				continue
			}
			for k := range got {
				got[k].Metric = rule.Metric
				if src.InheritModel {
					inherit = append(inherit, len(m.points))
				}
				m.points = append(m.points, got[k])
			}
			if len(got) > 0 {
				break
			}
		}
	}
	r.Model = onlyModel(m.points)
	if r.Model != "" {
		for _, i := range inherit {
			m.points[i].Attrs = addAttr(m.points[i].Attrs, AttrModel, r.Model)
		}
	}
	r.Points, r.Invalid = m.points, v.invalid
	r.Unknown, r.UnknownCount = unknown(p, t)
	return r
}

func (v *view) source(rule *Rule, src *Source) []Point {
	if src.Func == nil {
		return v.terms(rule.Metric, src.Terms, rule.Const)
	}
	got := src.Func(v)
	for i := range got {
		for _, c := range rule.Const {
			got[i].Attrs = addAttr(got[i].Attrs, c.Key, c.Value)
		}
	}
	return got
}

func allZero(points []Point) bool {
	for i := range points {
		if points[i].Value != 0 {
			return false
		}
	}
	return true
}

func onlyModel(points []Point) string {
	model := ""
	for i := range points {
		for _, a := range points[i].Attrs {
			if a.Key != AttrModel || a.Value == model {
				continue
			}
			if model != "" {
				return ""
			}
			model = a.Value
		}
	}
	return model
}

// missing lists the groups of required families that the page lacks. With several API servers vLLM declares families and prints them with their
// first value: on a page that has figures a declaration will do, on one without any it is the sign of statistics that are off.
func missing(p *page.Page, t *Table) []string {
	var none, declared []string
next:
	for _, group := range t.Required {
		said := false
		for _, name := range group {
			if p.Has(name) {
				continue next
			}
			said = said || isDeclared(p, name)
		}
		if said {
			declared = append(declared, group[0])
		} else {
			none = append(none, group[0])
		}
	}
	if len(none)+len(declared) == len(t.Required) {
		return append(none, declared...)
	}
	return none
}

func isDeclared(p *page.Page, name string) bool {
	if _, ok := p.Type(name); ok {
		return true
	}
	_, ok := p.Type(base(name))
	return ok
}

const maxUnknownNames = 5

// unknown lists the engine's own families that its table does not name.
func unknown(p *page.Page, t *Table) (names []string, count int) {
	k := knownOf(t)
	last := ""
	for _, name := range p.Names {
		if !hasPrefix(name, t.Prefixes) || k.has(name) {
			continue
		}
		family := base(name)
		if family == last {
			continue // x_bucket, x_sum, x_count and x_created are one family
		}
		last = family
		count++
		if len(names) < maxUnknownNames {
			names = append(names, strings.Clone(family))
		}
	}
	return names, count
}

func hasPrefix(name string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

var suffixes = []string{"_bucket", "_sum", "_count", "_created", "_total"}

// base takes the suffixes of samples off a name.
func base(name string) string {
	for _, s := range suffixes {
		if b, ok := strings.CutSuffix(name, s); ok && b != "" {
			return b
		}
	}
	return name
}
