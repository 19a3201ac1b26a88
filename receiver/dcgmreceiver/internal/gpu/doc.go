// Package gpu is the core of the dcgm receiver: what a GPU is, which fields it has, and how readings become points.
//
// Every source (a DCGM host engine, NVML, a dcgm-exporter page) reports values under DCGM field ids, which are the
// stable key of the field's meaning across library versions. This package alone knows which metric, unit and
// attributes a field becomes, so the same GPU gives the same series through every source.
//
// It has no clock, no goroutine and no I/O: times come in with the readings.
package gpu
