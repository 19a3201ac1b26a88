package join

import (
	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Charge is what a part of a request costs.
type Charge struct {
	// Amount is the cost, Saved what tokens from a cache would have cost more; Known says that there is a price, or the source's own cost.
	Amount, Saved cost.Amount
	Currency      string
	Known         bool
}

// charge is what tokens cost by the price of the request that they belong to; first adds what a request costs beside its tokens.
func charge(r *request.Request, first bool) Charge {
	return chargeAt(r.Price, r.Usage(), reports(r), first)
}

func chargeAt(p *cost.Price, u cost.Usage, reported, first bool) Charge {
	if p == nil || (!reported && (!first || p.Request.IsZero())) {
		return Charge{}
	}
	c := Charge{Currency: p.Currency, Known: true}
	c.Amount, c.Saved = p.Tokens(u)
	if first {
		c.Amount = c.Amount.Add(p.Request)
	}
	return c
}

// price says what a part of a group costs. What a layer says that the request cost wins over prices, and is counted with the first part;
// one that comes after it is too late: what was counted is not taken back.
func (g *group) price(l *Logical) {
	switch {
	case g.charged:
	case l.Reported && g.under:
		g.charged = true // with the layer
	case l.Reported && l.First:
		g.charged = true
		l.Charge = Charge{Amount: l.Cost.Value, Currency: l.Currency, Known: true}
	default:
		l.Charge = charge(&l.Request, l.First)
	}
}

// price says what a request without an engine's span costs: the sum over the innermost layers that report tokens, each by its own cost,
// else its own price; a fallback's models cost what they cost. Where one such layer stands for the request, the cost that another of its
// layers reports is the same.
func (j *Joiner) price(l *Logical, leaves []*outer) {
	if l.Reported && l.First && len(leaves) < 2 {
		l.Charge = Charge{Amount: l.Cost.Value, Currency: l.Currency, Known: true}
		return
	}
	if len(leaves) == 0 {
		l.Charge = charge(&l.Request, l.First)
		return
	}
	for i, o := range leaves {
		r := &o.req
		c := Charge{Amount: r.cost.Value, Currency: j.sharing.currency(r), Known: true}
		if !r.reported {
			p := j.sharing.price(r)
			if p == nil {
				p = l.Price
			}
			c = chargeAt(p, r.usage(), r.reports(), l.First && i == 0)
		}
		switch {
		case !c.Known:
		case !l.Charge.Known:
			l.Charge = c
		case c.Currency == l.Charge.Currency:
			l.Charge.Amount, l.Charge.Saved = l.Charge.Amount.Add(c.Amount), l.Charge.Saved.Add(c.Saved)
		}
	}
}
