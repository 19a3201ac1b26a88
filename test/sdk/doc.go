// Package sdk proves on live SDKs that no text leaves the built binary. Applications under the instrumentations of OpenTelemetry
// (genai-openai, openai-v2), OpenInference, OpenLLMetry, LiteLLM's proxy and the Vercel AI SDK, content capture on and a marker in every
// text, call the simulator's OpenAI endpoint (extension llmsim) and send their telemetry to the binary in its default configuration.
//
// Afterwards no marker is in anything that the binary wrote or answered: exporters' bytes, its log at debug level, its metrics, the
// zpages, the console. Usage and models are.
//
// The test is behind the build tag sdk and run by `make test-sdk`, which installs the SDKs (PyPI and npm, 1 GB on disk).
// OTELCOL_LLM_BIN is the binary (bin/otelcol-llm), OTELCOL_LLM_SDK the installed folder (.cache/sdk).
package sdk
