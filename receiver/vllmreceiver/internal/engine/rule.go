package engine

// Table says what an engine prints.
type Table struct {
	// Name is the value of llm.engine.kind.
	Name string
	// Title and Note are for people: the documentation, the logs.
	Title, Note string
	// Prefixes are how the engine's own families begin; a family with one of them that no rule and no entry of Ignored names is unknown.
	Prefixes []string
	// Model, Rank and Replica are the labels that hold the served model's name, the data-parallel rank and the instance, first present wins.
	Model, Rank, Replica []string
	// Copies are the labels of ranks that print copies of one value: of each group only the lowest rank counts.
	Copies []string
	// Total is a label whose empty value marks the total of the others.
	Total string
	// Pid is a label of processes that each print a gauge, all but one of them zero.
	Pid string
	// Required are sample names one of which a healthy page has, by group; a group that has none makes the page incomplete.
	Required [][]string
	// Rules are what is mapped.
	Rules []Rule
	// Ignored are families that are known and deliberately not mapped; a trailing * stands for any ending.
	Ignored []string
}

// Rule maps one canonical metric (with one set of constant attributes) onto a page. The first alternative that the page has wins, the others
// are not looked at: during a deprecation both names of a concept are on the page, and their sum is nonsense.
type Rule struct {
	Metric *Metric
	// Const are attributes every point of the rule gets.
	Const []Attr
	// From are the alternatives, best first.
	From []Source
}

// Source is one way in which a page can carry a concept: a sum of terms, or a function for what no sum expresses.
type Source struct {
	// Terms are added up; the first one has to be there, the others may be absent.
	Terms []Term
	// Func computes points from the page; it is used instead of Terms.
	Func func(*view) []Point
	// Reads are the families that Func looks at.
	Reads []string
	// InheritModel gives points without a model the page's model, when the page has exactly one.
	InheritModel bool
	// Doc replaces the text that the documentation makes from Terms; Versions says which versions have it.
	Doc, Versions string
}

// Term is one family of a page.
type Term struct {
	// Family is the name without the suffixes of its samples. For a counter `x` both `x_total` and `x` are looked for.
	Family string
	// Part is what of the family is meant; for a histogram that feeds a counter.
	Part Part
	// Count is for PartPair: the counter that counts what Family sums up.
	Count string
	// Scale converts to the canonical unit; 0 means 1. A negative scale subtracts.
	Scale float64
	// Where keeps only samples whose label has this value.
	Where []Attr
	// Keep copies page labels to attributes; every other label is merged away.
	Keep []Keep
	// Max merges by the largest value in place of the sum.
	Max bool
	// Blocks tells that older versions count in KV blocks when their HELP says so: the value is multiplied by the block size, and without a
	// known block size it is not exported.
	Blocks bool
}

// Part is a part of a family.
type Part uint8

// What a term reads.
const (
	PartValue Part = iota // the sample itself, or the whole histogram
	PartCount             // the _count of a histogram
	PartSum               // the _sum of a histogram
	PartPair              // two counters, a sum and a count, read as a histogram without buckets
)

// Keep copies a page label to an attribute.
type Keep struct {
	Label, Attr string
	// Map changes the value ("" when the sample lacks the label). An empty result leaves the attribute out, false drops the sample.
	Map func(string) (string, bool)
}

// Attr is one attribute of a point, or one label to match.
type Attr struct{ Key, Value string }

// one is a source with a single term.
func one(t Term) Source { return Source{Terms: []Term{t}} }

func family(names ...string) []Source {
	s := make([]Source, len(names))
	for i, n := range names {
		s[i] = one(Term{Family: n})
	}
	return s
}

func keeping(label, attr string, names ...string) []Source {
	s := make([]Source, len(names))
	for i, n := range names {
		s[i] = one(Term{Family: n, Keep: []Keep{{Label: label, Attr: attr}}})
	}
	return s
}

func largest(names ...string) []Source {
	s := make([]Source, len(names))
	for i, n := range names {
		s[i] = one(Term{Family: n, Max: true})
	}
	return s
}

func (s Source) versions(v string) Source { s.Versions = v; return s }

// since says the same of every alternative.
func since(v string, s []Source) []Source {
	for i := range s {
		s[i].Versions = v
	}
	return s
}
