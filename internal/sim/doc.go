// Package sim is a discrete-event model of an LLM serving installation: users and teams, a gateway, vLLM engines under
// continuous batching, the GPUs under them, and what their telemetry says of it all. It knows the truth of every request,
// so that figures derived from the telemetry can be compared with it.
//
// The package is pure: no clock, no goroutine, no I/O. A [World] is advanced to an instant by its owner, who then drains
// what was emitted. Equal configurations and seeds give equal output, however the time is cut into steps. pdata is built
// here because it is the output. [github.com/otelcol-llm/otelcol-llm/internal/sim/live] runs a World in real time.
//
// # What is vLLM's
//
// Taken from the source or from recordings of vLLM 0.32.0 (a test compares with them):
//
//   - one span llm_request (SERVER, status unset, no events) a finished sequence, scope vllm.tracing.otel, the attributes,
//     their types and their order; no model, no error, no finish reason; temperature and top_p only when they are not zero;
//     no span at all for an aborted, refused or crashed request; the start-up spans;
//   - which clock a figure is from: queue, prefill, decode and inference from the engine core, TTFT and e2e from the front
//     end, whose first output takes longer on its way than the last; queue ends at the FIRST scheduling, so that the time
//     after a preemption is inside prefill or decode; waiting for the running step is before the queue;
//   - n > 1: n spans with one id and the whole prompt each; several prompts: ids cmpl-X-0, cmpl-X-1; beam search: a span for
//     each beam and step, ids chatcmpl-X-<hash>-beam-K, the prompt growing by one token;
//   - the scheduler: running sequences before waiting ones, one token budget for a step, chunked prefill, prefix cache of
//     whole blocks in LRU order with the last prompt token always computed, preemption by recomputation of the sequence
//     scheduled last;
//   - the page: families, help texts, types, labels, buckets, the number format of prometheus_client, _created siblings,
//     which counts include aborted requests, finished_reason="abort" staying 0, iteration_tokens counting computed tokens;
//   - a stream's headers leave before its first token; an engine that dies leaves a stream broken after HTTP 200 and gives
//     500 to a unary call; the error bodies.
//
// # What is dcgm-exporter's
//
// The GPUs' page: names, types, help texts, the order of labels and the number format (a test compares with fragments of
// real pages), as far as the model knows a field. What it does not know is absent, as with a shorter field file: XIDs,
// PCIe and NVLink, ECC, the memory's temperature, the driver's version. Shares are those of the last full second.
//
// # What is ours
//
// Step time as base + sequences × a + prefill tokens ÷ rate, all delays (their size is in the range that was recorded, their
// shape is log-normal), request mix, lengths, the share of a prompt that teams have in common, one chunk for each token,
// the reply of the gateway when the engine is down (502), the queue limit's HTTP 503, the fault scenarios, and the GPU
// (utilisation, activities, clocks, power and temperature as functions of the mix of prefill and decode, memory held while
// the engine is up, its place on the bus, its host's name). Aborts are drawn for streams with one sequence only. process_*
// and python_* samples are there with invented values, since vLLM's page has them.
package sim
