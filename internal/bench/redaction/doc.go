// Package redaction compares internal/llm/content with what can be assembled from the contrib processors transform and
// redaction: which places of a request still hold text afterwards, and what a span costs. It is a module of its own so that
// the project does not depend on those processors.
//
//	cd internal/bench/redaction && go test -run SideBySide -v .      the table of docs/privacy.md
//	cd internal/bench/redaction && go test -run XXX -bench . .       CPU and allocations
package redaction
