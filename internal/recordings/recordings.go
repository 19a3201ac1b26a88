// Package recordings gives tests the telemetry that real engines, gateways and SDKs sent: vLLM 0.9 to 0.32, SGLang, Dynamo, routers and
// 21 SDK and gateway stacks, each with what its client knew. They were recorded by this project, on loopback, with a tiny model of
// random weights: the text is gibberish and absolute times mean little, everything else is the sources' own.
//
// Only tests may import it.
package recordings

import (
	"bufio"
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

//go:embed testdata
var files embed.FS

// Names are the recordings of traces, as folder/stem, sorted.
func Names() []string {
	var out []string
	err := fs.WalkDir(files, "testdata", func(p string, d fs.DirEntry, err error) error {
		if stem, ok := strings.CutSuffix(p, ".traces.jsonl"); ok && err == nil && !d.IsDir() {
			out = append(out, strings.TrimPrefix(stem, "testdata/"))
		}
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("recordings: %v", err))
	}
	return out
}

// Lines are the export requests of a recording as OTLP/JSON, in the order in which they were sent.
func Lines(name string) ([][]byte, error) {
	b, err := files.ReadFile(path.Join("testdata", name+".traces.jsonl"))
	if err != nil {
		return nil, err
	}
	var out [][]byte
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		if len(bytes.TrimSpace(s.Bytes())) > 0 {
			out = append(out, bytes.Clone(s.Bytes()))
		}
	}
	return out, s.Err()
}

// Traces are the export requests of a recording, decoded.
func Traces(name string) ([]ptrace.Traces, error) {
	lines, err := Lines(name)
	if err != nil {
		return nil, err
	}
	var out []ptrace.Traces
	var u ptrace.JSONUnmarshaler
	for i, l := range lines {
		td, err := u.UnmarshalTraces(l)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", name, i+1, err)
		}
		out = append(out, td)
	}
	return out, nil
}

// Truth is a file of what the client knew, by its path below testdata.
func Truth(file string) ([]byte, error) { return files.ReadFile(path.Join("testdata", file)) }
