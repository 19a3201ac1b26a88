// Package e2e proves the built binary on real backends: the simulator's traffic and recorded telemetry go in, Prometheus,
// Alertmanager, VictoriaMetrics and VictoriaLogs are asked afterwards, and the answers are compared with the truth.
//
// The tests are behind the build tag e2e and run by `make test-e2e`. Every process is a child of the test on a free port of
// 127.0.0.1. OTELCOL_LLM_BIN is the binary (bin/otelcol-llm), OTELCOL_LLM_BACKENDS the folder of the built backends
// (.cache/backends), OTELCOL_LLM_SHARED the folder that holds the recordings (../shared), OTELCOL_LLM_E2E_SECONDS how long the
// traffic lasts (60). Traces are compared at an OTLP receiver of the test, span by span.
package e2e
