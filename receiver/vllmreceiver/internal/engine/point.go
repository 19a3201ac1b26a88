package engine

import "strings"

// Point is one value of a canonical metric. Attributes are sorted by key.
type Point struct {
	Metric *Metric
	Attrs  []Attr
	// Value is the value of a gauge or counter.
	Value float64
	// Hist is the value of a histogram, nil otherwise.
	Hist *Hist
	// Created is when the series began to count, in Unix seconds by the engine's clock; 0 when the page does not say.
	Created float64
}

// Hist is a histogram: Counts has one more element than Bounds, or both are empty. Counts sum to Count.
type Hist struct {
	Bounds []float64
	Counts []uint64
	Sum    float64
	Count  uint64
}

func attrsEqual(a, b []Attr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// addAttr inserts in key order; a key that is there keeps its first value.
func addAttr(attrs []Attr, key, value string) []Attr {
	i := len(attrs)
	for i > 0 {
		switch c := strings.Compare(attrs[i-1].Key, key); {
		case c == 0:
			return attrs
		case c < 0:
			attrs = append(attrs, Attr{})
			copy(attrs[i+1:], attrs[i:])
			attrs[i] = Attr{key, value}
			return attrs
		}
		i--
	}
	attrs = append(attrs, Attr{})
	copy(attrs[1:], attrs)
	attrs[0] = Attr{key, value}
	return attrs
}
