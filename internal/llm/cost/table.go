package cost

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/pattern"
)

// Entry is one line of a price table.
type Entry struct {
	// Model is a pattern: * stands for any characters.
	Model string
	// From is the first instant at which the entry holds; the zero time is the beginning.
	From  time.Time
	Price Price
	// GPU, when set, takes the place of the prices for input and output tokens.
	GPU *GPU
}

// Table finds the price of a model at a time. It does not change, and is safe for concurrent use; the meters of its GPU entries are too.
type Table struct {
	models []byModel
}

// byModel is the entries of one pattern, the latest first.
type byModel struct {
	pattern string
	entries []Entry
}

// NewTable returns a table. The first pattern that matches a model wins; of its entries the latest one that had begun.
func NewTable(entries []Entry) (*Table, error) {
	t := &Table{}
	for _, e := range entries {
		if e.Model == "" {
			return nil, errors.New(`model: must be the name of a model, or a pattern such as "Qwen/*" or "*"`)
		}
		i := slices.IndexFunc(t.models, func(m byModel) bool { return m.pattern == e.Model })
		if i < 0 {
			i = len(t.models)
			t.models = append(t.models, byModel{pattern: e.Model})
		}
		m := &t.models[i]
		if slices.ContainsFunc(m.entries, func(o Entry) bool { return o.From.Equal(e.From) }) {
			return nil, fmt.Errorf("model %s is listed twice from the same day; give the later one a valid_from", quote(e.Model))
		}
		m.entries = append(m.entries, e)
	}
	for _, m := range t.models {
		slices.SortFunc(m.entries, func(a, b Entry) int { return b.From.Compare(a.From) })
	}
	return t, nil
}

// Find is the entry of a model for a request that began at an instant, nil when there is none. The empty name is a model that nobody
// named; only a pattern of * alone is for it.
func (t *Table) Find(model string, at time.Time) *Entry {
	for i := range t.models {
		m := &t.models[i]
		if !pattern.Match(m.pattern, model) || (model == "" && m.pattern != "*") {
			continue
		}
		for j := range m.entries {
			if !m.entries[j].From.After(at) {
				return &m.entries[j]
			}
		}
	}
	return nil
}
