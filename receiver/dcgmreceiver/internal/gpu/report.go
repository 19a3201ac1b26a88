package gpu

import (
	"math"
	"slices"
	"time"
)

// tally gathers the samples of one field (of one link) of one device in one reading.
type tally struct {
	mapping int
	link    int
	n       int
	sum     float64
	max     float64
	last    Value
	at      time.Time
}

// maxRate is beyond any link: 1 PB/s. A larger rate is a fault of the source.
const maxRate = 1e15

// report fills in a device's points. dr is nil for a GPU that is no longer listed.
func (t *Tracker) report(out *Report, dev *DeviceReport, tr *tracked, dr *DeviceReading, r *Reading) {
	if dr == nil {
		dr = &DeviceReading{State: StateLost}
	}
	tallies, s := t.tallyUp(out, tr, dr, r)
	ev := &evidence{state: dr.State, health: dr.Health, healthKnown: dr.HealthKnown}
	t.fieldPoints(dev, tr, tallies, s, ev, r)
	t.statusPoints(dev, tr, dr, ev)
	if dr.State != StateLost {
		t.doubtPoints(dev, tr, s, r)
		t.agePoint(dev, tallies, r)
	}
	slices.SortStableFunc(dev.Points, func(a, b Point) int { return t.plan.order[a.Metric] - t.plan.order[b.Metric] })
}

// tallyUp checks every sample, integrates the rates and sums up the rest. Each sample is either used or dropped for
// one reason.
func (t *Tracker) tallyUp(out *Report, tr *tracked, dr *DeviceReading, r *Reading) ([]tally, *signs) {
	s := &signs{utilization: -1}
	tallies := make([]tally, 0, len(dr.Samples))
	// Samples of a field come together, so that the last tally is nearly always the right one.
	find := func(mapping, link int) *tally {
		for i := len(tallies) - 1; i >= 0; i-- {
			if tallies[i].mapping == mapping && tallies[i].link == link {
				return &tallies[i]
			}
		}
		tallies = append(tallies, tally{mapping: mapping, link: link})
		return &tallies[len(tallies)-1]
	}
	out.Values += len(dr.Samples)
	for i := range dr.Samples {
		sm := &dr.Samples[i]
		mappings := t.plan.byField[sm.Field]
		why := t.check(sm, mappings, dr.State, r)
		if why != ReasonOK {
			out.Dropped[why]++
			continue
		}
		duplicate := false
		for _, mi := range mappings {
			ty := find(mi, sm.Link)
			v := sm.Value.Float()
			if ty.n > 0 && !sm.At.After(ty.at) {
				duplicate = true
				if v != ty.last.Float() {
					s.disagree = true
					if v > ty.last.Float() && ty.n == 1 {
						ty.sum, ty.max, ty.last = v, v, sm.Value
					}
				}
				continue
			}
			ty.n, ty.sum, ty.max, ty.last, ty.at = ty.n+1, ty.sum+v, max(ty.max, v), sm.Value, sm.At
			if m := &t.plan.Mappings[mi]; m.How == HowRate {
				c := t.counterOf(tr, mi)
				c.integrate(r.At, sm.At, v*m.Scale, r.Step)
			}
		}
		if duplicate {
			out.Dropped[ReasonDuplicate]++
		} else {
			out.Used++
		}
	}
	return tallies, s
}

// check says why a sample must not be used.
func (t *Tracker) check(sm *Sample, mappings []int, state State, r *Reading) Reason {
	if len(mappings) == 0 {
		return ReasonUnmapped
	}
	if sm.Reason != ReasonOK {
		return sm.Reason
	}
	if state == StateLost {
		return ReasonLost
	}
	m := &t.plan.Mappings[mappings[0]]
	why := sm.Value.Check()
	if m.Metric.Kind == KindCounter {
		why = sm.Value.CheckCounter()
	}
	if why != ReasonOK {
		return why
	}
	v := sm.Value.Float() * m.Scale
	switch {
	case v < 0 && m.Metric.Unit != "Cel" && m.Class != ClassExtra,
		m.Metric.Unit == "1" && m.Metric.Kind == KindGauge && !m.Metric.Integer && m.Class != ClassExtra && v > 2,
		m.How == HowRate && v > maxRate,
		m.Metric.Integer && math.Abs(v) > math.MaxInt64/2:
		return ReasonRange
	}
	if age := r.MaxAge[m.Class]; age > 0 && r.Clock.Sub(sm.At) > age {
		return ReasonStale
	}
	return ReasonOK
}

