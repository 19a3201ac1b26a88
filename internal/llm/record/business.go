package record

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// business writes what the business asks of a request. A cost is there twice: as a number for sums that may be off by the last digit of
// a double, and as a decimal text for bills.
func (w *Writer) business(q *join.Logical, a pcommon.Map) {
	r := &q.Request
	for _, d := range r.Dimensions {
		a.PutStr(d.Name, d.Value)
	}
	if r.Outcome != request.OutcomeNone {
		a.PutStr(names.SLOOutcome, r.Outcome.String())
		words(a, names.SLOViolated, r.Violated.Names(request.Violations))
	}
	if c := &q.Charge; c.Known {
		number, text := c.Amount.Both()
		a.PutDouble(names.Cost, number)
		a.PutStr(names.CostExact, text)
		a.PutStr(names.CostCurrency, c.Currency)
		if !c.Saved.IsZero() {
			a.PutStr(names.CostSavedExact, c.Saved.String())
		}
		if r.Reported {
			a.PutBool(names.CostReported, true)
		} else if r.Price != nil {
			a.PutStr(names.Price, w.priceText(r.Price))
		}
	}
	words(a, names.Quality, r.Quality.Names(request.Issues))
	for _, f := range [...]struct {
		key string
		v   bool
	}{
		{names.Warmup, r.Warmup},
		{names.Oversize, r.Oversize},
		{names.Wasted, r.Wasted},
		{names.Unpriced, r.Unpriced},
		{names.RecordPart, !q.First},
	} {
		if f.v {
			a.PutBool(f.key, true)
		}
	}
	if r.ColdStart.Known && q.First {
		a.PutDouble(names.ColdStart, r.ColdStart.Value)
	}
}

// priceText is the text of a price; most requests of a batch have the same.
func (w *Writer) priceText(p *cost.Price) string {
	if p != w.price {
		w.price, w.text = p, p.String()
	}
	return w.text
}

func words(a pcommon.Map, key string, list []string) {
	if len(list) == 0 {
		return
	}
	s := a.PutEmptySlice(key)
	for _, w := range list {
		s.AppendEmpty().SetStr(w)
	}
}
