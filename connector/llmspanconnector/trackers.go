package llmspanconnector

import (
	"sync"

	"go.opentelemetry.io/collector/component"
)

// output is a kind of output for which a connector has an instance of its own, in a pipeline of its own.
type output uint8

// The outputs that need requests. Traces need none.
const (
	outputMetrics output = iota
	outputRecords
	numOutputs
)

// trackers are those of the connectors that a factory has made and that are not shut down.
//
// The service gives all instances of one connector the same configuration, and no other connector that one, so that instances of one
// configuration share a tracker. A second instance of the same output, which no service makes, gets a tracker of its own.
type trackers struct {
	mu sync.Mutex
	of map[*Config]*tracker
}

// attach gives an instance its tracker, which calls to with what it settles, and the function by which the instance leaves it.
func (s *trackers) attach(o output, set component.TelemetrySettings, cfg *Config, to sink) (t *tracker, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t = s.of[cfg]
	if t == nil || t.has(o) {
		if t, err = newTracker(cfg, set); err != nil {
			return nil, nil, err
		}
		if s.of == nil {
			s.of = map[*Config]*tracker{}
		}
		s.of[cfg] = t
	}
	t.set(o, to)
	return t, sync.OnceFunc(func() { s.detach(t, o, cfg) }), nil
}

func (s *trackers) detach(t *tracker, o output, cfg *Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.set(o, nil)
	for other := range numOutputs {
		if t.has(other) {
			return
		}
	}
	t.telemetry.Shutdown()
	if s.of[cfg] == t {
		delete(s.of, cfg)
	}
}
