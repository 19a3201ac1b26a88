package dcgmreceiver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-llm/otelcol-llm/receiver/dcgmreceiver/internal/gpu"
)

// noteSource begins the key of the note that says which source was chosen.
const noteSource = "source_"

// autoSource is the first of several sources that can be opened. When that one is lost, all are tried again in order,
// so a better source that has come up meanwhile is taken.
type autoSource struct {
	candidates []gpu.Source

	mu     sync.Mutex // Close may be called beside a hung Open
	chosen gpu.Source
	why    string
}

func (a *autoSource) choose(s gpu.Source, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.chosen, a.why = s, why
}

func (a *autoSource) choice() (gpu.Source, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.chosen, a.why
}

func (a *autoSource) Name() string {
	if s, _ := a.choice(); s != nil {
		return s.Name()
	}
	return string(SourceAuto)
}

func (a *autoSource) Open(ctx context.Context) error {
	a.choose(nil, "")
	var errs []error
	for i, c := range a.candidates {
		// Each gets its share of the time, so that one which waits does not starve those behind it.
		share := ctx
		cancel := func() {}
		if deadline, ok := ctx.Deadline(); ok {
			share, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(a.candidates)-i))
		}
		err := c.Open(share)
		cancel()
		if err == nil {
			a.choose(c, reasons(errs))
			return nil
		}
		_ = c.Close()
		errs = append(errs, fmt.Errorf("%s: %w", c.Name(), err))
		if ctx.Err() != nil {
			break
		}
	}
	// The first candidate is the one an operator most likely meant to have; its condition stands for all.
	return &gpu.Down{Condition: conditionOfAll(errs), Err: fmt.Errorf("no source of GPU metrics found (%w)", errors.Join(errs...))}
}

func (a *autoSource) Read(ctx context.Context, now time.Time) (*gpu.Reading, error) {
	chosen, why := a.choice()
	r, err := chosen.Read(ctx, now)
	if err == nil {
		r.Notes = append(r.Notes, gpu.Note{Key: noteSource + chosen.Name(), Message: "reading GPUs through " + chosen.Name(), Detail: why})
	}
	return r, err
}

func (a *autoSource) Close() error {
	chosen, _ := a.choice()
	if chosen == nil {
		// A hung Open has no chosen source yet; closing all of them ends it.
		var errs []error
		for _, c := range a.candidates {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}
	return chosen.Close()
}

func reasons(errs []error) string {
	if len(errs) == 0 {
		return "it is the first in order"
	}
	out := make([]string, len(errs))
	for i, e := range errs {
		out[i] = e.Error()
	}
	return strings.Join(out, "; ")
}

// conditionOfAll is the condition that tells most: a missing library says less than an engine that does not answer.
func conditionOfAll(errs []error) string {
	for _, want := range []string{gpu.SourceConflict, gpu.SourceHung, gpu.SourceUnreachable, gpu.SourceNoDriver, gpu.SourceNoLibrary, gpu.SourceNotBuilt} {
		for _, e := range errs {
			if gpu.ConditionOf(e) == want {
				return want
			}
		}
	}
	return gpu.SourceFailed
}
