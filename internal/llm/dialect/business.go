package dialect

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// costKeys are the keys under which sources say what a request cost, in US dollars. Source: recordings of LiteLLM 1.81.16 (v1 spans) and
// 1.98.1 (v2 spans) and of OpenLIT; OpenInference's semantic conventions.
var costKeys = map[string]spelling{
	"gen_ai.cost.total_cost": {fieldReportedCost, 0},
	"litellm.cost.total":     {fieldReportedCost, 1},
	"gen_ai.usage.cost":      {fieldReportedCost, 2},
	"llm.cost.total":         {fieldReportedCost, 3},
}

// reportedCurrency is the currency of the costs that sources report.
const reportedCurrency = "USD"

// maxReported is the largest cost that is believed of one request.
const maxReported = 1e6

// reportedCost reads what the source says that the request cost. It writes 0 for a model that it has no price for, which is every model
// that is served at home, so that 0 says nothing.
func (s *source) reportedCost(r *request.Request) {
	if !s.has(fieldReportedCost) {
		return
	}
	d, ok := number(s.values[fieldReportedCost])
	if !ok || d < 0 || d > maxReported {
		r.Reject("cost")
		return
	}
	if a, ok := cost.FromFloat(d); ok && !a.IsZero() {
		r.Cost, r.Currency, r.Reported = request.Some(a), reportedCurrency, true
	}
}

// businessKeys are the attributes that WriteBusiness leaves on a span.
var businessKeys = map[string]spelling{
	names.SLOOutcome:        {fieldOwnOutcome, 0},
	names.SLOViolated:       {fieldOwnViolated, 0},
	names.Cost:              {fieldOwnCost, 0},
	names.CostCurrency:      {fieldOwnCurrency, 0},
	names.CostReported:      {fieldOwnReported, 0},
	names.Price:             {fieldOwnPrice, 0},
	names.Unpriced:          {fieldOwnUnpriced, 0},
	names.Quality:           {fieldOwnQuality, 0},
	names.Warmup:            {fieldOwnWarmup, 0},
	names.ColdStart:         {fieldOwnColdStart, 0},
	names.Oversize:          {fieldOwnOversize, 0},
	names.Wasted:            {fieldOwnWasted, 0},
	names.Part:              {fieldOwnPart, 0},
	names.DimensionsDefault: {fieldOwnDefaults, 0},
}

// maxDimensions bounds the dimensions that are read from one span.
const maxDimensions = 16

// dimension keeps a dimension that llmspan has written, as the walk passes it.
func (s *slots) dimension(k string, v pcommon.Value) {
	name, ok := strings.CutPrefix(k, names.Dimension)
	if !ok || v.Type() != pcommon.ValueTypeStr || len(s.dims) >= maxDimensions || !isName(name, 64) || v.Str() == "" || len(v.Str()) > 64 {
		return
	}
	s.dims = append(s.dims, request.Dimension{Name: name, Value: v.Str()})
}

// business reads what WriteBusiness has left.
func (s *source) business(r *request.Request) {
	r.Dimensions = s.dims
	for _, n := range s.words(fieldOwnDefaults, maxDimensions) {
		for i := range r.Dimensions {
			if r.Dimensions[i].Name == n {
				r.Dimensions[i].Default = true
			}
		}
	}
	if r.LayerOnly {
		return
	}
	if s.flag(fieldOwnPart) {
		r.Part, r.LayerOnly = true, true
		return
	}
	r.Outcome = request.ParseOutcome(s.text(fieldOwnOutcome))
	for _, n := range s.words(fieldOwnViolated, len(request.Violations)) {
		r.Violated |= request.Flag(n, request.Violations)
	}
	for _, n := range s.words(fieldOwnQuality, len(request.Issues)) {
		r.Quality |= request.Flag(n, request.Issues)
	}
	r.Warmup, r.Oversize = s.flag(fieldOwnWarmup), s.flag(fieldOwnOversize)
	r.Wasted, r.Unpriced = s.flag(fieldOwnWasted), s.flag(fieldOwnUnpriced)
	if s.has(fieldOwnColdStart) {
		if d, ok := number(s.values[fieldOwnColdStart]); ok && d >= 0 && d <= maxSeconds {
			r.ColdStart = request.Some(d)
		}
	}
	if text := s.text(fieldOwnPrice); text != "" {
		if p, err := cost.ParsePrice(text); err == nil {
			r.Price = p
		}
	}
	currency := s.text(fieldOwnCurrency)
	if !s.has(fieldOwnCost) || !cost.IsCurrency(currency) {
		return
	}
	if d, ok := number(s.values[fieldOwnCost]); ok {
		if a, ok := cost.FromFloat(d); ok {
			r.Cost, r.Currency, r.Reported = request.Some(a), currency, s.flag(fieldOwnReported)
		}
	}
}

// words are the strings of an array, at most limit of them.
func (s *slots) words(f field, limit int) []string {
	if !s.has(f) || s.values[f].Type() != pcommon.ValueTypeSlice {
		return nil
	}
	var out []string
	for _, v := range s.values[f].Slice().All() {
		if v.Type() == pcommon.ValueTypeStr && len(out) < limit {
			out = append(out, v.Str())
		}
	}
	return out
}

// WriteBusiness leaves on a span what the business asks, in place of what stood there.
func WriteBusiness(r *request.Request, a pcommon.Map) {
	var defaults []string
	for _, d := range r.Dimensions {
		a.PutStr(names.Dimension+d.Name, d.Value)
		if d.Default {
			defaults = append(defaults, d.Name)
		}
	}
	putWords(a, names.DimensionsDefault, defaults)
	if r.Part {
		a.PutBool(names.Part, true)
	}
	if r.LayerOnly {
		return
	}
	if r.Outcome != request.OutcomeNone {
		a.PutStr(names.SLOOutcome, r.Outcome.String())
		putWords(a, names.SLOViolated, r.Violated.Names(request.Violations))
	}
	if r.Price != nil {
		a.PutStr(names.Price, r.Price.String())
	}
	if r.Cost.Known {
		a.PutDouble(names.Cost, r.Cost.Value.Float64())
		a.PutStr(names.CostCurrency, r.Currency)
		if r.Reported {
			a.PutBool(names.CostReported, true)
		}
	}
	putWords(a, names.Quality, r.Quality.Names(request.Issues))
	for _, f := range [...]struct {
		key string
		v   bool
	}{{names.Warmup, r.Warmup}, {names.Oversize, r.Oversize}, {names.Wasted, r.Wasted}, {names.Unpriced, r.Unpriced}} {
		if f.v {
			a.PutBool(f.key, true)
		}
	}
	if r.ColdStart.Known {
		a.PutDouble(names.ColdStart, r.ColdStart.Value)
	}
}

// putWords writes an array of strings; an empty one removes it.
func putWords(a pcommon.Map, key string, words []string) {
	if len(words) == 0 {
		a.Remove(key)
		return
	}
	if old, ok := a.Get(key); ok && old.Type() == pcommon.ValueTypeSlice && slices.EqualFunc(old.Slice().AsRaw(), words, func(x any, w string) bool { return x == w }) {
		return
	}
	to := a.PutEmptySlice(key)
	to.EnsureCapacity(len(words))
	for _, w := range words {
		to.AppendEmpty().SetStr(w)
	}
}
