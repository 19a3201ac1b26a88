// Package join decides which spans are one LLM request, and which layer of it counts.
//
// A request leaves a span at each layer that it passes: client, gateway, engine, each exported by another process at another time. Its
// tokens stand on several of them. Counting is therefore done on the innermost layer only:
//
//   - An engine's span counts at once. Sequences of one call (n > 1, several prompts, beam search) are one request, told by the
//     engine's request id (group.go).
//   - A client's or gateway's span waits until no engine's span can be expected below it any more ([Config.Window]), because it must
//     not be counted beside it (outer.go). It belongs to an engine's request when it stands above it in the trace, or when the response
//     id that it read is the engine's request id (many SDKs and proxies break the trace).
//
// A span that comes twice (a sender's retry) counts once. What is held is bounded in spans and time. The package has no clock: the
// caller brings the time.
package join
