package recordings_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/dialect"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/join"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/measure"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/record"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/split"
	"github.com/otelcol-llm/otelcol-llm/internal/recordings"
)

// Whatever OTLP says, read, split, join, measure and record do not panic; every span comes out; each request span is settled, held,
// unresolved or a duplicate; what we write has the type that the table names; and what becomes a label is a name.
func FuzzRead(f *testing.F) {
	// Small batches whole, and of each recording one span of each dialect alone: short seeds are tried most often.
	var pm ptrace.ProtoMarshaler
	add := func(td ptrace.Traces, limit int) {
		if b, err := pm.MarshalTraces(td); err == nil && len(b) < limit {
			f.Add(b, len(b)%3 == 0)
		}
	}
	for _, name := range recordings.Names() {
		batches, err := recordings.Traces(name)
		require.NoError(f, err)
		seen := map[string]bool{}
		for _, td := range batches {
			add(td, 3_000)
			for _, rs := range td.ResourceSpans().All() {
				res := dialect.ReadResource(rs.Resource())
				for _, ss := range rs.ScopeSpans().All() {
					for _, s := range ss.Spans().All() {
						r, ok := dialect.Read(s, res)
						if !ok || seen[r.Dialect] {
							continue
						}
						seen[r.Dialect] = true
						one := ptrace.NewTraces()
						rs.Resource().CopyTo(one.ResourceSpans().AppendEmpty().Resource())
						s.CopyTo(one.ResourceSpans().At(0).ScopeSpans().AppendEmpty().Spans().AppendEmpty())
						add(one, 2_000)
					}
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		var u ptrace.ProtoUnmarshaler
		td, err := u.UnmarshalTraces(data)
		if err != nil {
			t.Skip()
		}
		in := td.SpanCount()
		var before []map[string]any
		each(td, func(s ptrace.Span) { before = append(before, s.Attributes().AsRaw()) })

		facts := split.Traces(td, split.Options{StageSpans: true, DropSource: whole})
		if out := td.SpanCount(); out != in+facts.StageSpans {
			t.Fatalf("%d spans in, %d stages added, %d out", in, facts.StageSpans, out)
		}
		checkAttributes(t, td, before)

		j := join.New(join.Config{Window: time.Second, MaxSpans: 1_000})
		now := time.Unix(1_700_000_000, 0)
		requests, settled := 0, 0
		ld := plog.NewLogs()
		records := record.NewWriter(ld, now)
		measurer := measure.New(checkingSink{t})
		take := func(res join.Result) {
			settled += res.Settled + res.Unresolved + res.Duplicates
			for _, r := range res.Engines {
				measurer.Engine(r)
			}
			for i := range res.Requests {
				measurer.Request(&res.Requests[i])
				records.Write(&res.Requests[i])
			}
			if requests != settled+j.Held() {
				t.Fatalf("%d request spans in, %d settled, %d held", requests, settled, j.Held())
			}
		}
		batch, n := readSpans(td)
		requests += n
		take(j.Add(now, batch, whole))
		requests += n
		take(j.Add(now, batch, whole))
		j.Expire(now.Add(time.Second), take)
		j.Drain(take)
		if j.Held() != 0 || j.Remembered() != 0 {
			t.Fatalf("%d held and %d remembered after the end", j.Held(), j.Remembered())
		}
		checkRecords(t, ld)
		if _, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld); err != nil {
			t.Fatal(err)
		}
		if _, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td); err != nil {
			t.Fatal(err)
		}
	})
}

// readSpans is what the connector's adapter reads of a batch.
func readSpans(td ptrace.Traces) (batch []join.Span, requests int) {
	for _, rs := range td.ResourceSpans().All() {
		res := dialect.ReadResource(rs.Resource())
		for _, ss := range rs.ScopeSpans().All() {
			if ss.Scope().Name() == split.ScopeName {
				continue
			}
			for _, span := range ss.Spans().All() {
				s := join.Span{TraceID: span.TraceID(), SpanID: span.SpanID(), ParentID: span.ParentSpanID()}
				if r, ok := dialect.Read(span, res); ok && !r.LayerOnly {
					kept := r
					s.Request = &kept
					requests++
				}
				batch = append(batch, s)
			}
		}
	}
	return batch, requests
}

