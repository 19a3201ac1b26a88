// Package chains compares what this distribution does to traces of LLM traffic with what it costs to pass them on, and with a chain of
// stock components that comes close to doing the same. It is a module of its own, so that the stock components stay out of the
// distribution's dependencies. `make bench` prints the table that docs/performance.md has; BenchmarkPipe is for profiles.
//
// What is in the figures: every chain decodes the same request, batches and encodes its spans, and is fed and stopped the same way. The
// stock chain and ours encode their metrics as well, ours also its records; pass has neither. Every span's whole cost is counted, for what
// waits is settled when a chain is stopped. Go collects garbage as it does by default, which costs a chain that holds little memory more
// collections than pass, whose batch holds all texts. That is not what ours is slower by: in one run with the same memory for all
// (GOGC=off GOMEMLIMIT=320MiB) our chains came to between 0.3 times pass less and 0.8 more.
package chains
