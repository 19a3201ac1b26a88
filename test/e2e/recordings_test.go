//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/child"
)

// told is what clients were told in one recording.
type told struct{ requests, crashed, input, output float64 }

// recording is a file of OTLP/JSON lines and the truth of the clients that made it.
type recording struct {
	path string
	told told
}

// recordings finds the recorded vLLM traces whose clients' truth was kept.
func recordings(t testing.TB) []recording {
	t.Helper()
	folder := filepath.Join(child.FromEnv(t, "OTELCOL_LLM_SHARED", root, "../shared", "it holds corpus/captured"), "corpus", "captured")
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("no recordings: %v (OTELCOL_LLM_SHARED names the folder that holds corpus/captured)", err)
	}
	var all []recording
	for _, pattern := range []string{"vllm/*.traces.jsonl", "gateway/*.traces.jsonl"} {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		require.NoError(t, err)
		for _, p := range paths {
			base := strings.TrimSuffix(p, ".traces.jsonl")
			// One truth for a recording, or one for a version with the recording's name in each entry.
			if x, ok := readTruth(t, base+".truth.json", ""); ok {
				all = append(all, recording{p, x})
			} else if i := strings.LastIndexByte(base, '-'); i > 0 {
				if x, ok := readTruth(t, base[:i]+"-truth.json", base[i+1:]); ok {
					all = append(all, recording{p, x})
				}
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

func readTruth(t testing.TB, path, scenario string) (told, bool) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		return told{}, false
	}
	var calls []struct {
		Scenario string
		Status   int
		N        int
		Usage    *struct {
			Prompt     float64 `json:"prompt_tokens"`
			Completion float64 `json:"completion_tokens"`
			Input      float64 `json:"input_tokens"`
			Output     float64 `json:"output_tokens"`
		}
	}
	require.NoError(t, json.Unmarshal(b, &calls), path)
	var x told
	for _, c := range calls {
		if scenario != "" && c.Scenario != scenario {
			continue
		}
		if u := c.Usage; u != nil {
			x.requests++
			x.input += u.Prompt + u.Input
			x.output += u.Completion + u.Output
		}
		if c.Scenario == "n3" && c.Status == 500 {
			x.crashed++ // engine V0 dies of n > 1 with tracing, and leaves a span without attributes
		}
	}
	return x, true
}

// Recorded vLLM traces, sent byte for byte: requests and tokens in Prometheus and in the records are what the clients were told.
func TestRecordingsCountAsTheirClientsWereTold(t *testing.T) {
	files := recordings(t)
	modes := []mode{stateless}
	if supports(t, assembled) {
		modes = append(modes, assembled)
	}
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			s := &setup{Mode: m, Scrape: child.FreePorts(t, 1)[0]}
			b := startBackends(t, "127.0.0.1:"+s.Scrape, "groups: []\n")
			s.Backends = &b
			s.Sink = newSink(t).URL
			startCollector(t, s)
			var want told
			for _, f := range files {
				raw, err := os.ReadFile(f.path)
				require.NoError(t, err)
				for line := range strings.SplitSeq(string(raw), "\n") {
					if strings.TrimSpace(line) == "" {
						continue
					}
					_, err := post(s.tracesURL(), "application/json", line)
					require.NoError(t, err, f.path)
				}
				want.requests += f.told.requests
				want.crashed += f.told.crashed
				want.input += f.told.input
				want.output += f.told.output
			}
			t.Logf("%s: %d recordings: %+v", m.name, len(files), want)
			assert.Positive(t, want.crashed)
			patience := time.Now().Add(40 * time.Second)
			var r report
			eventuallySame(patience, func() bool {
				r = report{}
				b.flush(&r)
				for _, p := range b.paths() {
					for _, q := range []struct {
						metric, more string
						want         float64
					}{
						{"llm.requests", `,llm_status="ok"`, want.requests},
						{"llm.requests", `,llm_status="error"`, want.crashed},
						{"llm.input_tokens", "", want.input},
						{"llm.output_tokens", "", want.output},
					} {
						got, err := scalar(p.base, "sum("+p.selector(q.metric, "", "vllm-.*", q.more)+")")
						if err != nil {
							r.add("%s: %v", p.name, err)
						}
						r.equal(p.name+": "+q.metric+q.more, got, q.want)
					}
				}
				for field, want := range map[string]float64{"gen_ai.usage.input_tokens": want.input, "gen_ai.usage.output_tokens": want.output} {
					rows, err := logsQL(b.victoriaLogs, fmt.Sprintf(`event_name:="llm.request" "service.name":~"^vllm-" | stats sum(%q) n`, field))
					if err != nil || len(rows) != 1 || rows[0]["n"] != fmt.Sprint(int64(want)) {
						r.add("records: %s: %v %v, the truth is %v", field, rows, err, want)
					}
				}
				return len(r.lines) == 0
			})
			for _, d := range r.lines {
				t.Error(d)
			}
		})
	}
}

// eventuallySame asks until same is true or the deadline has passed.
func eventuallySame(deadline time.Time, same func() bool) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for !same() && time.Now().Before(deadline) {
		<-tick.C
	}
}
