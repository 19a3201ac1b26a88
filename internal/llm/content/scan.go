package content

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Signal is the kind of telemetry that a value was found in.
type Signal string

// The signals.
const (
	SignalTraces  Signal = "traces"
	SignalLogs    Signal = "logs"
	SignalMetrics Signal = "metrics"
)

// Finding is one kind of text found by Scan. It never holds text: Key is a key of the tables, or empty.
type Finding struct {
	Signal Signal
	Place  string // resource, scope, span, event, link, body, log, metric, point, exemplar
	Class  Class
	Key    string // the key, if it is one that the tables name; a key that nobody named could itself be text
}

// Report is what Scan found.
type Report struct {
	Lines   int // OTLP requests read
	Invalid int // lines that are no OTLP/JSON request
	counts  map[Finding]int64
}

// maxFindings bounds the kinds that a report tells apart; there are far fewer in the tables times places.
const maxFindings = 10000

func (r *Report) add(signal Signal, place string, c Class, key string, t *table) {
	f := Finding{Signal: signal, Place: place, Class: c}
	if _, known := t.exact[key]; known {
		f.Key = key
	}
	if _, ok := r.counts[f]; !ok && len(r.counts) >= maxFindings {
		f.Key = ""
	}
	r.counts[f]++
}

// Findings returns the kinds found, the most frequent first, then by signal, place, class and key.
func (r *Report) Findings() []Finding {
	list := make([]Finding, 0, len(r.counts))
	for f := range r.counts {
		list = append(list, f)
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		if r.counts[a] != r.counts[b] {
			return r.counts[a] > r.counts[b]
		}
		return fmt.Sprint(a) < fmt.Sprint(b)
	})
	return list
}

// Count is the number of values of one kind.
func (r *Report) Count(f Finding) int64 { return r.counts[f] }

// Total is the number of values of all kinds.
func (r *Report) Total() (n int64) {
	for _, c := range r.counts {
		n += c
	}
	return n
}

// maxLine bounds one line of an OTLP/JSON file: 64 MiB, as the OTLP receivers' own limits go.
const maxLine = 64 << 20

// Scan reads OTLP/JSON export requests, one a line, of any signal, and reports which values the Redactor would not let
// through as they are. It changes nothing and never returns text; a line that is no OTLP request is counted as invalid.
// The error is that of reading.
func (r *Redactor) Scan(in io.Reader) (*Report, error) {
	rep := &Report{counts: map[Finding]int64{}}
	var f Facts
	lines := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := readLine(lines)
		if line = bytes.TrimSpace(line); len(line) > 0 {
			rep.Lines++
			if !r.scanLine(line, rep, &f) {
				rep.Invalid++
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return rep, nil
		case err != nil:
			return rep, fmt.Errorf("cannot read: %w", err)
		}
	}
}

func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxLine {
			return nil, fmt.Errorf("a line is longer than %d bytes; write one OTLP request a line", maxLine)
		}
	}
}

func (r *Redactor) scanLine(line []byte, rep *Report, f *Facts) bool {
	signal, ok := signalOf(line)
	if !ok {
		return false
	}
	w := r.walk(signal, r.mode, f)
	defer w.done()
	w.rep = rep
	switch signal {
	case SignalTraces:
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
		if err != nil {
			return false
		}
		w.traces(td)
	case SignalLogs:
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line)
		if err != nil {
			return false
		}
		w.logs(ld)
	case SignalMetrics:
		md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		if err != nil {
			return false
		}
		w.metrics(md)
	}
	return true
}

// signalOf tells what an OTLP/JSON request carries by the first of its keys that names a signal.
func signalOf(line []byte) (Signal, bool) {
	best, signal := len(line), Signal("")
	for key, s := range map[string]Signal{`"resourceSpans"`: SignalTraces, `"resourceLogs"`: SignalLogs, `"resourceMetrics"`: SignalMetrics} {
		if i := bytes.Index(line, []byte(key)); i >= 0 && i < best {
			best, signal = i, s
		}
	}
	return signal, signal != ""
}
