package doctest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Generated compares a part of the page at path with what the code says. The part stands between two comments:
//
//	<!-- generated: name -->
//	…
//	<!-- end -->
//
// With -update, where the test's package has that flag, the part is written instead: review the difference like code.
func Generated(t testing.TB, path, name, want string) {
	t.Helper()
	page := read(t, path)
	got, start, end, err := part(page, name)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if got == want {
		return
	}
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(path, []byte(page[:start]+want+page[end:]), 0o644); err != nil { //nolint:gosec // a page of the repository
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s: %q is not what the code says; run the test with -update and review\n%s", path, name, firstDifference(got, want))
}

// part finds a generated part: its text and where it stands.
func part(page, name string) (text string, start, end int, err error) {
	open := "<!-- generated: " + name + " -->\n"
	start = strings.Index(page, open)
	if start < 0 {
		return "", 0, 0, fmt.Errorf("no %q", strings.TrimSpace(open))
	}
	start += len(open)
	n := strings.Index(page[start:], "<!-- end -->")
	if n < 0 {
		return "", 0, 0, fmt.Errorf("%q has no <!-- end -->", name)
	}
	return page[start : start+n], start, start + n, nil
}

// firstDifference is the first line in which two texts differ.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := 0; i < len(g) || i < len(w); i++ {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return fmt.Sprintf("line %d\n  page: %s\n  code: %s", i+1, a, b)
		}
	}
	return ""
}

// Fence is text as a fenced block of a language.
func Fence(lang, text string) string {
	return "```" + lang + "\n" + strings.TrimSuffix(text, "\n") + "\n```\n"
}

// Table is a Markdown table. Pipes in cells are escaped.
func Table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	return b.String()
}
