package series

import (
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/engine"
)

var epoch = time.Unix(1_700_000_000, 0)

// at is n seconds after the epoch of the tests, claimed the same as the engine writes it.
func at(n float64) time.Time      { return epoch.Add(time.Duration(n * float64(time.Second))) }
func claimedAt(n float64) float64 { return 1_700_000_000 + n }

func counter(value, created float64) []engine.Point {
	return []engine.Point{{Metric: engine.InputTokens, Value: value, Created: created}}
}

func TestStartTimes(t *testing.T) {
	// One row a scrape: its time, the counter's value, what the page claims (0 nothing), then the expected start; a negative value is no point.
	type row struct{ time, value, created, process, start float64 }
	tests := []struct {
		name     string
		rows     []row
		resets   int
		backward int
	}{
		{"a claim of the series is taken", []row{
			{100, 5, claimedAt(40), claimedAt(30), 40},
			{110, 7, claimedAt(40), claimedAt(30), 40},
		}, 0, 0},
		{"without one the process's start is", []row{
			{100, 5, 0, claimedAt(30), 30},
			{110, 7, 0, claimedAt(30), 30},
		}, 0, 0},
		{"without either the first sight is", []row{
			{100, 5, 0, 0, 100},
			{110, 7, 0, 0, 100},
		}, 0, 0},
		{"a restart that the page dates", []row{
			{100, 500, claimedAt(40), 0, 40},
			{110, 3, claimedAt(104), 0, 104},
			{120, 9, claimedAt(104), 0, 104},
		}, 1, 0},
		{"a restart that counts past the old value within one interval", []row{
			{100, 5, claimedAt(40), 0, 40},
			{110, 50, claimedAt(104), 0, 104},
		}, 1, 0},
		{"a restart that only the value shows began after the last value", []row{
			{100, 500, 0, 0, 100},
			{110, 3, 0, 0, 100.001},
			{120, 9, 0, 0, 100.001},
		}, 1, 0},
		{"the same after a gap", []row{
			{100, 500, 0, 0, 100},
			{110, -1, 0, 0, 0},
			{120, -1, 0, 0, 0},
			{130, 3, 0, 0, 100.001},
		}, 1, 0},
		{"a gap without a restart goes on", []row{
			{100, 500, 0, 0, 100},
			{110, -1, 0, 0, 0},
			{120, 510, 0, 0, 100},
		}, 0, 0},
		{"a counter that falls though the process did not restart", []row{
			{100, 500, claimedAt(40), 0, 40},
			{110, 450, claimedAt(40), 0, 100.001},
			{120, 460, claimedAt(40), 0, 100.001},
		}, 1, 0},
		{"an engine's clock behind ours: its restart is not moved before our last value", []row{
			{100, 500, claimedAt(-3600), 0, -3600},
			{110, 3, claimedAt(-3490), 0, 100.001},
		}, 1, 0},
		{"an engine's clock ahead of ours: nothing starts in the future", []row{
			{100, 5, claimedAt(3600), 0, 100},
			{110, 7, claimedAt(3600), 0, 100},
		}, 0, 0},
		{"a claim that appears later changes nothing by itself", []row{
			{100, 5, 0, 0, 100},
			{110, 7, claimedAt(40), 0, 100},
			{120, 9, claimedAt(40), 0, 100},
		}, 0, 0},
		{"a claim that appears and lies after the last value is a restart", []row{
			{100, 5, 0, 0, 100},
			{110, 7, claimedAt(105), 0, 105},
		}, 1, 0},
		{"two processes answer in turn", []row{
			{100, 5, claimedAt(40), 0, 40},
			{110, 90, claimedAt(60), 0, 100.001},
			{120, 6, claimedAt(40), 0, 110.001},
		}, 2, 1},
		{"nonsense is no claim", []row{{100, 5, 12, -1, 100}}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := &Tracker{Expiry: time.Hour}
			resets, backward := 0, 0
			for i, r := range tt.rows {
				s := Scrape{Time: at(r.time), ProcessStart: r.process}
				if r.value >= 0 {
					s.Points = counter(r.value, r.created)
				}
				out, c := tr.Observe(s)
				resets, backward = resets+c.Resets, backward+c.Backward
				if r.value < 0 {
					continue
				}
				require.Len(t, out, 1)
				want := at(r.start)
				assert.Equal(t, want.UTC().Format(time.RFC3339Nano), out[0].Start.UTC().Format(time.RFC3339Nano), "row %d", i)
				assert.False(t, out[0].Start.After(at(r.time)), "row %d: a start in the future", i)
			}
			assert.Equal(t, []int{tt.resets, tt.backward}, []int{resets, backward})
		})
	}
}

