// Package content keeps prompt text, completions and whatever else a user typed from leaving with telemetry.
//
// A Redactor walks traces, logs and metrics in place, through every place that can hold a string (resource, scope, names,
// attributes, events, links, status, trace state, log bodies, exemplars), and decides for each value by its key first and by
// its shape second:
//
//	key            known to carry text        the value goes, whatever its type          keys_content.go
//	key            known to be safe           the value stays when it has the shape      keys_safe.go
//	                                          that the key promises, else it goes
//	key            unknown                    by namespace, by the words in the key      unknown.go
//	                                          and by the value's shape; in doubt it goes
//
// So a key that nobody has seen yet fails closed. What "goes" means is the Mode: removed, hashed, or cut.
//
// The package is pure: no clock, no goroutine, no I/O and no Collector component. pdata is read and written here because a
// copy of a prompt would cost more than the redaction. It counts what it did in Facts and never keeps a value.
package content
