//go:build !cgo || !linux || nodcgm

package simlib

// Bindings says whether this build has the bindings that the simulated libraries stand under.
const Bindings = false
