// Package sampling decides which traces are kept, and what each kept one stands for.
//
// Rules are asked in order; the first that claims a trace decides: errors, cancelled requests, slow requests and traces with chosen
// attributes are kept whole, what no rule claims is kept at a ratio. A decision is a threshold on 56 bits of randomness that belong to
// the trace (rv of its tracestate, else the last 56 bits of its id), so that every process that applies the same ratio decides the same,
// and 1/probability is the number of traces that a kept one stands for. An incoming threshold is respected and never raised in
// probability: a trace that an SDK has head-sampled at 10 % and that failed still stands for ten.
//
// Source: OpenTelemetry tracestate handling and probability sampling. The package has no clock: the caller brings the time.
package sampling
