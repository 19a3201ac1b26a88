package split

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Services remembers which gateways' and clients' requests were seen to reach an engine, the most recent of them, and since when those
// are known of which that has not been seen. It is safe for concurrent use: traces of one service lie in all shards.
type Services struct {
	mu             sync.Mutex
	reached, first *simplelru.LRU[string, time.Time]
}

// maxServices bounds the services that are remembered.
const maxServices = 10_000

// NewServices returns an empty memory.
func NewServices() *Services {
	l, _ := simplelru.NewLRU[string, time.Time](maxServices, nil) // the only error is a size below one
	f, _ := simplelru.NewLRU[string, time.Time](maxServices, nil)
	return &Services{reached: l, first: f}
}

func (s *Services) add(now time.Time, c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range c.layers {
		s.reached.Add(l.req.Source.Service, now)
	}
}

// reachedLately is how long a service's last request that reached an engine says that its others should.
const reachedLately = time.Hour

func (s *Services) reaches(now time.Time, service string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.reached.Get(service)
	return ok && now.Sub(at) < reachedLately
}

// getToKnow is how long a new service is taken for one whose requests reach an engine. A gateway's first batch may come seconds before
// its engine's; decided on by itself it would be counted for the gateway, and the engine's span for a part that came later.
const getToKnow = time.Minute

// isNew tells whether a service is known for less than getToKnow.
func (s *Services) isNew(now time.Time, service string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.first.Get(service)
	if !ok {
		s.first.Add(service, now)
		return true
	}
	return now.Sub(at) < getToKnow
}
