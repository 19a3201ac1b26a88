// Command llmreplay sends recorded OTLP/JSON lines to a collector: one export request a line, as the file exporter writes them.
//
//	llmreplay [--endpoint http://127.0.0.1:4318] [--rebase] FILE…
//
// It exits 1 when a line is not OTLP, or anything was refused, and 2 when it was called wrongly.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

type options struct {
	endpoint string
	rebase   bool
	wait     time.Duration
	files    []string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "llmreplay:", err)
		return 2
	}
	sum, err := replay(ctx, opts, time.Now(), stderr)
	fmt.Fprintln(stdout, sum)
	if err != nil {
		fmt.Fprintln(stderr, "llmreplay:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("llmreplay", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.endpoint, "endpoint", "http://127.0.0.1:4318", "base `URL` of an OTLP/HTTP receiver")
	fs.BoolVar(&o.rebase, "rebase", false, "move all times by one amount, so that the last one of all files is now")
	fs.DurationVar(&o.wait, "wait", 10*time.Second, "how long to wait for the receiver to listen; 0 tries once")
	fs.Usage = func() {
		fmt.Fprintln(stderr, "usage: llmreplay [flags] FILE…\nsends OTLP/JSON lines (traces, logs, metrics) to a collector")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	u, err := url.Parse(o.endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return o, fmt.Errorf("--endpoint: must be a URL such as http://127.0.0.1:4318, got %q", o.endpoint)
	}
	if o.wait < 0 {
		return o, fmt.Errorf("--wait: must be 0 or more, got %s", o.wait)
	}
	if o.files = fs.Args(); len(o.files) == 0 {
		return o, errors.New("name at least one file of OTLP/JSON lines")
	}
	return o, nil
}
