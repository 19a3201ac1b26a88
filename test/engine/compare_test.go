//go:build engine

package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// outcome is everything that is compared.
type outcome struct {
	client          []truth
	engine          page // what the answered requests added to the engine's page
	cancelledEngine page // what the cancelled ones added
	enginePage      page // at the end
	receiver        series
	metrics         [2]series // assembled, stateless
	records         [2][]record
	traces          map[string][]ptrace.Span
	faults          []string
	table           strings.Builder
}

// none is a source that cannot tell.
var none = math.NaN()

// row compares figures with the first one that is known, within a share of it, and prints them.
func (o *outcome) row(what string, tolerance float64, figures ...float64) {
	var truth float64
	known := false
	cells := make([]string, len(figures))
	verdict := "equal"
	if tolerance > 0 {
		verdict = fmt.Sprintf("within %g %%", tolerance*100)
	}
	for i, f := range figures {
		switch {
		case math.IsNaN(f):
			cells[i] = "—"
			continue
		case f == math.Trunc(f):
			cells[i] = fmt.Sprintf("%.0f", f)
		default:
			cells[i] = fmt.Sprintf("%.4f", f)
		}
		if !known {
			truth, known = f, true
		} else if math.Abs(f-truth) > tolerance*math.Abs(truth)+1e-9 {
			verdict = "**differs**"
			o.fault("%s: %v in column %d, the truth is %v (tolerance %g)", what, f, i+1, truth, tolerance)
		}
	}
	fmt.Fprintf(&o.table, "| %s | %s | %s |\n", what, strings.Join(cells, " | "), verdict)
}

func (o *outcome) fault(format string, args ...any) {
	o.faults = append(o.faults, fmt.Sprintf(format, args...))
}

// sum adds up what f says of the client's requests of a kind.
func (o *outcome) sum(k kind, f func(truth) float64) (v float64) {
	for _, t := range o.client {
		if t.kind == k {
			v += f(t)
		}
	}
	return v
}

// compare returns the table and what in it is wrong.
func (o *outcome) compare() (string, []string) {
	one := func(truth) float64 { return 1 }
	value := func(way int, name string, with ...string) float64 {
		v, _ := o.metrics[way].total(name, with...)
		return v
	}
	count := func(way int, name string, with ...string) float64 {
		_, n := o.metrics[way].total(name, with...)
		return n
	}
	recorded := func(way int, status, key string) (v float64) {
		for _, r := range o.records[way] {
			if r.status != status {
				continue
			}
			if key == "" {
				v++
			} else if n, ok := r.number(key); ok {
				v += n
			}
		}
		return v
	}
	answered := o.sum(kindAnswer, one)
	o.table.WriteString("| of the answered requests | client | engine's page | metrics, whole traces | metrics, span by span | records, whole traces | records, span by span | |\n|---|---|---|---|---|---|---|---|\n")
	o.row("requests", 0, answered, none, value(0, "llm.requests", "llm.status=ok"), value(1, "llm.requests"), recorded(0, "ok", ""), recorded(1, "ok", ""))
	sequences := o.sum(kindAnswer, func(t truth) float64 { return float64(t.sequences) })
	o.row("sequences", 0, sequences, o.engine["vllm:request_success_total"], count(0, "gen_ai.server.request.duration"), count(1, "gen_ai.server.request.duration"), none, none)
	o.row("input tokens, each prompt once", 0, o.sum(kindAnswer, func(t truth) float64 { return t.prompt }), none,
		value(0, "llm.input_tokens"), value(1, "llm.input_tokens"), recorded(0, "ok", "gen_ai.usage.input_tokens"), recorded(1, "ok", "gen_ai.usage.input_tokens"))
	o.row("input tokens, of every sequence", 0, o.sum(kindAnswer, func(t truth) float64 {
		return t.prompt * float64(t.sequences/t.prompts)
	}), o.engine["vllm:prompt_tokens_total"], none, none, none, none)
	o.row("output tokens", 0, o.sum(kindAnswer, func(t truth) float64 { return t.output }), o.engine["vllm:generation_tokens_total"],
		value(0, "llm.output_tokens"), value(1, "llm.output_tokens"), recorded(0, "ok", "gen_ai.usage.output_tokens"), recorded(1, "ok", "gen_ai.usage.output_tokens"))
	for _, h := range []struct {
		what, page, metric string
		tolerance          float64
	}{
		{"TTFT, s", "vllm:time_to_first_token_seconds", "gen_ai.server.time_to_first_token", 0.01},
		{"e2e, s", "vllm:e2e_request_latency_seconds", "gen_ai.server.request.duration", 0.01},
		{"queue, s", "vllm:request_queue_time_seconds", "llm.queue.duration", 0.01},
		{"prefill, s", "vllm:request_prefill_time_seconds", "llm.prefill.duration", 0.01},
		{"decode, s", "vllm:request_decode_time_seconds", "llm.decode.duration", 0.01},
	} {
		o.row(h.what+", count", 0, none, o.engine[h.page+"_count"], count(0, h.metric), count(1, h.metric), none, none)
		o.row(h.what+", sum", h.tolerance, none, o.engine[h.page+"_sum"], value(0, h.metric), value(1, h.metric), none, none)
	}

	o.table.WriteString("\n| of all requests | client | whole traces | |\n|---|---|---|---|\n")
	o.row("refused", 0, o.sum(kindRefused, one), value(0, "llm.requests", "llm.status=error"))
	o.row("refused, records", 0, o.sum(kindRefused, one), recorded(0, "error", ""))
	cancelled := o.sum(kindCancelled, one)
	o.row("cancelled", 0, cancelled, value(0, "llm.requests", "llm.status=cancelled"))
	o.row("cancelled, records", 0, cancelled, recorded(0, "cancelled", ""))
	o.row("cancelled, engine's page (started − finished)", 0, cancelled,
		o.cancelledEngine["vllm:time_to_first_token_seconds_count"]-o.cancelledEngine["vllm:e2e_request_latency_seconds_count"])
	o.row("all", 0, float64(len(o.client)), value(0, "llm.requests"))
	o.user()
	o.stages()
	o.scraped(cancelled)
	return o.table.String(), o.faults
}

