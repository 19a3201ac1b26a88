// Command llmscan reads OTLP/JSON files and says which kinds of text they carry, without printing any of it.
//
// It is for auditors: run it on what a pipeline exports (the file exporter writes this format) and it should find nothing;
// run it on what comes in and it says what there is to hide. It uses the rules of the llmspan processor in their default
// configuration.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/content"
)

// The exit statuses.
const (
	exitClean = 0 // nothing found
	exitFound = 1 // text found
	exitError = 2 // could not read, or the arguments are wrong
)

const usage = `usage: llmscan [-allow KEYS] [-deny KEYS] FILE...

Reads OTLP/JSON export requests, one a line, of any signal ("-" is standard input), and prints which values
the llmspan processor would not let through: counts by signal, place, class and, where the key is a known
one, by key. Text is never printed, nor is a key that nobody has named.

Exit status: 0 nothing found, 1 text found, 2 a file could not be read or a line is no OTLP/JSON.

`

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("llmscan", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	allow := flags.String("allow", "", "comma-separated `keys` to let through, exact or a prefix ending in '*'")
	deny := flags.String("deny", "", "comma-separated `keys` that count as text, exact or a prefix ending in '*'")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitClean
		}
		return exitError
	}
	if flags.NArg() == 0 {
		flags.Usage()
		return exitError
	}
	r, err := content.New(content.Config{Allow: split(*allow), Deny: split(*deny)})
	if err != nil {
		fmt.Fprintln(stderr, "llmscan:", err)
		return exitError
	}
	status := exitClean
	for _, name := range flags.Args() {
		if s := scan(r, name, stdin, stdout, stderr); s > status {
			status = s
		}
	}
	return status
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// scan reports on one file and returns the exit status for it alone.
func scan(r *content.Redactor, name string, stdin io.Reader, stdout, stderr io.Writer) int {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			fmt.Fprintln(stderr, "llmscan:", err)
			return exitError
		}
		defer f.Close()
		in = f
	}
	rep, err := r.Scan(in)
	if err != nil {
		fmt.Fprintf(stderr, "llmscan: %s: %v\n", name, err)
		return exitError
	}
	fmt.Fprintf(stdout, "%s: %d requests, %d values with text\n", name, rep.Lines-rep.Invalid, rep.Total())
	if rep.Total() > 0 {
		t := tabwriter.NewWriter(stdout, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "COUNT\tSIGNAL\tPLACE\tCLASS\tKEY")
		for _, f := range rep.Findings() {
			key := f.Key
			if key == "" {
				key = "(not a known key)"
			}
			fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", rep.Count(f), f.Signal, f.Place, f.Class, key)
		}
		if err := t.Flush(); err != nil {
			fmt.Fprintln(stderr, "llmscan:", err)
			return exitError
		}
	}
	switch {
	case rep.Invalid > 0:
		fmt.Fprintf(stderr, "llmscan: %s: %d lines are no OTLP/JSON requests and were not looked at\n", name, rep.Invalid)
		return exitError
	case rep.Total() > 0:
		return exitFound
	}
	return exitClean
}