// counterOf is the state of the series a mapping feeds; another field taking over starts the stream anew.
func (t *Tracker) counterOf(tr *tracked, mapping int) *counter {
	c := &tr.counters[t.plan.series[mapping]]
	if f := t.plan.Mappings[mapping].Field; c.field != f {
		*c = counter{field: f}
	}
	return c
}

// fieldPoints turns tallies into points: of the fields that feed one series the one of the lowest rank wins.
func (t *Tracker) fieldPoints(dev *DeviceReport, tr *tracked, tallies []tally, s *signs, ev *evidence, r *Reading) {
	best := make(map[[2]int]int, len(tallies)) // series and link → index into tallies
	for i := range tallies {
		key := [2]int{t.plan.series[tallies[i].mapping], tallies[i].link}
		j, taken := best[key]
		if !taken || t.plan.Mappings[tallies[i].mapping].Rank < t.plan.Mappings[tallies[j].mapping].Rank {
			best[key] = i
		}
	}
	memory := map[Field]float64{}
	for i := range tallies {
		ty := &tallies[i]
		if best[[2]int{t.plan.series[ty.mapping], ty.link}] != i {
			continue
		}
		m := &t.plan.Mappings[ty.mapping]
		t.observe(m.Field, ty, s, ev)
		switch m.Field {
		case 250, 251, 252, 253, 254:
			memory[m.Field] = ty.last.Float()
		}
		switch {
		case m.How == HowBits:
			for _, b := range Bits {
				on := int64(0)
				if ty.last.Int&b.Mask != 0 {
					on = 1
				}
				dev.Points = append(dev.Points, Point{Metric: m.Metric, Value: Int(on), Start: tr.first, Attrs: []Attr{{Key: AttrReason, Str: b.Reason}}})
			}
			continue
		case m.How == HowUp:
			// NVML_NVLINK_STATE_*: 1 active, 2 asleep to save power and ready; 0 inactive, 3 not usable.
			on := int64(0)
			if f := ty.last.Float(); f == 1 || f == 2 {
				on = 1
			}
			dev.Points = append(dev.Points, Point{
				Metric: m.Metric, Value: Int(on), Start: tr.first,
				Attrs: []Attr{{Key: AttrNVLink, Int: int64(ty.link), IsInt: true}},
			})
			continue
		case m.Metric.Kind == KindCounter:
			c := t.counterOf(tr, ty.mapping)
			v := Int(c.whole)
			if m.How == HowDirect {
				if !c.follow(r.At, ty.last) {
					s.fell = true
				}
				v = scaled(m, ty.last)
			} else if !m.Metric.Integer {
				v = Double(float64(c.whole) + c.remainder)
			}
			dev.Points = append(dev.Points, Point{Metric: m.Metric, Value: v, Start: c.start, Attrs: m.Attrs})
			continue
		}
		p := Point{Metric: m.Metric, Attrs: m.Attrs, Value: scaled(m, ty.last)}
		if ty.n > 1 && !m.Metric.Integer {
			p.Value = Double(ty.sum / float64(ty.n) * m.Scale)
		}
		if m.Metric.Kind == KindUpDown {
			p.Start = tr.first
		}
		dev.Points = append(dev.Points, p)
	}
	t.deriveMemory(dev, tr, memory)
}

// deriveMemory fills in what the other fields imply. NVML's memory v2 says total = used + free + reserved, and DCGM's
// ratio is used / (total - reserved).
func (t *Tracker) deriveMemory(dev *DeviceReport, tr *tracked, mib map[Field]float64) {
	free, hasFree := mib[251]
	used, hasUsed := mib[252]
	reserved, hasReserved := mib[253]
	if _, has := mib[250]; !has && hasFree && hasUsed && hasReserved && t.plan.On("hw.gpu.memory.limit") {
		dev.Points = append(dev.Points, Point{
			Metric: metricByName["hw.gpu.memory.limit"], Start: tr.first, Value: Int(int64(free+used+reserved) * mebi),
		})
	}
	if _, has := mib[254]; !has && hasFree && hasUsed && free+used > 0 && t.plan.On("hw.gpu.memory.utilization") {
		dev.Points = append(dev.Points, Point{Metric: metricByName["hw.gpu.memory.utilization"], Value: Double(used / (free + used))})
	}
}

