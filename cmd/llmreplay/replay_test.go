package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sample = "samples/vllm-0.32.0-gateway.traces.jsonl"

// receiver is an OTLP/HTTP receiver that answers with the next of its answers (the last one for good) and keeps what it took.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	answers []answer
	paths   []string
	bodies  [][]byte
}

type answer struct {
	code  int
	body  string
	retry string
}

func newReceiver(t *testing.T, answers ...answer) *receiver {
	r := &receiver{answers: answers}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		a := answer{code: 200, body: "{}"}
		if len(r.answers) > 0 {
			a = r.answers[0]
			if len(r.answers) > 1 {
				r.answers = r.answers[1:]
			}
		}
		if err == nil && a.code == 200 {
			r.paths, r.bodies = append(r.paths, req.URL.Path), append(r.bodies, body)
		}
		w.Header().Set("Retry-After", a.retry)
		w.WriteHeader(a.code)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(func() { r.Close(); http.DefaultTransport.(*http.Transport).CloseIdleConnections() })
	return r
}

func (r *receiver) traces(t *testing.T) []ptrace.Traces {
	var out []ptrace.Traces
	for _, b := range r.bodies {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(b)
		require.NoError(t, err)
		out = append(out, td)
	}
	return out
}

func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func write(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "in.jsonl")
	require.NoError(t, os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o600))
	return name
}

func TestSendsARecordingUnchanged(t *testing.T) {
	r := newReceiver(t)
	code, stdout, stderr := call(t, "--endpoint", r.URL+"/", sample)
	require.Equal(t, 0, code, stderr)
	assert.Empty(t, stderr)

	raw, err := os.ReadFile(sample)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	assert.Equal(t, fmt.Sprintf("sent %d requests: 228 spans, 0 log records, 0 data points; 0 lines failed\n", len(lines)), stdout)
	got := r.traces(t)
	require.Len(t, got, len(lines))
	for i, l := range lines {
		want, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(l))
		require.NoError(t, err)
		assert.Equal(t, want, got[i], "line %d", i+1)
		assert.Equal(t, "/v1/traces", r.paths[i])
	}
}

func TestRebaseMovesEverythingByOneAmountSoThatTheLastIsNow(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	times := func(tds []ptrace.Traces) (all []pcommon.Timestamp, last pcommon.Timestamp) {
		for _, td := range tds {
			request{traces: &td}.mapTimes(func(ts pcommon.Timestamp) pcommon.Timestamp {
				all, last = append(all, ts), max(last, ts)
				return ts
			})
		}
		return all, last
	}
	plain, moved := newReceiver(t), newReceiver(t)
	_, err := replay(t.Context(), options{endpoint: plain.URL, files: []string{sample}}, now, io.Discard)
	require.NoError(t, err)
	_, err = replay(t.Context(), options{endpoint: moved.URL, files: []string{sample}, rebase: true}, now, io.Discard)
	require.NoError(t, err)

	before, lastBefore := times(plain.traces(t))
	after, lastAfter := times(moved.traces(t))
	assert.Equal(t, pcommon.NewTimestampFromTime(now), lastAfter)
	require.Len(t, after, len(before))
	for i := range before {
		require.Equal(t, lastBefore-before[i], lastAfter-after[i], "distances stay")
	}
}

func TestRebaseSeesEveryTimeOfEverySignal(t *testing.T) {
	const old, new = pcommon.Timestamp(1000), pcommon.Timestamp(5000)
	set := func(ts pcommon.Timestamp) []request {
		td := ptrace.NewTraces()
		s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetStartTimestamp(ts)
		s.SetEndTimestamp(ts)
		s.Events().AppendEmpty().SetTimestamp(ts)
		s.Events().AppendEmpty() // not told: stays 0

		ld := plog.NewLogs()
		l := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		l.SetTimestamp(ts)
		l.SetObservedTimestamp(ts)

		md := pmetric.NewMetrics()
		ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
		for _, p := range []interface {
			timed
			Exemplars() pmetric.ExemplarSlice
		}{
			ms.AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty(), ms.AppendEmpty().SetEmptySum().DataPoints().AppendEmpty(),
			ms.AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty(), ms.AppendEmpty().SetEmptyExponentialHistogram().DataPoints().AppendEmpty(),
		} {
			p.SetTimestamp(ts)
			p.SetStartTimestamp(ts)
			p.Exemplars().AppendEmpty().SetTimestamp(ts)
		}
		p := ms.AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty()
		p.SetTimestamp(ts)
		p.SetStartTimestamp(ts)
		ms.AppendEmpty() // without data
		return []request{{traces: &td}, {logs: &ld}, {metrics: &md}}
	}
	got := set(old)
	for _, r := range got {
		r.mapTimes(func(ts pcommon.Timestamp) pcommon.Timestamp { return ts + 4000 })
	}
	assert.Equal(t, set(new), got)
}

