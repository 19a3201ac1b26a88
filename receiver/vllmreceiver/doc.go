// Package vllmreceiver scrapes the metrics page of inference engines (vLLM first; SGLang, TensorRT-LLM, Triton, TGI, llama.cpp, Dynamo, LMDeploy too) and
// turns it into one set of metrics, llm.engine.*, whatever the engine and its version.
//
// The core lies in internal/: page reads the text, engine knows what it means, series follows it over time, target puts the three together for one
// endpoint. This package is the adapter: it asks, hands over, encodes and reports.
package vllmreceiver

//go:generate go tool -modfile=../../tools/mdatagen/go.mod mdatagen metadata.yaml