// observe keeps what the doubt and the status need.
func (t *Tracker) observe(f Field, ty *tally, s *signs, ev *evidence) {
	v := ty.last.Float()
	switch f {
	case 203:
		s.utilization = v / 100
	case 1001, 1002, 1004, 1005:
		s.profiling = true
		s.profilingMax = max(s.profilingMax, ty.max)
	case 155, 157:
		s.power = v
	case 156, 1611:
		s.energy, s.hasEnergy = ty.last, true
	case 395:
		ev.hasConditions, ev.remapFailed = true, v > 0
	case 396:
		ev.hasConditions, ev.rowsPending = true, v > 0
	case 1523:
		ev.hasConditions, ev.recovery = true, int64(v)
	}
}

// scaled converts a value to the metric's unit and number type.
func scaled(m *Mapping, v Value) Value {
	switch {
	case !m.Metric.Integer:
		return Double(v.Float() * m.Scale)
	case v.IsInt && m.Scale == math.Trunc(m.Scale):
		return Int(v.Int * int64(m.Scale))
	}
	return Int(int64(math.Round(v.Float() * m.Scale)))
}

func (t *Tracker) statusPoints(dev *DeviceReport, tr *tracked, dr *DeviceReading, ev *evidence) {
	if state := ev.status(); state != "" && t.plan.On(MetricStatus) {
		for _, one := range HWStates {
			on := int64(0)
			if one == state {
				on = 1
			}
			dev.Points = append(dev.Points, Point{Metric: metricByName[MetricStatus], Value: Int(on), Start: tr.first, Attrs: []Attr{{Key: AttrState, Str: one}}})
		}
	}
	if dr.HealthKnown && t.plan.On(MetricHealth) {
		for _, system := range HealthSystems {
			worst := 0
			for _, h := range dr.Health {
				if h.System == system {
					worst = max(worst, h.Result)
				}
			}
			dev.Points = append(dev.Points, Point{Metric: metricByName[MetricHealth], Value: Int(int64(worst)), Start: tr.first, Attrs: []Attr{{Key: AttrSystem, Str: system}}})
		}
	}
	if t.plan.On(MetricXID) {
		metric := metricByName[MetricXID]
		seen := make([]int64, 0, len(tr.xids))
		for x := range tr.xids {
			seen = append(seen, x)
		}
		slices.Sort(seen)
		for _, x := range seen {
			dev.Points = append(dev.Points, Point{Metric: metric, Value: Int(tr.xids[x]), Start: tr.first, Attrs: []Attr{{Key: AttrXID, Int: x, IsInt: true}}})
		}
		if tr.xidMore > 0 {
			dev.Points = append(dev.Points, Point{Metric: metric, Value: Int(tr.xidMore), Start: tr.first, Attrs: []Attr{{Key: AttrOverflow, IsTrue: true}}})
		}
	}
	if len(dr.Owners) > 1 && t.plan.On(MetricAllocation) {
		for _, o := range dr.Owners {
			dev.Points = append(dev.Points, Point{
				Metric: metricByName[MetricAllocation], Value: Int(1), Start: tr.first,
				Attrs: []Attr{{Key: AttrNamespace, Str: o.Namespace}, {Key: AttrPod, Str: o.Pod}, {Key: AttrContainer, Str: o.Container}},
			})
		}
	}
}

func (t *Tracker) doubtPoints(dev *DeviceReport, tr *tracked, s *signs, r *Reading) {
	held := tr.doubt.judge(r.At, s)
	if !t.plan.On(MetricSuspect) {
		return
	}
	for i, name := range Doubts {
		on := int64(0)
		if held[i] {
			on = 1
		}
		dev.Points = append(dev.Points, Point{Metric: metricByName[MetricSuspect], Value: Int(on), Start: tr.first, Attrs: []Attr{{Key: AttrReason, Str: name}}})
	}
}

func (t *Tracker) agePoint(dev *DeviceReport, tallies []tally, r *Reading) {
	var newest time.Time
	for i := range tallies {
		if tallies[i].at.After(newest) {
			newest = tallies[i].at
		}
	}
	if newest.IsZero() || !t.plan.On(MetricSampleAge) {
		return
	}
	age := max(0, r.Clock.Sub(newest).Seconds())
	dev.Points = append(dev.Points, Point{Metric: metricByName[MetricSampleAge], Value: Double(age)})
}
