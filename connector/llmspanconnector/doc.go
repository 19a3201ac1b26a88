//go:generate go tool -modfile=../../tools/mdatagen/go.mod mdatagen metadata.yaml

// Package llmspanconnector turns the LLM requests in traces into metrics of all traffic, one record for each request, and the traces
// that are kept. It is a thin adapter over internal/llm.
package llmspanconnector
