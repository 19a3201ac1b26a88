// Package join decides which spans are one LLM request, and which layer of it counts.
//
// A request leaves a span at each layer that it passes: client, gateway, engine, each exported by another process at another time. Its
// tokens stand on several of them. Counting is therefore done on the innermost layer only:
//
//   - An engine's span counts at once. Sequences of one call (n > 1, several prompts, beam search) are one request, told by the
//     engine's request id (group.go). The steps of a beam search wait until it is over, since only then its first step is known.
//   - A client's or gateway's span waits until no engine's span can be expected below it any more ([Config.Window]), because it must
//     not be counted beside it (outer.go, settle.go). It belongs to an engine's request when it stands above it in the trace, or when the response
//     id that it read is the engine's request id (many SDKs and proxies break the trace).
//
// What a total comes to does not depend on the order of the spans or on how they are cut into batches, as long as they come within the
// window. Three things do, because an engine's request is counted before its batch is acknowledged:
//
//   - The labels of a count: a layer that comes in a later batch than its engine's span brings a model or an outcome too late.
//   - What stands in one record, or one observation of a request's tokens, when the sequences of a call come in several batches: the first
//     has the tokens that were there, each further one has its own record. Sums over records are exact.
//   - Beyond the window, or when MaxSpans made room, what comes is matched to what is still remembered.
//
// Calls that have the same id below the same parent are read as sequences of one: nothing tells them apart. Across traces an id joins
// only when it was seen on one call of an engine and in one trace of each other layer (identity.go).
//
// What is remembered is without pointers: it refers to itself by number (slab.go), and requests are packed (compact.go). With pointers
// the garbage collector would take more time than all else here.
//
// A span that comes twice (a sender's retry) counts once. What is held is bounded in spans and time. The package has no clock: the
// caller brings the time.
package join
