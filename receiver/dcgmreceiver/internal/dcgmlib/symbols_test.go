//go:build cgo && linux && !nodcgm

package dcgmlib

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryPinnedSymbolIsInTheBinding(t *testing.T) {
	// The list guards against exit 127 only if it is complete: every C.dcgm… that our calls reach must be on it.
	dir := filepath.Dir(goDCGM(t))
	called := map[string]bool{}
	ours := map[string]bool{}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\bdcgm\.([A-Z]\w+)\(`).FindAllStringSubmatch(string(b), -1) {
			ours[m[1]] = true
		}
	}
	bodies := map[string]string{}
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, f := range sources {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?ms)^func (\w+)\(.*?^}`).FindAllStringSubmatch(string(b), -1) {
			bodies[m[1]] = m[0]
		}
	}
	seen := map[string]bool{}
	var walk func(string)
	walk = func(fn string) {
		if seen[fn] {
			return
		}
		seen[fn] = true
		for _, m := range regexp.MustCompile(`\bC\.((?:dcgm|Dcgm|errorString)\w*)\(`).FindAllStringSubmatch(bodies[fn], -1) {
			called[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`\b(\w+)\(`).FindAllStringSubmatch(bodies[fn], -1) {
			if m[1] != fn && bodies[m[1]] != "" {
				walk(m[1])
			}
		}
	}
	delete(ours, "Short") // a conversion
	for fn := range ours {
		require.NotEmpty(t, bodies[fn], fn)
		walk(fn)
	}
	for _, notAFunction := range []string{"dcgmFieldValue_v1", "dcgmFieldValueEnumeration_f", "dcgmHealthSystems_t", "dcgmConnectV2Params_v2", "dcgm_field_entity_group_t", "dcgm_field_eid_t", "dcgmGpuGrp_t"} {
		delete(called, notAFunction)
	}
	// Guarded by dlsym in the binding, or reached only through modes that we do not use.
	delete(called, "dcgmConnect_v3")
	for c := range called {
		assert.Contains(t, symbols, c)
	}
	for _, s := range symbols {
		assert.True(t, called[s], "%s is pinned but not called", s)
	}
}

func goDCGM(t *testing.T) string {
	t.Helper()
	out, err := goList("github.com/NVIDIA/go-dcgm/pkg/dcgm")
	require.NoError(t, err)
	return filepath.Join(out, "x")
}
