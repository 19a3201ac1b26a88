//go:build e2e

package e2e

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/sim"
)

// path is one way on which metrics reached a backend, and how a metric is asked for there.
type path struct {
	name string
	base string
	// selector is the selector of a metric (its OpenTelemetry name and unit) of one source.
	selector func(metric, suffix, service, more string) string
}

// paths are the three ways: scraped by Prometheus, by remote write into Prometheus, by OTLP into VictoriaMetrics.
func (b backends) paths() []path {
	prom := func(via string) func(metric, suffix, service, more string) string {
		return func(metric, suffix, service, more string) string {
			name := strings.ReplaceAll(metric, ".", "_")
			switch {
			case suffix == "":
				name += "_total"
			case !strings.HasSuffix(metric, "_tokens"):
				name += "_seconds" + suffix
			default:
				name += suffix
			}
			return fmt.Sprintf(`%s{via=%q,job=~%q%s}`, name, via, service, more)
		}
	}
	return []path{
		{"scraped", b.prometheus, prom("scrape")},
		{"remote write", b.prometheus, prom("remote_write")},
		{"OTLP", b.victoriaMetrics, func(metric, suffix, service, more string) string {
			return fmt.Sprintf(`{__name__=%q,"service.name"=~%q%s}`, metric+suffix, service, strings.NewReplacer("llm_status", `"llm.status"`, "llm_estimated", `"llm.estimated"`).Replace(more))
		}},
	}
}

// metrics compares one path with the truth.
func (p path) metrics(r *report, m mode, truths []sim.Truth) {
	ask := func(query string) float64 {
		v, err := scalar(p.base, query)
		if err != nil {
			r.add("%s: %v", p.name, err)
		}
		return v
	}
	sum := func(metric, suffix, service, more string) float64 {
		return ask("sum(" + p.selector(metric, suffix, service, more) + ")")
	}
	for engine, want := range byEngine(truths) {
		what := p.name + ", " + engine + ": "
		r.equal(what+"requests", sum("llm.requests", "", engine, ""), want.requests)
		r.equal(what+"input tokens", sum("llm.input_tokens", "", engine, ""), want.input)
		r.equal(what+"output tokens", sum("llm.output_tokens", "", engine, ""), want.output)
		for _, h := range []struct {
			metric     string
			count, sum float64
		}{
			{"gen_ai.server.time_to_first_token", want.sequences, want.ttft},
			{"gen_ai.server.request.duration", want.sequences, want.e2e},
			{"llm.admission.duration", want.sequences, want.admission},
			{"llm.queue.duration", want.sequences, want.queue},
			{"llm.prefill.duration", want.sequences, want.prefill},
			{"llm.decode.duration", want.sequences, want.decode},
		} {
			r.equal(what+h.metric+" count", sum(h.metric, "_count", engine, ""), h.count)
			r.near(what+h.metric+" sum", sum(h.metric, "_sum", engine, ""), h.sum, h.count)
		}
		r.equal(what+"TPOT count", sum("gen_ai.server.time_per_output_token", "_count", engine, ""), want.twoTokens)
		p.quantiles(r, what, engine, names.ServerTTFT, want.ttftValues)
		p.quantiles(r, what, engine, names.ServerTPOT, want.tpotValues)
	}
	if m.whole {
		p.userSide(r, truths, sum)
		for status, want := range statuses(truths) {
			r.equal(p.name+": requests that are "+status, sum("llm.requests", "", "sim-.*", `,llm_status="`+status+`"`), want)
		}
	}
}

