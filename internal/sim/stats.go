package sim

import (
	"math"
	"slices"
	"strconv"
)

// Buckets of vLLM 0.32.0 (engines.md lists their history; a test compares with the recorded page).
var (
	ttftBuckets      = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	tokenTimeBuckets = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	latencyBuckets   = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	iterationBuckets = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	nBuckets         = []float64{1, 2, 5, 10, 20}
	preemptBuckets   = []float64{1, 2, 3, 4, 5, 10, 20}
	highrBuckets     = []float64{.01, .025, .05, .075, .1, .25, .5, .75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60}
	lowrBuckets      = []float64{.1, .5, 1}
)

// lengthBuckets is 1, 2, 5, 10, … up to the longest context (vllm/v1/metrics/loggers.py, build_1_2_5_buckets).
func lengthBuckets(maxLen int) []float64 {
	var b []float64
	for scale := 1; ; scale *= 10 {
		for _, m := range []int{1, 2, 5} {
			if m*scale > maxLen {
				return b
			}
			b = append(b, float64(m*scale))
		}
	}
}

// histogram counts observations at or below each bound; the last count is of +Inf.
type histogram struct {
	bounds []float64
	counts []uint64
	sum    float64
	count  uint64
}

func newHistogram(bounds []float64) *histogram {
	return &histogram{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

func (h *histogram) observe(v float64) {
	i, _ := slices.BinarySearch(h.bounds, v)
	h.counts[i]++
	h.sum += v
	h.count++
}

// finished_reason values; all are on the page from the start.
var finishedReasons = []string{"stop", "length", "abort", "error", "repetition"}

// stats is what one life of an engine counts for its page.
type stats struct {
	processStart, created float64 // Unix seconds

	promptTokens, cachedTokens, generated  int64
	prefixQueries, prefixHits, preemptions int64
	rejectedRequests                       int64
	success                                map[string]int64

	prompt, generation, iteration, maxGeneration, paramsN, paramsMax *histogram
	ttft, itl, tpot, e2e, queue, inference, prefill, decode          *histogram
	requestPreempts, computedTokens                                  *histogram

	routes []*routeStats // in order of first use
	highr  *histogram
}

// routeStats is what prometheus_fastapi_instrumentator counts for one handler.
type routeStats struct {
	route    string
	status   []statusCount
	duration *histogram
	created  float64
	in, out  float64 // bytes
}

type statusCount struct {
	class   string
	n       int64
	created float64
}

func newStats(processStart, created float64) *stats {
	return &stats{processStart: processStart, created: created, success: map[string]int64{}, highr: newHistogram(highrBuckets)}
}

// prepare makes the histograms that depend on the longest context.
func (st *stats) prepare(maxLen int) {
	tokens := lengthBuckets(maxLen)
	for _, h := range []**histogram{&st.prompt, &st.generation, &st.maxGeneration, &st.paramsMax, &st.computedTokens} {
		*h = newHistogram(tokens)
	}
	st.iteration, st.paramsN, st.requestPreempts = newHistogram(iterationBuckets), newHistogram(nBuckets), newHistogram(preemptBuckets)
	st.ttft, st.itl, st.tpot = newHistogram(ttftBuckets), newHistogram(tokenTimeBuckets), newHistogram(tokenTimeBuckets)
	for _, h := range []**histogram{&st.e2e, &st.queue, &st.inference, &st.prefill, &st.decode} {
		*h = newHistogram(latencyBuckets)
	}
}

// finish observes a request that ended by itself. An aborted one is never observed (vllm#31503).
func (st *stats) finish(s *sequence) {
	st.success[s.finishReason()]++
	st.prompt.observe(float64(s.prompt))
	st.generation.observe(float64(s.made))
	st.paramsMax.observe(float64(s.maxTokens))
	if s.call.Kind != KindChoices || len(s.call.Outputs) == 1 {
		st.finishParent(s.made, 1)
	}
	st.e2e.observe((s.frontLast - s.arrival).Seconds())
	st.queue.observe((s.scheduled - s.queued).Seconds())
	st.prefill.observe((s.first - s.scheduled).Seconds())
	st.decode.observe((s.last - s.first).Seconds())
	st.inference.observe((s.last - s.scheduled).Seconds())
	tpot := 0.0
	if s.made > 1 {
		tpot = (s.last - s.first).Seconds() / float64(s.made-1)
	}
	st.tpot.observe(tpot)
	st.requestPreempts.observe(float64(s.preempts))
	st.computedTokens.observe(float64(s.prompt - s.cached))
}

// finishParent observes what is counted once for the n sequences of a request.
func (st *stats) finishParent(longest, n int) {
	st.maxGeneration.observe(float64(longest))
	st.paramsN.observe(float64(n))
}

// http counts an answer of the front end to a call.
func (st *stats) http(c *call, status int, seconds float64) {
	route := c.Route
	st.highr.observe(seconds)
	i := slices.IndexFunc(st.routes, func(r *routeStats) bool { return r.route == route })
	created := st.created + 1
	if i < 0 {
		i = len(st.routes)
		st.routes = append(st.routes, &routeStats{route: route, duration: newHistogram(lowrBuckets), created: created})
	}
	r := st.routes[i]
	r.duration.observe(seconds)
	r.in += 250
	for _, p := range c.Prompts {
		r.in += 4.4 * float64(p)
	}
	r.in = math.Floor(r.in)
	if !c.Stream || status != 200 { // a stream has no Content-Length
		r.out += 400
		for _, s := range c.sequences {
			r.out += 4 * float64(s.made)
		}
	}
	class := strconv.Itoa(status/100) + "xx"
	j := slices.IndexFunc(r.status, func(s statusCount) bool { return s.class == class })
	if j < 0 {
		j = len(r.status)
		r.status = append(r.status, statusCount{class: class, created: created})
	}
	r.status[j].n++
}
