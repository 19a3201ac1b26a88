// Package llmsimextension runs a simulated LLM serving installation inside the Collector: for demonstrations, for trying a
// configuration before there is traffic, and for tests that need to know the truth.
package llmsimextension

//go:generate go tool -modfile=../../tools/mdatagen/go.mod mdatagen metadata.yaml
