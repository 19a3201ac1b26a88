package distribution_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	fenced     = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

func TestEveryRelativeLinkLeadsSomewhere(t *testing.T) {
	checked := 0
	for _, page := range pages(t) {
		raw, err := os.ReadFile(page)
		require.NoError(t, err)
		text := inlineCode.ReplaceAllString(fenced.ReplaceAllString(string(raw), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			checked++
			_, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(target)))
			assert.NoError(t, err, "%s links to %s", strings.TrimPrefix(page, root+"/"), m[1])
		}
	}
	assert.Greater(t, checked, 10)
}

// A decision has a number of its own and the parts that a reader looks for.
func TestDecisionsAreNumberedAndComplete(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "decisions", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	name := regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	seen := map[string]bool{}
	for _, f := range files {
		m := name.FindStringSubmatch(filepath.Base(f))
		if !assert.NotNil(t, m, "%s: is called NNNN-slug.md", filepath.Base(f)) {
			continue
		}
		assert.False(t, seen[m[1]], "%s: the number is taken", filepath.Base(f))
		seen[m[1]] = true
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, part := range []string{"**Status:**", "## Context", "## Decision", "## Consequences", "## What else was considered"} {
			assert.Contains(t, string(raw), part, filepath.Base(f))
		}
		assert.Contains(t, string(raw), "# "+strings.TrimLeft(m[1], "0")+". ", "%s: the title has the number", filepath.Base(f))
	}
}
