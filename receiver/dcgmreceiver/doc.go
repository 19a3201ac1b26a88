// Package dcgmreceiver reads NVIDIA GPUs through a DCGM host engine, NVML or an existing dcgm-exporter, and reports
// them under OpenTelemetry's hardware names.
//
// What a GPU is and how readings become points is in internal/gpu; each source is a package or file pair of its own;
// this package runs one source in one worker, and turns reports into pdata.
package dcgmreceiver

//go:generate go tool -modfile=../../tools/mdatagen/go.mod mdatagen metadata.yaml
