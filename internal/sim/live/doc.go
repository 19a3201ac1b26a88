// Package live runs a simulated installation in real time: one goroutine advances the world, HTTP handlers let users call it
// and look at it, and a pusher sends its spans by OTLP/HTTP.
package live
