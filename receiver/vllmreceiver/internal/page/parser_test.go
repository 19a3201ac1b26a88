package page

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func parse(text string) *Page { return (&Parser{}).Parse(text, false) }

func TestALineIsReadOrLostAlone(t *testing.T) {
	const before, after = "a 1\n", "z 2\n"
	tests := []struct {
		name, line string
		value      float64 // of x, when the line is good
		bad        int
	}{
		{"an integer", "x 3", 3, 0},
		{"an integer as a float", "x 18160.0", 18160, 0},
		{"a large integer", "x 9223372036854775794", 9223372036854775794, 0},
		{"an exponent", "x 8.128902e+06", 8128902, 0},
		{"an exponent of three digits", "x 1.17e+010", 1.17e10, 0},
		{"a negative value", "x -1", -1, 0},
		{"an infinity", "x +Inf", math.Inf(1), 0},
		{"a value too large for a double", "x 1e999", math.Inf(1), 0},
		{"a timestamp", "x 3 1700000000000", 3, 0},
		{"an OpenMetrics exemplar", `x 3 # {trace_id="abc"} 0.5 1700000000.1`, 3, 0},
		{"blanks at both ends", "  x\t 3  ", 3, 0},
		{"a carriage return", "x 3\r", 3, 0},
		{"a space after a comma", `x{a="b", c="d"} 3`, 3, 0},
		{"a comma before the brace", `x{a="b",} 3`, 3, 0},
		{"no labels in braces", `x{} 3`, 3, 0},
		{"a brace, an equals sign and a quote in a value", `x{a="{\"b\"=}"} 3`, 3, 0},
		{"a name in quotes", `{"x",a="b"} 3`, 3, 0},
		{"a comment", "# anything goes", 0, 0},
		{"an empty line", "", 0, 0},
		{"no value", "x", 0, 1},
		{"a value that is no number", "x -nan(ind)", 0, 1},
		{"a negative not-a-number", "x -nan", 0, 1},
		{"a hexadecimal value", "x 0x1p4", 0, 1},
		{"an underscore in a value", "x 1_000", 0, 1},
		{"two values", "x 1 2 3", 0, 1},
		{"a brace that stays open", `x{a="b" 3`, 0, 1},
		{"a quote that stays open", `x{a="b} 3`, 0, 1},
		{"a label without a value", `x{a} 3`, 0, 1},
		{"a label twice", `x{a="1",a="2"} 3`, 0, 1},
		{"a name that begins with a digit", "1x 3", 0, 1},
		{"JSON", `{"x": 3}`, 0, 1},
		{"HTML", "<html>", 0, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := parse(before + tt.line + "\n" + after)
			assert.Equal(t, tt.bad, p.BadLines)
			assert.True(t, p.Has("a") && p.Has("z"), "the lines around it stand")
			got, ok := p.Value("x")
			assert.Equal(t, tt.value != 0, ok)
			assert.Equal(t, tt.value, got)
		})
	}
}

func TestNotANumberIsAValue(t *testing.T) {
	v, ok := parse("x NaN\n").Value("x")
	assert.True(t, ok)
	assert.True(t, math.IsNaN(v))
}

func TestEscapesAreUndone(t *testing.T) {
	p := parse(`x{a="one\\two\"three\nfour\q"} 1` + "\n")
	v, _ := p.Samples("x")[0].Label("a")
	assert.Equal(t, "one\\two\"three\nfour\\q", v)
}

func TestTypesAndHelp(t *testing.T) {
	p := parse("# HELP x What it is, in terms of \"blocks\".\n# TYPE x counter\n# TYPE x gauge\n# TYPE y nonsense\n# HELP z\n# TYPE q histogram\nx_total 1\n")
	x, ok := p.Type("x")
	assert.True(t, ok)
	assert.Equal(t, TypeCounter, x, "the first TYPE stands")
	assert.Equal(t, 2, p.BadLines, "the second TYPE and the unknown type")
	assert.Equal(t, `What it is, in terms of "blocks".`, p.Help("x"))
	assert.Equal(t, []string{"x", "z", "q"}, p.Declared(), "declared without a sample counts too")
	_, ok = p.Type("y")
	assert.False(t, ok)
}

func TestACutPageKeepsItsWholeLines(t *testing.T) {
	p := parse("a 1\nb 12")
	assert.True(t, p.Cut)
	assert.Equal(t, 1, p.BadLines, "12 may have been 123")
	assert.True(t, p.Has("a"))
	assert.False(t, p.Has("b"))

	p = parse("a 1\n# EOF")
	assert.False(t, p.Cut, "OpenMetrics may end without a newline")
	assert.Zero(t, p.BadLines)

	p = (&Parser{}).Parse("a 1\nb 12\n", true)
	assert.True(t, p.Cut, "the reader knows that more was to come")
	assert.True(t, p.Has("b"))
}

