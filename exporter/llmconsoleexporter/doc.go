// Package llmconsoleexporter prints one readable line for each LLM request record, for a person at a terminal.
package llmconsoleexporter

//go:generate go tool -modfile=../../tools/mdatagen/go.mod mdatagen metadata.yaml
