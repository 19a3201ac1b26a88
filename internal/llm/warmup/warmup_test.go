package warmup

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var t0 = time.Unix(1_796_045_488, 0)

// ask sends a request of an instance that begins at a second after t0 and takes one.
func ask(tr *Tracker, at int, instance string) (bool, request.Seconds) {
	start := pcommon.NewTimestampFromTime(t0.Add(time.Duration(at) * time.Second))
	return tr.Request(t0.Add(time.Duration(at+1)*time.Second), &request.Request{
		Source: &request.Source{Service: "s", Instance: instance}, Start: start, End: start + 1e9,
	})
}

func tracker() *Tracker {
	return New(Config{Requests: 2, Settle: time.Minute, Max: 3, Within: time.Hour})
}

func TestWhatIsHeardFirstIsOld(t *testing.T) {
	tr := tracker()
	for i := range 5 {
		warm, cold := ask(tr, i, "a")
		assert.False(t, warm)
		assert.False(t, cold.Known)
	}
	warm, _ := ask(tr, 50, "b")
	assert.False(t, warm, "within settle")
}

func TestANewInstanceIsWarmedUp(t *testing.T) {
	tr := tracker()
	ask(tr, 0, "a")
	for i, want := range []bool{true, true, false, false} {
		warm, cold := ask(tr, 100+i, "b")
		assert.Equal(t, want, warm, "request %d", i)
		assert.False(t, cold.Known, "nobody told when it started")
	}
	warm, _ := ask(tr, 110, "a")
	assert.False(t, warm)
	warm, _ = ask(tr, 120, "")
	assert.False(t, warm, "a service without instances is not a new one each time it is forgotten")
}

func TestAStartThatIsReported(t *testing.T) {
	tr := tracker()
	s := &request.Source{Service: "s", Instance: "a"}
	began := pcommon.NewTimestampFromTime(t0)
	tr.Started(t0.Add(30*time.Second), s, began)
	warm, cold := ask(tr, 39, "a")
	assert.True(t, warm, "also within settle")
	assert.Equal(t, request.Some(40.), cold, "from the start to the end of the first request")
	warm, cold = ask(tr, 40, "a")
	assert.True(t, warm)
	assert.False(t, cold.Known, "once")
	tr.Started(t0.Add(60*time.Second), s, began)
	warm, _ = ask(tr, 61, "a")
	assert.False(t, warm, "the same start, sent twice")
	tr.Started(t0.Add(90*time.Second), s, began+80e9)
	warm, cold = ask(tr, 70, "a")
	assert.False(t, warm, "a request of the process before")
	assert.False(t, cold.Known)
	warm, cold = ask(tr, 99, "a")
	assert.True(t, warm)
	assert.Equal(t, request.Some(20.), cold)
	warm, _ = ask(tr, 99+3700, "a")
	assert.False(t, warm, "an hour later nothing is warming up")
}

func TestRemembersNoMoreThanItsCap(t *testing.T) {
	tr := tracker()
	for i := range 100 {
		ask(tr, i, fmt.Sprint(i))
		assert.LessOrEqual(t, tr.Len(), 3)
	}
}
