// Package quieterrorsextension is an HTTP server middleware that replaces the text of error answers. A receiver that cannot read a
// request quotes it in its answer (OTLP/JSON: up to a hundred bytes around the fault), and senders write such answers to their logs.
package quieterrorsextension

//go:generate go tool -modfile=../../tools/mdatagen/go.mod mdatagen metadata.yaml