func TestASeriesThatComesLaterBeganLater(t *testing.T) {
	later := engine.Point{Metric: engine.OutputTokens, Value: 700}
	tests := []struct {
		name   string
		before []Scrape
		want   time.Time
	}{
		{"it is on the first page", nil, at(100)},
		{"it was not on the page before", []Scrape{{Time: at(90), Points: counter(1, 0), Whole: true}}, after(at(90))},
		{"it was not on the page before the outage", []Scrape{{Time: at(80), Points: counter(1, 0), Whole: true}, {Time: at(90)}}, after(at(80))},
		{"the page before was cut", []Scrape{{Time: at(90), Points: counter(1, 0), Whole: true, Partial: true}}, at(100)},
		{"the page before was not an engine's", []Scrape{{Time: at(90)}}, at(100)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := &Tracker{Expiry: time.Hour}
			for _, s := range tt.before {
				tr.Observe(s)
			}
			out, _ := tr.Observe(Scrape{Time: at(100), Points: []engine.Point{later}, Whole: true})
			assert.Equal(t, tt.want, out[0].Start)
		})
	}
}

func TestAHistogramResetsByItsCount(t *testing.T) {
	tr := &Tracker{}
	point := func(count uint64) []engine.Point {
		return []engine.Point{{Metric: engine.TimeToFirstToken, Hist: &engine.Hist{Count: count}}}
	}
	tr.Observe(Scrape{Time: at(0), Points: point(9)})
	out, c := tr.Observe(Scrape{Time: at(10), Points: point(2)})
	assert.Equal(t, 1, c.Resets)
	assert.Equal(t, after(at(0)), out[0].Start)
}

func TestAGaugeHasNoStart(t *testing.T) {
	out, _ := (&Tracker{}).Observe(Scrape{Time: at(0), ProcessStart: claimedAt(-5), Points: []engine.Point{{Metric: engine.QueueRequests, Value: 1}}})
	assert.True(t, out[0].Start.IsZero())
}

func TestWhatIsGoneIsMarkedOnce(t *testing.T) {
	tr := &Tracker{Expiry: time.Minute}
	two := []engine.Point{{Metric: engine.QueueRequests, Value: 1}, {Metric: engine.InputTokens, Value: 2}}
	tr.Observe(Scrape{Time: at(0), Points: two})

	out, c := tr.Observe(Scrape{Time: at(10), Points: two[:1]})
	assert.Equal(t, 1, c.Gone)
	require.Len(t, out, 2)
	assert.Equal(t, engine.InputTokens, out[1].Metric)
	assert.True(t, out[1].Gone)

	out, c = tr.Observe(Scrape{Time: at(20), Points: two[:1]})
	assert.Zero(t, c.Gone, "not twice")
	assert.Len(t, out, 1)

	out, _ = tr.Observe(Scrape{Time: at(30), Points: two})
	assert.Len(t, out, 2)
	assert.False(t, out[1].Gone, "it may come back")
}

func TestACutPageEndsNothing(t *testing.T) {
	tr := &Tracker{}
	tr.Observe(Scrape{Time: at(0), Points: counter(1, 0)})
	out, c := tr.Observe(Scrape{Time: at(10), Partial: true})
	assert.Empty(t, out)
	assert.Zero(t, c.Gone)
	_, c = tr.Observe(Scrape{Time: at(20)})
	assert.Equal(t, 1, c.Gone)
}

func TestWhatIsGoneIsForgottenInTheEnd(t *testing.T) {
	tr := &Tracker{Expiry: time.Minute}
	tr.Observe(Scrape{Time: at(0), Points: counter(1, 0)})
	tr.Observe(Scrape{Time: at(10)})
	assert.Equal(t, 1, tr.Held())
	tr.Observe(Scrape{Time: at(61)})
	assert.Zero(t, tr.Held())
}