// user compares what the gateway's span says about the user's side with the client's own watch, request by request.
func (o *outcome) user() {
	byTrace := map[string]truth{}
	for _, t := range o.client {
		if t.kind == kindAnswer {
			byTrace[t.trace] = t
		}
	}
	var ttft, e2e, exact []float64
	seen := map[string]bool{}
	for trace, spans := range o.traces {
		t, ok := byTrace[trace]
		if !ok {
			continue
		}
		for _, s := range spans {
			first, measured := s.Attributes().Get("llmspan.user.ttft")
			_, estimated := s.Attributes().Get("llmspan.user.ttft.estimated")
			if measured && !estimated && t.stream && !seen[trace+"t"] {
				seen[trace+"t"] = true
				ttft = append(ttft, t.ttft.Seconds()-first.Double())
				exact = append(exact, t.ttft.Seconds())
			}
			if whole, ok := s.Attributes().Get("llmspan.user.e2e"); ok && !seen[trace+"e"] {
				seen[trace+"e"] = true
				e2e = append(e2e, t.e2e.Seconds()-whole.Double())
			}
		}
	}
	streams := o.sum(kindAnswer, func(t truth) float64 {
		if t.stream {
			return 1
		}
		return 0
	})
	o.table.WriteString("\n| user's side, request by request | requests | measured | client's figure minus ours, P50, ms | P95, ms | |\n|---|---|---|---|---|---|\n")
	for _, x := range []struct {
		what string
		want float64
		off  []float64
	}{{"user TTFT of streams", streams, ttft}, {"user e2e", float64(len(byTrace)), e2e}} {
		slices.Sort(x.off)
		verdict := "all there, near"
		p50, p95 := quantile(x.off, 0.5), quantile(x.off, 0.95)
		// The client's watch starts before the gateway's span and ends after it, on a machine with more to do than cores.
		if float64(len(x.off)) != x.want || p50 < -0.001 || p50 > 0.05 || p95 > 0.5 {
			verdict = "**differs**"
			o.fault("%s: %d of %v requests, off by %.4f s (P50), %.4f s (P95)", x.what, len(x.off), x.want, p50, p95)
		}
		fmt.Fprintf(&o.table, "| %s | %.0f | %d | %.1f | %.1f | %s |\n", x.what, x.want, len(x.off), p50*1000, p95*1000, verdict)
	}
	slices.Sort(exact)
	fmt.Fprintf(&o.table, "\nThe client's TTFT of these streams: P50 %.0f ms, P95 %.0f ms.\n", quantile(exact, 0.5)*1000, quantile(exact, 0.95)*1000)
}

func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// stages checks that the stages of every answered request with one sequence fill its outermost span to the nanosecond.
func (o *outcome) stages() {
	whole, missing := 0, 0
	var off int64
	for _, t := range o.client {
		if t.kind != kindAnswer || t.sequences != 1 {
			continue
		}
		d, ok := partition(o.traces[t.trace])
		switch {
		case !ok:
			missing++
		default:
			whole++
			off += d
		}
	}
	if missing > 0 || off != 0 || whole == 0 {
		o.fault("stages: %d requests filled, %d lack a stage, %d ns off", whole, missing, off)
	}
	fmt.Fprintf(&o.table, "\nStages of requests with one answer: %d of %d have all six, touching and in order from the gateway's start to its end; %d ns off in total.\n",
		whole, whole+missing, off)
}

// scraped compares what the vllm receiver says at the end with the page, all requests included.
func (o *outcome) scraped(cancelled float64) {
	o.table.WriteString("\n| at the end | engine's page | `vllm` receiver | |\n|---|---|---|---|\n")
	for _, x := range []struct{ page, metric string }{
		{"vllm:prompt_tokens_total", "llm.engine.input_tokens"},
		{"vllm:generation_tokens_total", "llm.engine.output_tokens"},
		{"vllm:request_success_total", "llm.engine.requests"},
		{"vllm:time_to_first_token_seconds_count", "llm.engine.requests.started"},
		{"vllm:prefix_cache_queries_total", "llm.engine.prefix_cache.queries"},
		{"vllm:prefix_cache_hits_total", "llm.engine.prefix_cache.hits"},
		{"vllm:num_preemptions_total", "llm.engine.preemptions"},
		{"vllm:time_to_first_token_seconds_sum", "llm.engine.time_to_first_token"},
		{"vllm:e2e_request_latency_seconds_sum", "llm.engine.request.duration"},
	} {
		v, _ := o.receiver.total(x.metric)
		o.row("`"+x.metric+"`", 0, o.enginePage[x.page], v)
	}
	started, _ := o.receiver.total("llm.engine.requests.started")
	finished, _ := o.receiver.total("llm.engine.requests")
	o.row("started − finished = cancelled", 0, cancelled, started-finished)
	hits := o.sum(kindAnswer, func(t truth) float64 { return t.cached })
	fmt.Fprintf(&o.table, "\nPrompt tokens from the prefix cache, as the clients were told: %.0f; on the page: %.0f.\n", hits, o.engine["vllm:prefix_cache_hits_total"])
	if hits <= 0 || o.engine["vllm:prefix_cache_hits_total"] < hits {
		o.fault("prefix cache: %v by the clients, %v on the page, although a long prompt was sent twice", hits, o.engine["vllm:prefix_cache_hits_total"])
	}
}
