// Package dialect reads one span into a [request.Request]: which source made it, which layer of a request it is, and what it says.
//
// A span's attributes are walked once. The walk looks each key up in one table (fields.go), made from the spellings that every
// dialect file lists, and keeps what it finds in slots. A dialect then decides from the slots, the name and the kind whether the span
// is its own. A new engine or SDK is a new file here: its spellings, its recognise function, its place in the order of dialects.go.
//
// Nothing is trusted for its key alone: a value of the wrong type, a negative count, a duration longer than its span is left out and
// named in Request.Invalid. A span that no dialect claims is not a request and passes through unharmed.
package dialect
