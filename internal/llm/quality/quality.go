// Package quality tells what is wrong with an answer, from its text and what is known of the request, before the text is removed.
//
// It keeps no text and reports no part of one: a set of issues is all that leaves. Rates of wrong calls on a labelled sample are in
// docs/quality.md. The work on one answer is bounded: of a longer text its first and last 64 KiB are read.
package quality

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/octets"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Config chooses what is looked for. Truncated, empty, malformed JSON and garbled always are.
type Config struct {
	Repetition, Refusal bool
}

// Assessor assesses answers. It is safe for concurrent use.
type Assessor struct{ cfg Config }

// New returns an assessor.
func New(cfg Config) *Assessor { return &Assessor{cfg} }

// Assess is what is wrong with the answer on a span, as far as the span tells.
func (a *Assessor) Assess(span ptrace.Span, r *request.Request) request.Flags {
	var issues request.Flags
	if truncated(r.FinishReason) {
		issues |= request.IssueTruncated
	}
	if r.Operation == "embeddings" || r.Operation == "rerank" {
		return issues
	}
	var o output
	if r.Layer != request.LayerEngine {
		o.collect(span)
	}
	if !o.found {
		// Nobody captured the text, which is the rule in production; a request that ended well with no token is empty all the same.
		if r.Status == request.StatusOK && r.OutputTokens.Known && r.OutputTokens.Value == 0 {
			issues |= request.IssueEmpty
		}
		return issues
	}
	blank := true
	for _, text := range o.texts {
		if isBlank(text) {
			continue
		}
		blank = false
		issues |= a.Text(text, o.wantsJSON)
	}
	if blank && !o.tools && r.Status != request.StatusError && r.Status != request.StatusCancelled {
		issues |= request.IssueEmpty
	}
	return issues
}

// Text is what is wrong with one answer's text; wantsJSON says that the caller asked for JSON.
func (a *Assessor) Text(text string, wantsJSON bool) request.Flags {
	var issues request.Flags
	if malformedJSON(text, wantsJSON) {
		issues |= request.IssueMalformedJSON
	}
	text = ends(text)
	ascii := octets.ASCII(text) // of one script, and of one byte a character
	if a.cfg.Repetition && repetitive(text, ascii) {
		issues |= request.IssueRepetition
	}
	if garbled(text, ascii) {
		issues |= request.IssueGarbled
	}
	if a.cfg.Refusal && refuses(text) {
		issues |= request.IssueRefusal
	}
	return issues
}

// maxEnd is how much of each end of a text is read, in bytes.
const maxEnd = 64 << 10

// ends is a text, or its two ends when it is long.
func ends(s string) string {
	if len(s) <= 2*maxEnd {
		return s
	}
	head, tail := s[:maxEnd], s[len(s)-maxEnd:]
	for len(head) > 0 && head[len(head)-1]&0xC0 == 0x80 { // not within a character
		head = head[:len(head)-1]
	}
	if n := len(head); n > 0 && head[n-1] >= 0xC0 {
		head = head[:n-1]
	}
	for len(tail) > 0 && tail[0]&0xC0 == 0x80 {
		tail = tail[1:]
	}
	return head + "\n" + tail
}

// truncated tells the finish reasons of an answer that reached its limit.
func truncated(reason string) bool {
	switch reason {
	case "length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length", "model_context_window_exceeded":
		return true
	}
	return false
}

func isBlank(s string) bool {
	for _, r := range s {
		switch r {
		case ' ', '\t', '\n', '\r', '\u00a0', '\u3000', '\u200b', '\ufeff':
		default:
			return false
		}
	}
	return true
}
