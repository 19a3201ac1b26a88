// Package engine proves the built binary on a real engine: vLLM on a CPU with a tiny random model, behind an HTTP gateway with
// OpenTelemetry on. A client sends some hundred requests and keeps the truth of each; records, metrics and traces that come out of the
// binary are compared with it and with the engine's own /metrics.
//
// The test is behind the build tag engine and run by `make test-engine`, which installs the engine (PyPI, 6 GB on disk). Everything
// listens on free ports of 127.0.0.1. OTELCOL_LLM_BIN is the binary (bin/otelcol-llm), OTELCOL_LLM_ENGINE the installed folder
// (.cache/engine), OTELCOL_LLM_ENGINE_SCALE multiplies the requests (1; 0.1 is a quick try), OTELCOL_LLM_ENGINE_OUT
// is an empty folder that keeps what came out (none).
package engine
