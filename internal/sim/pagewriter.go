package sim

import (
	"math"
	"strconv"
	"strings"
)

// pageWriter writes the text format as prometheus_client does: HELP and TYPE of a family, its samples, and for counters,
// histograms and summaries a sibling gauge family _created.
type pageWriter struct {
	strings.Builder
	created string
}

// label is one name and value; samples have their labels in the order of names.
type label struct{ name, value string }

// point is one value of a family.
type point struct {
	labels []label
	value  float64
	// created overrides the page's time when it is not 0.
	created float64
}

func (w *pageWriter) head(name, kind, help string) {
	w.WriteString("# HELP " + name + " " + help + "\n# TYPE " + name + " " + kind + "\n")
}

func (w *pageWriter) sample(name string, labels []label, value string) {
	w.WriteString(name)
	for i, l := range labels {
		w.WriteByte("{,"[min(i, 1)])
		w.WriteString(l.name + `="` + l.value + `"`)
	}
	if len(labels) > 0 {
		w.WriteByte('}')
	}
	w.WriteString(" " + value + "\n")
}

func (w *pageWriter) gauge(name, help string, points ...point) {
	w.head(name, "gauge", help)
	for _, p := range points {
		w.sample(name, p.labels, pythonFloat(p.value))
	}
}

func (w *pageWriter) plainCounter(name, help string, points ...point) {
	w.head(name, "counter", help)
	for _, p := range points {
		w.sample(name, p.labels, pythonFloat(p.value))
	}
}

// counter writes name_total and name_created.
func (w *pageWriter) counter(name, help string, points ...point) {
	w.plainCounter(name+"_total", help, points...)
	w.siblings(name, help, points)
}

// siblings writes the family name_created. Without points there is none.
func (w *pageWriter) siblings(name, help string, points []point) {
	if len(points) == 0 {
		return
	}
	w.head(name+"_created", "gauge", help)
	for _, p := range points {
		v := w.created
		if p.created != 0 {
			v = pythonFloat(p.created)
		}
		w.sample(name+"_created", p.labels, v)
	}
}

// histogramPoint is a histogram with labels. before are the labels that sort before "le".
type histogramPoint struct {
	before, after []label
	h             *histogram
	created       float64
}

func (w *pageWriter) histogram(name, help string, points ...histogramPoint) {
	w.head(name, "histogram", help)
	var made []point
	for _, p := range points {
		all := append(append([]label{}, p.before...), p.after...)
		n := uint64(0)
		for i, c := range p.h.counts {
			n += c
			le := "+Inf"
			if i < len(p.h.bounds) {
				le = pythonFloat(p.h.bounds[i])
			}
			labels := append(append(append([]label{}, p.before...), label{"le", le}), p.after...)
			w.sample(name+"_bucket", labels, pythonFloat(float64(n)))
		}
		w.sample(name+"_count", all, pythonFloat(float64(p.h.count)))
		w.sample(name+"_sum", all, pythonFloat(p.h.sum))
		made = append(made, point{labels: all, created: p.created})
	}
	w.siblings(name, help, made)
}

// summaryPoint is a summary without quantiles.
type summaryPoint struct {
	labels     []label
	count, sum float64
	created    float64
}

func (w *pageWriter) summary(name, help string, points ...summaryPoint) {
	w.head(name, "summary", help)
	var made []point
	for _, p := range points {
		w.sample(name+"_count", p.labels, pythonFloat(p.count))
		w.sample(name+"_sum", p.labels, pythonFloat(p.sum))
		made = append(made, point{labels: p.labels, created: p.created})
	}
	w.siblings(name, help, made)
}

// pythonFloat is prometheus_client's floatToGoString: Python's repr, with an exponent from a million on.
// Source: prometheus_client/utils.py.
func pythonFloat(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	case math.IsNaN(v):
		return "NaN"
	}
	abs := math.Abs(v)
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if abs != 0 && abs < 1e-4 || abs >= 1e16 {
		return strconv.FormatFloat(v, 'e', -1, 64) // two digits of exponent, as in Python
	}
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	if dot := strings.IndexByte(s, '.'); v > 0 && dot > 6 {
		mantissa := strings.TrimRight(s[:1]+"."+s[1:dot]+s[dot+1:], "0.")
		return mantissa + "e+0" + strconv.Itoa(dot-1)
	}
	return s
}
