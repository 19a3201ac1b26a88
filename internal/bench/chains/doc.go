// Package chains compares what this distribution does to traces of LLM traffic with what it costs to pass them on, and with a chain of
// stock components that comes close to doing the same. It is a module of its own, so that the stock components stay out of the
// distribution's dependencies. `make bench` prints the table that docs/performance.md has; BenchmarkPipe is for profiles.
package chains
