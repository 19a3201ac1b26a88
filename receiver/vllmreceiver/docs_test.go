package vllmreceiver

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/receiver/vllmreceiver/internal/engine"
)

const enginesPage = "../../docs/engines.md"

// TestEnginesPage holds docs/engines.md and the tables of the code together: what stands between the markers is made from the tables.
func TestEnginesPage(t *testing.T) {
	b, err := os.ReadFile(enginesPage)
	require.NoError(t, err)
	text := string(b)
	for name, made := range map[string]string{"matrix": matrix(), "engines": perEngine(), "metrics": metricList()} {
		begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
		before, rest, ok := strings.Cut(text, begin)
		require.True(t, ok, begin)
		got, after, ok := strings.Cut(rest, end)
		require.True(t, ok, end)
		if *update {
			text = before + begin + made + end + after
			continue
		}
		assert.Equal(t, made, got, "%s: run the tests with -update", name)
	}
	if *update {
		require.NoError(t, os.WriteFile(enginesPage, []byte(text), 0o644))
	}
}

// fromPages are the metrics that pages carry; the others are the receiver's own.
func fromPages() (out []*engine.Metric) {
	for _, m := range engine.Metrics() {
		if !m.Own {
			out = append(out, m)
		}
	}
	return out
}

func rulesOf(t *engine.Table, m *engine.Metric) (out []engine.Rule) {
	for _, r := range t.Rules {
		if r.Metric == m {
			out = append(out, r)
		}
	}
	return out
}

func matrix() string {
	var b strings.Builder
	b.WriteString("| `llm.engine.` |")
	for _, t := range engine.Tables() {
		b.WriteString(" " + t.Title + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat(":-:|", len(engine.Tables())) + "\n")
	for _, m := range fromPages() {
		b.WriteString("| " + short(m) + " |")
		for _, t := range engine.Tables() {
			mark := ""
			if len(rulesOf(t, m)) > 0 {
				mark = "●"
			}
			b.WriteString(" " + mark + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func perEngine() string {
	var b strings.Builder
	for _, t := range engine.Tables() {
		fmt.Fprintf(&b, "### %s\n\n`llm.engine.kind` = `%s`. %s\n\n", t.Title, t.Name, t.Note)
		if vllm := engine.Tables()[0]; t != vllm && sameRules(vllm, t) {
			fmt.Fprintf(&b, "As vLLM, with `%s` for `%s`.\n\n", t.Prefixes[0], vllm.Prefixes[0])
			continue
		}
		b.WriteString("| `llm.engine.` | from |\n|---|---|\n")
		var lacks []string
		for _, m := range fromPages() {
			rules := rulesOf(t, m)
			if len(rules) == 0 {
				lacks = append(lacks, short(m))
			}
			for _, r := range rules {
				var attrs []string
				for _, c := range r.Const {
					attrs = append(attrs, c.Key+"="+c.Value)
				}
				name := short(m)
				if len(attrs) > 0 {
					name += " {" + strings.Join(attrs, ",") + "}"
				}
				var sources []string
				for _, s := range r.From {
					sources = append(sources, sourceText(s))
				}
				fmt.Fprintf(&b, "| %s | %s |\n", name, strings.Join(sources, "; else "))
			}
		}
		fmt.Fprintf(&b, "\nLacks: %s.\n\n", strings.Join(lacks, ", "))
	}
	return b.String()
}

// sameRules reports whether two tables differ in their prefix only.
func sameRules(a, b *engine.Table) bool {
	if len(a.Rules) != len(b.Rules) {
		return false
	}
	for i := range a.Rules {
		x, y := "", ""
		for _, s := range a.Rules[i].From {
			x += sourceText(s)
		}
		for _, s := range b.Rules[i].From {
			y += sourceText(s)
		}
		if a.Rules[i].Metric != b.Rules[i].Metric || strings.ReplaceAll(x, a.Prefixes[0], b.Prefixes[0]) != y {
			return false
		}
	}
	return true
}

func short(m *engine.Metric) string { return strings.TrimPrefix(m.Name, "llm.engine.") }

func sourceText(s engine.Source) string {
	text := s.Doc
	if text == "" {
		var parts []string
		for i, t := range s.Terms {
			sign := ""
			if i > 0 {
				sign = " + "
			}
			if t.Scale < 0 {
				sign = " − "
			}
			parts = append(parts, sign+termText(t))
		}
		text = strings.Join(parts, "")
	}
	if s.Versions != "" {
		text += " (" + s.Versions + ")"
	}
	return text
}

func termText(t engine.Term) string {
	text := "`" + t.Family
	for i, w := range t.Where {
		if i == 0 {
			text += "{"
		}
		text += w.Key + "=" + w.Value
		if i == len(t.Where)-1 {
			text += "}"
		}
	}
	switch t.Part {
	case engine.PartCount:
		text += "_count"
	case engine.PartSum:
		text += "_sum"
	}
	text += "`"
	if t.Part == engine.PartPair {
		text += " over `" + t.Count + "`"
	}
	switch t.Scale {
	case 1e-6:
		text += ", µs"
	case 1e-3:
		text += ", ms"
	}
	if t.Blocks {
		text += ", blocks × block size where HELP says blocks"
	}
	if len(t.Keep) > 0 {
		var kept []string
		for _, k := range t.Keep {
			if k.Label != "finish_reason" {
				kept = append(kept, "`"+k.Label+"` → `"+k.Attr+"`")
			}
		}
		text += " (" + strings.Join(kept, ", ") + ")"
	}
	return text
}

func metricList() string {
	var b strings.Builder
	b.WriteString("| name | type | unit | what it is |\n|---|---|---|---|\n")
	for _, m := range engine.Metrics() {
		kind := []string{"gauge", "counter", "histogram"}[m.Kind]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, kind, m.Unit, strings.ReplaceAll(m.Description, "|", "\\|"))
	}
	return b.String()
}

func TestNoTwoMetricsShareAName(t *testing.T) {
	var names []string
	for _, m := range engine.Metrics() {
		assert.False(t, slices.Contains(names, m.Name), m.Name)
		names = append(names, m.Name)
		assert.NotEmpty(t, m.Description, m.Name)
		assert.NotEmpty(t, m.Unit, m.Name)
	}
}
