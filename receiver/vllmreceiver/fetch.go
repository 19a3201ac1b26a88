package vllmreceiver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/target"
)

// accept asks for OpenMetrics last: its counters carry less than the text format's comments.
const accept = "text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"

// fetch asks for one page and reads at most limit bytes of it into buf, which keeps its memory for the next one. A body that breaks off is returned as
// far as it came, and said to be cut.
func fetch(ctx context.Context, client *http.Client, page *url.URL, limit int64, buf *bytes.Buffer) target.Answer {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page.String(), http.NoBody)
	if err != nil {
		return target.Answer{Failure: "request"}
	}
	req.Header.Set("Accept", accept)
	resp, err := client.Do(req)
	if err != nil {
		return target.Answer{Failure: failure(err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		_, _ = io.CopyN(io.Discard, resp.Body, 4096) // so that the connection can be used again; its length does not matter
		return target.Answer{Status: resp.StatusCode}
	}
	buf.Reset()
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, limit+1))
	body := buf.String()
	cut := err != nil
	if n > limit {
		body, cut = body[:limit], true
	}
	if err != nil && n == 0 {
		return target.Answer{Failure: failure(err)}
	}
	return target.Answer{Status: resp.StatusCode, Body: body, Cut: cut}
}

// failure names what went wrong in one word, so that it can be an attribute; errors of net/http hold addresses.
func failure(err error) string {
	var dns *net.DNSError
	var netErr net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.As(err, &dns):
		return "name_not_resolved"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection_lost"
	case strings.Contains(err.Error(), "tls:"), strings.Contains(err.Error(), "x509:"):
		return "tls"
	case strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return "tls"
	}
	return "network"
}