// userSide compares what only whole traces tell: the outermost layer's vantage, of requests that an engine answered.
func (p path) userSide(r *report, truths []sim.Truth, sum func(metric, suffix, service, more string) float64) {
	var requests, e2e, ingress, measured, ttft float64
	for i := range truths {
		x := &truths[i]
		if len(x.Sequences) == 0 {
			continue
		}
		requests++
		e2e += x.Outer.End.Sub(x.Outer.Start).Seconds()
		first := x.Sequences[0].Start
		for _, q := range x.Sequences {
			if q.Start.Before(first) {
				first = q.Start
			}
		}
		ingress += first.Sub(x.Outer.Start).Seconds()
		if x.Stream && (x.Client || x.Chunks) {
			measured++
			ttft += x.UserTTFT.Float()
		}
	}
	const engines = "sim-chat|sim-reason"
	r.equal(p.name+": user durations", sum("llm.user.request.duration", "_count", engines, ""), requests)
	r.near(p.name+": sum of user durations", sum("llm.user.request.duration", "_sum", engines, ""), e2e, requests)
	r.equal(p.name+": ingress durations", sum("llm.ingress.duration", "_count", engines, ""), requests)
	r.near(p.name+": sum of ingress durations", sum("llm.ingress.duration", "_sum", engines, ""), ingress, requests)
	measuredTTFT := `,llm_estimated="false"`
	r.equal(p.name+": measured user TTFTs", sum("llm.user.time_to_first_token", "_count", engines, measuredTTFT), measured)
	// A gateway sees the first token, and the request, up to a network's way from the user.
	got := sum("llm.user.time_to_first_token", "_sum", engines, measuredTTFT)
	if d := ttft - got; d < -0.001*measured || d > 0.002*measured {
		r.add("%s: sum of measured user TTFTs: %v, the truth is %v (%v of them)", p.name, got, ttft, measured)
	}
}

// quantiles compares P50, P95 and P99 of a histogram with the exact ones: they lie in the same bucket.
func (p path) quantiles(r *report, what, engine string, id names.MetricID, sorted []float64) {
	if len(sorted) == 0 {
		return
	}
	metric := names.Metrics[id]
	for _, q := range []float64{0.5, 0.95, 0.99} {
		exact := quantile(sorted, q)
		low, high := bucketOf(metric.Bounds, exact)
		query := fmt.Sprintf("histogram_quantile(%v, sum by (le) (%s))", q, p.selector(metric.Name, "_bucket", engine, ""))
		got, err := scalar(p.base, query)
		switch {
		case err != nil:
			r.add("%s: %v", p.name, err)
		case !(got >= low*(1-1e-9) && got <= high*(1+1e-9)):
			r.add("%sP%v of %s is %v, the truth is %v, whose bucket is %v to %v", what, 100*q, metric.Name, got, exact, low, high)
		}
	}
}

// statuses are the requests by status that a reader of whole traces must come to. A refused call is an error (client_errors).
func statuses(truths []sim.Truth) map[string]float64 {
	n := map[string]float64{"ok": 0, "error": 0, "cancelled": 0, "unknown": 0}
	for i := range truths {
		x := &truths[i]
		switch {
		case x.Seen.Spans == 0:
		case x.Seen.Status == sim.StatusRefused:
			n["error"]++
		default:
			n[string(x.Seen.Status)]++
		}
	}
	return n
}

// records compares the records in VictoriaLogs with the truth.
func (b backends) records(r *report, m mode, truths []sim.Truth) {
	one := func(query, field string) float64 {
		rows, err := logsQL(b.victoriaLogs, query)
		if err != nil || len(rows) != 1 {
			r.add("VictoriaLogs: %s: %d rows, %v", query, len(rows), err)
			return -1
		}
		v, err := strconv.ParseFloat(rows[0][field], 64)
		if err != nil {
			r.add("VictoriaLogs: %s: %v", query, err)
		}
		return v
	}
	for engine, want := range byEngine(truths) {
		of := fmt.Sprintf(`event_name:="llm.request" "service.name":=%q`, engine)
		r.equal("records of "+engine+": requests", one(of+` | stats count_uniq(trace_id) n`, "n"), want.requests)
		r.equal("records of "+engine+": input tokens", one(of+` | stats sum("gen_ai.usage.input_tokens") n`, "n"), want.input)
		r.equal("records of "+engine+": output tokens", one(of+` | stats sum("gen_ai.usage.output_tokens") n`, "n"), want.output)
		if m.whole {
			r.equal("records of "+engine, one(of+` | stats count() n`, "n"), want.requests)
		}
	}
	if !m.whole {
		return
	}
	for status, want := range statuses(truths) {
		query := fmt.Sprintf(`event_name:="llm.request" "service.name":~"^sim-" "llmspan.status":=%q | stats count() n`, status)
		r.equal("records that are "+status, one(query, "n"), want)
	}
}
