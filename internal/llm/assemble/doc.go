// Package assemble holds the spans of a trace until the trace is whole enough to be decided on, within a budget of bytes.
//
// A trace is released when its root has come and the delay after it is over, when nothing has come for the idle time, when it has become
// too old, or when it must make room. There is no fixed wait: a request that decodes for ten minutes is not cut, since its spans are
// sent when they end, and a short one does not wait for it. Spans that come after the release follow the decision (decisions.go).
//
// The package has no clock and no goroutine; a Buffer is one shard, for one goroutine at a time. It keeps spans, not requests: what is
// held has been redacted before. While they wait, spans are written down in few bytes (packed.go).
package assemble
