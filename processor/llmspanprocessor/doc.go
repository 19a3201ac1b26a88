//go:generate go tool -modfile=../../tools/mdatagen/go.mod mdatagen metadata.yaml

// Package llmspanprocessor recognises LLM requests in traces, folds what their sources say to current names, removes prompt text, and
// splits each request into stages. It is a thin adapter over internal/llm.
package llmspanprocessor