// checkAttributes holds what was written to the types of the table. Spans that said before that they were ours are whoever's they are.
func checkAttributes(t *testing.T, td ptrace.Traces, before []map[string]any) {
	t.Helper()
	i := 0
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				added := ss.Scope().Name() == split.ScopeName && i >= len(before)
				layer, ok := s.Attributes().Get(names.Layer)
				if i < len(before) && !added {
					_, had := before[i][names.Layer]
					if had || !ok {
						i++
						continue
					}
				}
				i++
				if ok && request.ParseLayer(layer.Str()) == request.LayerNone {
					t.Fatalf("layer %q", layer.AsString())
				}
				for _, a := range names.SpanAttributes {
					if v, ok := s.Attributes().Get(a.Key); ok && strings.HasPrefix(a.Key, "llmspan.") {
						if err := ofType(v, a.Type); err != nil {
							t.Fatalf("%s of span %q: %v", a.Key, s.Name(), err)
						}
					}
				}
			}
		}
	}
}

func ofType(v pcommon.Value, kind string) error {
	switch {
	case kind == "string" && v.Type() == pcommon.ValueTypeStr,
		kind == "bool" && v.Type() == pcommon.ValueTypeBool,
		kind == "int" && v.Type() == pcommon.ValueTypeInt && v.Int() >= 0:
		return nil
	case kind == "double s" && v.Type() == pcommon.ValueTypeDouble:
		if d := v.Double(); d >= 0 && !math.IsInf(d, 0) {
			return nil
		}
	case kind == "string[]" && v.Type() == pcommon.ValueTypeSlice:
		for _, e := range v.Slice().All() {
			if e.Type() != pcommon.ValueTypeStr {
				return fmt.Errorf("%s in %s", e.Type(), kind)
			}
		}
		return nil
	}
	return fmt.Errorf("%s %q is no %s", v.Type(), v.AsString(), kind)
}

func checkRecords(t *testing.T, ld plog.Logs) {
	t.Helper()
	types := map[string]string{names.TotalTokens: "int", names.RequestID: "string", names.ResponseModel: "string", names.FinishReasons: "string[]", names.ErrorType: "string"}
	for _, a := range names.SpanAttributes {
		types[a.Key] = a.Type
	}
	for _, rl := range ld.ResourceLogs().All() {
		for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
			for k, v := range lr.Attributes().All() {
				kind, ok := types[k]
				if !ok {
					t.Fatalf("a record with %s", k)
				}
				if err := ofType(v, kind); err != nil {
					t.Fatalf("%s of a record: %v", k, err)
				}
				if strings.ContainsAny(v.AsString(), " \n\t") {
					t.Fatalf("%s of a record is text: %q", k, v.AsString())
				}
			}
		}
	}
}

// checkingSink fails on what must not become a point.
type checkingSink struct{ t *testing.T }

func (c checkingSink) Charge(id names.MetricID, r *request.Request, labels []measure.Label, amount cost.Amount, weight float64) {
	c.Observe(id, r, labels, amount.Float64(), weight)
}

func (c checkingSink) Observe(id names.MetricID, r *request.Request, labels []measure.Label, value, weight float64) {
	m := names.Metrics[id]
	if r.Source == nil {
		c.t.Fatalf("%s without a source", m.Name)
	}
	if !(value >= 0 && value < 1e12) || !(weight >= 1 && !math.IsInf(weight, 0)) {
		c.t.Fatalf("%s: %g×%g", m.Name, value, weight)
	}
	seen := map[string]bool{}
	for _, l := range labels {
		if l.Value == "" || len(l.Value) > 128 || seen[l.Key] || strings.ContainsFunc(l.Value, func(c rune) bool { return c <= ' ' || c > '~' }) {
			c.t.Fatalf("%s: label %s=%q", m.Name, l.Key, l.Value)
		}
		seen[l.Key] = true
	}
}
