// Package page reads the text an inference engine serves at /metrics: the Prometheus text format and OpenMetrics.
//
// It is tolerant on purpose. Engines print values no parser accepts (`-nan(ind)`), cut a page short when they are killed, print TYPE twice or
// HELP without a sample; a bad line loses that line and is counted, the rest of the page stands. It knows nothing of engines: families,
// labels and values come out as they were printed.
package page

// Type is what a page says a family is.
type Type uint8

// The types of the two text formats; what a page does not declare is TypeUnknown.
const (
	TypeUnknown Type = iota
	TypeCounter
	TypeGauge
	TypeHistogram
	TypeSummary
	TypeInfo
)

var typeNames = map[string]Type{
	"counter": TypeCounter, "gauge": TypeGauge, "histogram": TypeHistogram, "summary": TypeSummary, "info": TypeInfo,
	"untyped": TypeUnknown, "unknown": TypeUnknown, "stateset": TypeGauge, "gaugehistogram": TypeHistogram,
}

// Label is one label pair of a sample, unescaped.
type Label struct{ Name, Value string }

// Sample is one value with its labels. The labels belong to the page.
type Sample struct {
	Labels []Label
	Value  float64
}

// Label returns the value of a label and whether the sample has it.
func (s *Sample) Label(name string) (string, bool) {
	for i := range s.Labels {
		if s.Labels[i].Name == name {
			return s.Labels[i].Value, true
		}
	}
	return "", false
}

// Page is one scraped page. Its strings point into the text it was read from, its slices into buffers of the Parser that made it: it is valid
// until the next Parse of that Parser. What must live longer has to be cloned.
type Page struct {
	// Lines is the number of sample lines that were read, BadLines the number of lines that were lost.
	Lines, BadLines int
	// Dropped is the number of sample lines beyond the cap.
	Dropped int
	// Cut is true when the text stops in the middle: what is absent may only be missing.
	Cut bool
	// Names are the sample names in the order in which they first appear.
	Names []string

	byName   map[string]int32 // name → head of its chain in runs
	runs     []run
	samples  []Sample
	types    map[string]Type
	helps    map[string]string
	declared []string
}

// run is a stretch of samples that share a name; the runs of one name are chained, because some engines print a family in pieces.
type run struct {
	first, end int32
	next, tail int32
}

// Empty reports whether the page has no sample at all.
func (p *Page) Empty() bool { return len(p.samples) == 0 }

// Has reports whether the page has a sample of this exact name.
func (p *Page) Has(name string) bool { _, ok := p.byName[name]; return ok }

// Type returns the declared type of a family name, as it is spelled in its TYPE line.
func (p *Page) Type(family string) (Type, bool) { t, ok := p.types[family]; return t, ok }

// Help returns the help text of a family name, as it is spelled in its HELP line; not unescaped.
func (p *Page) Help(family string) string { return p.helps[family] }

// Declared returns the family names of all TYPE and HELP lines, in order, whether or not they have samples.
func (p *Page) Declared() []string { return p.declared }

// Samples returns the samples of this exact name in the order of the page. The slice belongs to the page.
func (p *Page) Samples(name string) []Sample {
	i, ok := p.byName[name]
	if !ok {
		return nil
	}
	r := p.runs[i]
	if r.next < 0 {
		return p.samples[r.first:r.end:r.end]
	}
	var all []Sample
	for ; i >= 0; i = p.runs[i].next {
		all = append(all, p.samples[p.runs[i].first:p.runs[i].end]...)
	}
	return all
}

// Value returns the value of the first sample of this exact name.
func (p *Page) Value(name string) (float64, bool) {
	i, ok := p.byName[name]
	if !ok {
		return 0, false
	}
	return p.samples[p.runs[i].first].Value, true
}
