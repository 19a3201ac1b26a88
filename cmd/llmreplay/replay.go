package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// shownErrors bounds how many lines that failed are named; all are counted.
const shownErrors = 5

// summary counts what was sent; String is the program's last line.
type summary struct {
	requests, spans, records, points int
	failed                           int // lines that were not OTLP or were refused
}

func (s summary) String() string {
	return fmt.Sprintf("sent %d requests: %d spans, %d log records, %d data points; %d lines failed",
		s.requests, s.spans, s.records, s.points, s.failed)
}

// replay sends every line of the files. Lines that fail are named on stderr (the first few), counted, and make it return an error
// in the end; a receiver that cannot be reached and a file that cannot be read end it at once.
func replay(ctx context.Context, o options, now time.Time, stderr io.Writer) (summary, error) {
	var sum summary
	shift := func(ts pcommon.Timestamp) pcommon.Timestamp { return ts }
	if o.rebase {
		last, err := latest(o.files)
		if err != nil {
			return sum, err
		}
		by := now.UnixNano() - int64(last)
		shift = func(ts pcommon.Timestamp) pcommon.Timestamp { return pcommon.Timestamp(int64(ts) + by) }
	}
	failed := func(e lineError) {
		sum.failed++
		if sum.failed <= shownErrors {
			fmt.Fprintln(stderr, e.Error())
		}
	}
	s := newSender(o.endpoint, o.wait)
	err := eachLine(o.files, func(file string, line int, r request) error {
		r.mapTimes(shift)
		err := s.send(ctx, r)
		if _, ok := errors.AsType[refusedError](err); ok {
			failed(lineError{file, line, err})
			return nil
		}
		if err != nil {
			return lineError{file, line, err}
		}
		sum.add(r)
		return nil
	}, failed)
	switch {
	case err != nil:
		return sum, err
	case sum.failed > 0:
		return sum, fmt.Errorf("%d lines failed", sum.failed)
	case sum.requests == 0:
		return sum, errors.New("the files hold no export request")
	}
	return sum, nil
}

func (s *summary) add(r request) {
	s.requests++
	switch {
	case r.traces != nil:
		s.spans += r.items()
	case r.logs != nil:
		s.records += r.items()
	default:
		s.points += r.items()
	}
}

// latest returns the last timestamp of all files. Times that cannot be shifted without overflow never count as last.
func latest(files []string) (pcommon.Timestamp, error) {
	var last pcommon.Timestamp
	err := eachLine(files, func(_ string, _ int, r request) error {
		r.mapTimes(func(ts pcommon.Timestamp) pcommon.Timestamp {
			if ts > last && ts < 1<<63 {
				last = ts
			}
			return ts
		})
		return nil
	}, func(lineError) {}) // they are named when their turn to be sent comes
	return last, err
}
