//go:build e2e

package tiers

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// series is what was written to Prometheus: for each series its last value, and what it had counted before it started again from zero.
type series struct {
	last map[string]sample // by name{labels}
	base map[string]float64
	// outOfOrder counts samples that were older than one before them, which Prometheus refuses: the sign of two writers.
	outOfOrder map[string]int
}

type sample struct {
	at    int64 // ms
	value float64
}

func newSeries() *series {
	return &series{last: map[string]sample{}, base: map[string]float64{}, outOfOrder: map[string]int{}}
}

// take reads a WriteRequest of remote write 1.0: field 1 of it is a TimeSeries, whose field 1 is a Label {1: name, 2: value} and field 2 a
// Sample {1: value, 2: timestamp in ms}.
func (s *series) take(raw []byte) error {
	return fields(raw, func(n protowire.Number, v []byte, _ uint64) error {
		if n != 1 {
			return nil
		}
		var labels []string
		var samples []sample
		name := ""
		err := fields(v, func(n protowire.Number, v []byte, _ uint64) error {
			switch n {
			case 1:
				var key, value string
				err := fields(v, func(n protowire.Number, v []byte, _ uint64) error {
					switch n {
					case 1:
						key = string(v)
					case 2:
						value = string(v)
					}
					return nil
				})
				if key == "__name__" {
					name = value
				} else {
					labels = append(labels, fmt.Sprintf("%s=%q", key, value))
				}
				return err
			case 2:
				var x sample
				err := fields(v, func(n protowire.Number, _ []byte, bits uint64) error {
					switch n {
					case 1:
						x.value = math.Float64frombits(bits)
					case 2:
						x.at = int64(bits)
					}
					return nil
				})
				samples = append(samples, x)
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
		sort.Strings(labels)
		key := name + "{" + strings.Join(labels, ",") + "}"
		for _, x := range samples {
			s.add(key, x)
		}
		return nil
	})
}

func (s *series) add(key string, x sample) {
	before, ok := s.last[key]
	if ok && x.at < before.at {
		s.outOfOrder[key]++
		return
	}
	if math.IsNaN(x.value) {
		return // the mark of a series that ends
	}
	if ok && x.value < before.value {
		s.base[key] += before.value
	}
	s.last[key] = x
}

func (s *series) total(name string, parts []string) float64 {
	total := 0.0
	for key, x := range s.last {
		if strings.HasPrefix(key, name+"{") && containsAll(key, parts) {
			total += s.base[key] + x.value
		}
	}
	return total
}

// fields calls f for each field of a protobuf message: with its bytes, or with the bits of a number.
func fields(b []byte, f func(protowire.Number, []byte, uint64) error) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		var v []byte
		var bits uint64
		switch kind {
		case protowire.BytesType:
			v, size = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			bits, size = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			bits, size = protowire.ConsumeFixed64(b)
		default:
			size = protowire.ConsumeFieldValue(n, kind, b)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		if err := f(n, v, bits); err != nil {
			return err
		}
	}
	return nil
}
