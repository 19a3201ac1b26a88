package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// maxLine bounds one line, and with it the memory of a replay, which holds one line at a time.
const maxLine = 64 << 20

// request is one export request; exactly one of the three is set.
type request struct {
	traces  *ptrace.Traces
	logs    *plog.Logs
	metrics *pmetric.Metrics
}

// lineError is a line that could not be read as OTLP or was not taken; the replay goes on with the next one.
type lineError struct {
	file string
	line int
	err  error
}

func (e lineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.file, e.line, e.err) }
func (e lineError) Unwrap() error { return e.err }

// eachLine calls do with every line of the files that holds an export request, in order, and bad with every one that does not.
// Empty lines are skipped. It stops at the first error of do or of reading a file.
func eachLine(files []string, do func(file string, line int, r request) error, bad func(lineError)) error {
	for _, name := range files {
		if err := fileLines(name, do, bad); err != nil {
			return err
		}
	}
	return nil
}

func fileLines(name string, do func(string, int, request) error, bad func(lineError)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(make([]byte, 0, 64<<10), maxLine)
	n := 0
	for sc.Scan() {
		n++
		if len(sc.Bytes()) == 0 {
			continue
		}
		r, err := decode(sc.Bytes())
		if err != nil {
			bad(lineError{name, n, err})
			continue
		}
		if err := do(name, n, r); err != nil {
			return err
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("%s:%d: cannot read the line (at most %d MiB): %w", name, n+1, maxLine>>20, err)
	}
	return nil
}

// decode reads one export request; which of the three it is, its top-level key says.
func decode(b []byte) (request, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(b, &top); err != nil {
		return request{}, fmt.Errorf("not a JSON object: %w", err)
	}
	switch {
	case top["resourceSpans"] != nil:
		v, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(b)
		return request{traces: &v}, err
	case top["resourceLogs"] != nil:
		v, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(b)
		return request{logs: &v}, err
	case top["resourceMetrics"] != nil:
		v, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(b)
		return request{metrics: &v}, err
	}
	return request{}, errors.New("not an export request: no resourceSpans, resourceLogs or resourceMetrics")
}

// path is where OTLP/HTTP takes the request.
func (r request) path() string {
	switch {
	case r.traces != nil:
		return "/v1/traces"
	case r.logs != nil:
		return "/v1/logs"
	}
	return "/v1/metrics"
}

// items is how many spans, log records or data points the request holds.
func (r request) items() int {
	switch {
	case r.traces != nil:
		return r.traces.SpanCount()
	case r.logs != nil:
		return r.logs.LogRecordCount()
	}
	return r.metrics.DataPointCount()
}

func (r request) encode() ([]byte, error) {
	switch {
	case r.traces != nil:
		return (&ptrace.JSONMarshaler{}).MarshalTraces(*r.traces)
	case r.logs != nil:
		return (&plog.JSONMarshaler{}).MarshalLogs(*r.logs)
	}
	return (&pmetric.JSONMarshaler{}).MarshalMetrics(*r.metrics)
}
