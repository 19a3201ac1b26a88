// Package chains compares what this distribution does to traces of LLM traffic with what it costs to pass them on, and with a chain of
// stock components that comes close to doing the same. It is a module of its own, so that the stock components stay out of the
// distribution's dependencies. `make bench` prints the table that docs/performance.md has; BenchmarkPipe is for profiles.
//
// What is in the figures: every chain decodes the same request, batches and encodes its spans, and is fed and stopped the same way. The
// stock chain and ours encode their metrics as well, ours also its records; pass has neither. Every span's whole cost is counted, for what
// waits is settled when a chain is stopped. Go collects garbage
// as it does by default, with as much heap beside each chain as a collector that was just started has.
package chains