func TestLogsAndMetricsGoToTheirOwnPaths(t *testing.T) {
	r := newReceiver(t)
	file := write(t,
		`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1"},{"timeUnixNano":"2"}]}]}]}`, "",
		`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"a","gauge":{"dataPoints":[{"asInt":"1","timeUnixNano":"3"}]}}]}]}]}`)
	code, stdout, stderr := call(t, "--endpoint", r.URL, file)
	assert.Equal(t, 0, code, stderr)
	assert.Equal(t, "sent 2 requests: 0 spans, 2 log records, 1 data points; 0 lines failed\n", stdout)
	assert.Equal(t, []string{"/v1/logs", "/v1/metrics"}, r.paths)
}

func TestABadLineIsNamedAndTheRestIsSent(t *testing.T) {
	r := newReceiver(t)
	file := write(t, `{"resourceSpans":[]}`, `{"resourceSpans":`, `{"hello":1}`, `[]`, `{"resourceSpans":[{"resource":7}]}`, `{"resourceSpans":[]}`)
	code, stdout, stderr := call(t, "--rebase", "--endpoint", r.URL, file)
	assert.Equal(t, 1, code)
	assert.Contains(t, stdout, "sent 2 requests")
	assert.Contains(t, stdout, "4 lines failed")
	for _, want := range []string{"in.jsonl:2: not a JSON object", "in.jsonl:3: not an export request", "in.jsonl:4: not a JSON object", "in.jsonl:5: "} {
		assert.Contains(t, stderr, want)
	}
}

func TestManyBadLinesAreCountedNotAllNamed(t *testing.T) {
	r := newReceiver(t)
	code, stdout, stderr := call(t, "--endpoint", r.URL, write(t, strings.Repeat("x\n", 1000)))
	assert.Equal(t, 1, code)
	assert.Contains(t, stdout, "1000 lines failed")
	assert.Equal(t, shownErrors+1, strings.Count(stderr, "\n"))
}

func TestRefusalsFail(t *testing.T) {
	for name, tt := range map[string]struct {
		a    answer
		want string
	}{
		"bad request":         {answer{code: 400, body: `{"code":3,"message":"no such thing"}`}, "refused with 400 Bad Request: no such thing"},
		"no such pipeline":    {answer{code: 404, body: "404 page not found\n"}, "refused with 404 Not Found: 404 page not found"},
		"partial, as text":    {answer{code: 200, body: `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}`}, "rejectedSpans: 3: too old"},
		"partial, as number":  {answer{code: 200, body: `{"partialSuccess":{"rejectedSpans":3}}`}, "rejectedSpans: 3"},
		"logs partly refused": {answer{code: 200, body: `{"partialSuccess":{"rejectedLogRecords":"1"}}`}, "rejectedLogRecords: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, tt.a)
			code, stdout, stderr := call(t, "--endpoint", r.URL, write(t, `{"resourceSpans":[]}`))
			assert.Equal(t, 1, code)
			assert.Contains(t, stdout, "sent 0 requests")
			assert.Contains(t, stderr, "in.jsonl:1: "+tt.want)
		})
	}
}

func TestAnEmptyPartialSuccessIsSuccess(t *testing.T) {
	for _, body := range []string{"", "{}", `{"partialSuccess":{}}`, `{"partialSuccess":{"rejectedSpans":"0"}}`, "not JSON"} {
		r := newReceiver(t, answer{code: 200, body: body})
		code, _, stderr := call(t, "--endpoint", r.URL, write(t, `{"resourceSpans":[]}`))
		assert.Equal(t, 0, code, "%q: %s", body, stderr)
	}
}

func TestTriesAgainOnlyWhenToldAndNotForEver(t *testing.T) {
	for name, tt := range map[string]struct {
		answers []answer
		pauses  []time.Duration
		ok      bool
	}{
		"busy twice":           {[]answer{{code: 503}, {code: 429, retry: "2"}, {code: 200}}, []time.Duration{500 * time.Millisecond, 2 * time.Second}, true},
		"a long pause is cut":  {[]answer{{code: 503, retry: "3600"}, {code: 200}}, []time.Duration{maxPause}, true},
		"busy for good":        {[]answer{{code: 503, retry: "1"}}, []time.Duration{1e9, 1e9, 1e9, 1e9}, false},
		"an error of the data": {[]answer{{code: 400}, {code: 200}}, nil, false},
		"an internal error":    {[]answer{{code: 500}, {code: 200}}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, tt.answers...)
			s := newSender(r.URL, time.Minute)
			var pauses []time.Duration
			s.pause = func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil }
			td := ptrace.NewTraces()
			err := s.send(t.Context(), request{traces: &td})
			assert.Equal(t, tt.ok, err == nil, "%v", err)
			assert.Equal(t, tt.pauses, pauses)
			if !tt.ok {
				assert.ErrorAs(t, err, &refusedError{})
			}
		})
	}
}