func TestTheCapKeepsKnownSeries(t *testing.T) {
	tr := &Tracker{MaxSeries: 2, Expiry: time.Hour}
	points := func(models ...string) (out []engine.Point) {
		for _, m := range models {
			out = append(out, engine.Point{Metric: engine.InputTokens, Value: 1, Attrs: []engine.Attr{{Key: engine.AttrModel, Value: m}}})
		}
		return out
	}
	out, c := tr.Observe(Scrape{Time: at(0), Points: points("a", "b", "c", "d")})
	assert.Len(t, out, 2)
	assert.Equal(t, 2, c.Dropped)

	out, c = tr.Observe(Scrape{Time: at(10), Points: points("c", "b", "a")})
	assert.Equal(t, []string{"b", "a"}, models(out), "known ones go on, in the order of the page")
	assert.Equal(t, 1, c.Dropped)

	tr.Observe(Scrape{Time: at(20), Points: points("b")})
	out, c = tr.Observe(Scrape{Time: at(30), Points: points("b", "e")})
	assert.Equal(t, []string{"b", "e"}, models(out), "a series that is gone makes room")
	assert.Zero(t, c.Dropped)
	assert.LessOrEqual(t, tr.Held(), 2)
}

func TestASeriesThatIsThereTwiceCountsOnce(t *testing.T) {
	tr := &Tracker{}
	out, c := tr.Observe(Scrape{Time: at(0), Points: append(counter(5, 0), counter(9, 0)...)})
	require.Len(t, out, 1)
	assert.Equal(t, 5.0, out[0].Value)
	assert.Equal(t, 1, c.Dropped)
}

func TestAttributesAreCopiedCleanedAndCut(t *testing.T) {
	page := []byte("model-\xff-" + strings.Repeat("x", 1000))
	text := string(page)
	out, _ := (&Tracker{}).Observe(Scrape{Time: at(0), Points: []engine.Point{{Metric: engine.InputTokens, Attrs: []engine.Attr{{Key: engine.AttrModel, Value: text}}}}})
	got := out[0].Attrs[0].Value
	assert.True(t, strings.HasPrefix(got, "model-\uFFFD-xxx"))
	assert.Less(t, len(got), maxValue+4)
}

// TestRatesAddUp plays random histories of restarts and missed pages and counts what a reader of the points would count.
func TestRatesAddUp(t *testing.T) {
	for seed := range int64(400) {
		rng := rand.New(rand.NewSource(seed))
		claims, misses := seed%2 == 0, seed%4 >= 2
		tr := &Tracker{Expiry: time.Hour}
		truth, value, began := 0.0, 0.0, -5.0
		var read, last float64
		var lastStart, lastTime time.Time
		for i := range 60 {
			now := float64(10 * (i + 1))
			if rng.Intn(6) == 0 {
				value, began = 0, now-4 // a restart some time after the last scrape
			}
			more := float64(rng.Intn(50))
			value, truth = value+more, truth+more
			s := Scrape{Time: at(now)}
			if !misses || rng.Intn(8) > 0 {
				created := 0.0
				if claims {
					created = claimedAt(began)
				}
				s.Points = counter(value, created)
			}
			out, _ := tr.Observe(s)
			if s.Points == nil {
				continue
			}
			p := out[0]
			if p.Start.Equal(lastStart) {
				require.GreaterOrEqual(t, p.Value, last, "seed %d: a fall without a new start", seed)
				read += p.Value - last
			} else {
				require.True(t, lastStart.IsZero() || p.Start.After(lastTime), "seed %d: a series that begins anew overlaps the old one", seed)
				read += p.Value
			}
			last, lastStart, lastTime = p.Value, p.Start, s.Time
		}
		require.LessOrEqual(t, read, truth, "seed %d: nothing is counted twice", seed)
		if claims && !misses {
			require.Equal(t, truth, read, "seed %d: nothing is lost", seed)
		}
	}
}

func models(out []Output) (names []string) {
	for _, o := range out {
		names = append(names, o.Attrs[0].Value)
	}
	return names
}
