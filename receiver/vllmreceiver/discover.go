package vllmreceiver

import (
	"net/url"
	"time"
)

const (
	// lookAgain is how long a port without an engine is left alone: other software may live there.
	lookAgain = time.Minute
	// forgetAfter is how long an engine that was found may be away before it is no longer asked for.
	forgetAfter = 15 * time.Minute
)

// usual are the places where engines listen unless told otherwise, each with the pages it may serve.
var usual = []struct {
	port  string
	paths []string
}{
	{"8000", []string{"/metrics", "/prometheus/metrics"}}, // vLLM, Dynamo's front end; trtllm-serve
	{"30000", []string{"/metrics"}},                       // SGLang
	{"8080", []string{"/metrics"}},                        // llama.cpp, TGI
	{"8002", []string{"/metrics"}},                        // Triton
	{"23333", []string{"/metrics"}},                       // LMDeploy
	{"8081", []string{"/metrics"}},                        // Dynamo's worker
	{"3000", []string{"/metrics"}},                        // TGI in its image
}

// finder says when to look where for engines on this host.
type finder struct {
	places []place
	seen   map[string]time.Time // of the engines found, by URL
}

type place struct {
	candidates []*url.URL
	next       time.Time
}

// newFinder leaves out ports of this host that are scraped anyway.
func newFinder(configured []*url.URL) *finder {
	taken := map[string]bool{}
	for _, u := range configured {
		switch u.Hostname() {
		case "127.0.0.1", "localhost", "::1":
			taken[u.Port()] = true
		}
	}
	f := &finder{seen: map[string]time.Time{}}
	for _, p := range usual {
		if taken[p.port] {
			continue
		}
		var candidates []*url.URL
		for _, path := range p.paths {
			candidates = append(candidates, &url.URL{Scheme: "http", Host: "127.0.0.1:" + p.port, Path: path})
		}
		f.places = append(f.places, place{candidates: candidates})
	}
	return f
}

// due returns the places to look at now, each as its candidate pages in order of preference.
func (f *finder) due(now time.Time) [][]*url.URL {
	var out [][]*url.URL
	for i := range f.places {
		p := &f.places[i]
		if now.Before(p.next) || f.taken(p) {
			continue
		}
		p.next = now.Add(lookAgain)
		out = append(out, p.candidates)
	}
	return out
}

func (f *finder) taken(p *place) bool {
	for _, u := range p.candidates {
		if _, ok := f.seen[u.String()]; ok {
			return true
		}
	}
	return false
}

// here notes that an engine answered.
func (f *finder) here(u *url.URL, now time.Time) { f.seen[u.String()] = now }

// away reports whether an engine has been away for so long that it is given up; its place is looked at again then.
func (f *finder) away(u *url.URL, now time.Time) bool {
	if last, ok := f.seen[u.String()]; ok && now.Sub(last) < forgetAfter {
		return false
	}
	delete(f.seen, u.String())
	return true
}