func TestWaitsForTheReceiverToListen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())

	s := newSender("http://"+addr, 3*connectPause)
	tries := 0
	s.pause = func(context.Context, time.Duration) error { tries++; return nil }
	td := ptrace.NewTraces()
	err = s.send(t.Context(), request{traces: &td})
	assert.ErrorContains(t, err, "cannot reach the collector; start it (make run) or set --endpoint")
	assert.Equal(t, 3, tries, "then it gives up")

	code, stdout, stderr := call(t, "--wait", "0", "--endpoint", "http://"+addr, write(t, `{"resourceSpans":[]}`, `{"resourceSpans":[]}`))
	assert.Equal(t, 1, code)
	assert.Contains(t, stdout, "0 lines failed", "a receiver that is not there ends it at once")
	assert.Contains(t, stderr, "in.jsonl:1: cannot reach the collector")
}

func TestCancelledWhileWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, sleep(ctx, time.Hour), context.Canceled)
	assert.NoError(t, sleep(t.Context(), 0))
}

func TestALineThatIsTooLongEndsItWithItsNumber(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "long.jsonl"))
	require.NoError(t, err)
	_, err = f.WriteString(`{"resourceSpans":[]}` + "\n")
	require.NoError(t, err)
	require.NoError(t, f.Truncate(maxLine+100)) // sparse: the line is zeros
	require.NoError(t, f.Close())
	r := newReceiver(t)
	code, _, stderr := call(t, "--endpoint", r.URL, f.Name())
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "long.jsonl:2: cannot read the line (at most 64 MiB)")
}

func TestWrongCallsExit2(t *testing.T) {
	for want, args := range map[string][]string{
		"name at least one file":     {},
		"--endpoint: must be a URL":  {"--endpoint", "localhost:4318", "x"},
		"--wait: must be 0 or more":  {"--wait", "-1s", "x"},
		"flag provided but not defi": {"--nope", "x"},
	} {
		code, _, stderr := call(t, args...)
		assert.Equal(t, 2, code, want)
		assert.Contains(t, stderr, want)
	}
	code, _, stderr := call(t, "--help")
	assert.Equal(t, 0, code)
	assert.Contains(t, stderr, "usage: llmreplay")
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	r := newReceiver(t)
	code, _, stderr := call(t, "--endpoint", r.URL, filepath.Join(t.TempDir(), "absent.jsonl"))
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "absent.jsonl: no such file")
	code, _, stderr = call(t, "--endpoint", r.URL, write(t, ""))
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "hold no export request")
}

func TestEverySampleIsListedAndReadable(t *testing.T) {
	files, err := filepath.Glob("samples/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	page, err := os.ReadFile("samples/README.md")
	require.NoError(t, err)
	for _, f := range files {
		assert.Contains(t, string(page), "`"+filepath.Base(f)+"`")
	}
	n := 0
	require.NoError(t, eachLine(files, func(string, int, request) error { n++; return nil }, func(e lineError) { t.Error(e) }))
	assert.Positive(t, n)
}

// FuzzDecode: a line is refused, or it is OTLP that encodes and decodes to the same again.
func FuzzDecode(f *testing.F) {
	raw, err := os.ReadFile("samples/vllm-0.32.0-error.traces.jsonl")
	require.NoError(f, err)
	for _, l := range bytes.Split(raw, []byte("\n")) {
		f.Add(l)
	}
	f.Add([]byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1","eventName":"llm.request"}]}]}]}`))
	f.Add([]byte(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"a","sum":{"dataPoints":[{"asDouble":1}]}}]}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decode(b)
		if err != nil {
			return
		}
		r.mapTimes(func(ts pcommon.Timestamp) pcommon.Timestamp { return ts })
		once, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode(once)
		if err != nil {
			// What holds nothing encodes as {}: nothing to send, nothing lost.
			if r.items() == 0 {
				return
			}
			t.Fatalf("%v: %s", err, once)
		}
		twice, err := again.encode()
		if err != nil {
			t.Fatal(err)
		}
		if r.items() != again.items() || !bytes.Equal(once, twice) {
			t.Fatalf("%s\nis read back as\n%s", once, twice)
		}
	})
}