func TestAFamilyInPiecesIsOne(t *testing.T) {
	p := parse("a 1\nb 1\na 2\nb 2\na 3\n")
	values := func(name string) (out []float64) {
		for _, s := range p.Samples(name) {
			out = append(out, s.Value)
		}
		return out
	}
	assert.Equal(t, []float64{1, 2, 3}, values("a"))
	assert.Equal(t, []float64{1, 2}, values("b"))
	assert.Equal(t, []string{"a", "b"}, p.Names)
}

func TestSamplesBeyondTheCapAreCounted(t *testing.T) {
	p := (&Parser{MaxSamples: 2}).Parse("a 1\nb 2\nc 3\nd 4\n", false)
	assert.Equal(t, 2, p.Lines)
	assert.Equal(t, 2, p.Dropped)
	assert.False(t, p.Has("c"))
}

func TestAParserForgetsThePageBefore(t *testing.T) {
	ps := &Parser{}
	ps.Parse("# TYPE a counter\n# HELP a old\na{x=\"1\"} 1\nb 2\n", true)
	p := ps.Parse("c 3\n", false)
	assert.False(t, p.Has("a") || p.Has("b") || p.Cut)
	_, ok := p.Type("a")
	assert.False(t, ok)
	assert.Empty(t, p.Help("a"))
	assert.Empty(t, p.Declared())
	assert.Equal(t, []string{"c"}, p.Names)
}

// TestABadLineAnywhereLosesNothingElse puts a line that cannot be read between any two lines of a recorded page.
func TestABadLineAnywhereLosesNothingElse(t *testing.T) {
	text := recorded(t)["vllm_v0_0.4.3_real.prom"]
	want := render(parse(text))
	lines := strings.SplitAfter(text, "\n")
	for i := range lines {
		p := parse(strings.Join(lines[:i], "") + "x -nan(ind)\n" + strings.Join(lines[i:], ""))
		require.Equal(t, 1, p.BadLines)
		require.Equal(t, want, render(p))
	}
}

func TestRecordedPagesRoundTrip(t *testing.T) {
	for name, text := range recorded(t) {
		p := parse(text)
		bad := 0
		if name == "llamacpp_2024-12_nan_real.prom" {
			bad = 1
		}
		assert.Equal(t, bad, p.BadLines, name)
		first := render(p)
		assert.Equal(t, first, render(parse(first)), name)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range recorded(f) {
		for i, lines := 0, strings.SplitAfter(text, "\n"); i < len(lines); i += 200 { // small inputs are changed much faster
			f.Add(strings.Join(lines[i:min(i+25, len(lines))], ""), i%400 == 0)
		}
	}
	f.Add("x{a=\"\\\"}\",} 1e+010 5 # {b=\"c\"} 1\r\n{\"q\"} 1\n# TYPE x counter", true)
	f.Fuzz(func(t *testing.T, text string, cut bool) {
		const limit = 500
		p := (&Parser{MaxSamples: limit}).Parse(text, cut)
		samples, comments := 0, 0
		for _, n := range p.Names {
			samples += len(p.Samples(n))
		}
		if samples != p.Lines || samples > limit {
			t.Fatalf("%d samples, %d lines", samples, p.Lines)
		}
		for line := range strings.SplitSeq(text, "\n") {
			if l := trimBlank(strings.TrimSuffix(line, "\r")); l == "" || l[0] == '#' {
				comments++
			}
		}
		if all := strings.Count(text, "\n") + 1; p.Lines+p.BadLines+p.Dropped > all || p.Lines+p.BadLines+p.Dropped+comments < all-1 {
			t.Fatalf("%d read, %d bad, %d dropped, %d comments of %d lines", p.Lines, p.BadLines, p.Dropped, comments, all)
		}
		if once := render(p); once != render(parse(once)) {
			t.Fatalf("not stable:\n%s", once)
		}
	})
}

// render writes the samples of a page as text, a line each, families together.
func render(p *Page) string {
	var b strings.Builder
	escape := strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`)
	for _, n := range p.Names {
		for _, s := range p.Samples(n) {
			parts := make([]string, 0, len(s.Labels)+1)
			if strings.ContainsFunc(n, func(r rune) bool { return r > 127 || !isNameByte(byte(r), false) }) || !isNameByte(n[0], true) {
				parts = append(parts, `"`+escape.Replace(n)+`"`)
			} else {
				b.WriteString(n)
			}
			for _, l := range s.Labels {
				parts = append(parts, fmt.Sprintf(`"%s"="%s"`, escape.Replace(l.Name), escape.Replace(l.Value)))
			}
			fmt.Fprintf(&b, "{%s} %s\n", strings.Join(parts, ","), strconv.FormatFloat(s.Value, 'g', -1, 64))
		}
	}
	return b.String()
}

func recorded(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../testdata/pages/*.prom")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		out[filepath.Base(f)] = string(b)
	}
	return out
}
