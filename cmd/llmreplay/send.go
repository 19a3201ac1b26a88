package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// sendTimeout bounds one attempt, maxAttempts how often a receiver that asks for it is tried again, maxPause each pause.
	sendTimeout = 30 * time.Second
	maxAttempts = 5
	maxPause    = 5 * time.Second
	// connectPause is the pause between two tries to connect.
	connectPause = 200 * time.Millisecond
	// maxAnswer bounds how much of an answer is read.
	maxAnswer = 64 << 10
)

// refusedError is an answer that says that (part of) the data was not taken.
type refusedError struct{ why string }

func (e refusedError) Error() string { return e.why }

// sender posts export requests.
type sender struct {
	client   *http.Client
	endpoint string
	wait     time.Duration                              // how long to try to connect, the first time
	pause    func(context.Context, time.Duration) error // waits; replaced in tests
}

func newSender(endpoint string, wait time.Duration) *sender {
	return &sender{client: &http.Client{Timeout: sendTimeout}, endpoint: strings.TrimRight(endpoint, "/"), wait: wait, pause: sleep}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send posts r and returns a refusedError when the receiver did not take all of it.
// It tries again while nobody listens (until wait is used up), and when the receiver says that it may (OTLP 1.9 §OTLP/HTTP response).
func (s *sender) send(ctx context.Context, r request) error {
	body, err := r.encode()
	if err != nil {
		return err
	}
	for attempt := 1; ; {
		after, err := s.post(ctx, s.endpoint+r.path(), body)
		switch {
		case err == nil:
			s.wait = 0 // it listens; if it stops, that is an error
			return nil
		case errors.Is(err, syscall.ECONNREFUSED) && s.wait > 0:
			s.wait -= connectPause
			after = connectPause
		case after > 0 && attempt < maxAttempts:
			attempt++
		default:
			return err
		}
		if err := s.pause(ctx, after); err != nil {
			return err
		}
	}
}

// post makes one attempt. A positive duration beside the error says that another may help, and when.
func (s *sender) post(ctx context.Context, url string, body []byte) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("cannot reach the collector; start it (make run) or set --endpoint: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, fmt.Errorf("cannot read the answer of %s: %w", url, err)
	}
	if resp.StatusCode == http.StatusOK {
		return 0, rejected(answer)
	}
	err = refusedError{fmt.Sprintf("refused with %s: %s", resp.Status, message(answer))}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return pauseFor(resp.Header.Get("Retry-After")), err
	}
	return 0, err
}

func pauseFor(retryAfter string) time.Duration {
	if n, err := strconv.Atoi(retryAfter); err == nil && n > 0 {
		return min(time.Duration(n)*time.Second, maxPause)
	}
	return 500 * time.Millisecond
}

// rejected reads a partial success: a 200 that took less than everything.
func rejected(answer []byte) error {
	var a struct {
		PartialSuccess map[string]any `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &a) != nil {
		a.PartialSuccess = nil // empty or not ours to judge: the status said success
	}
	for _, k := range []string{"rejectedSpans", "rejectedLogRecords", "rejectedDataPoints"} {
		// A 64-bit number is a string in JSON of protobuf; both are seen.
		if n := fmt.Sprint(a.PartialSuccess[k]); a.PartialSuccess[k] != nil && n != "0" {
			return refusedError{fmt.Sprintf("%s: %s: %v", k, n, a.PartialSuccess["errorMessage"])}
		}
	}
	return nil
}

// message returns the text of an error answer (google.rpc.Status as JSON), or its first characters.
func message(answer []byte) string {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(answer, &status) == nil && status.Message != "" {
		return status.Message
	}
	return strings.TrimSpace(string(answer[:min(len(answer), 200)]))
}
