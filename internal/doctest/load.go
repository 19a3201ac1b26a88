package doctest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"
)

// Load unmarshals and validates every configuration of one component on the page at path, each into a fresh default.
//
// class is the section of a collector configuration ("processors", "receivers", …), typ the component's type ("llmspan").
// A block counts when it has that section, or when the component's id (typ or typ/name) is a top-level key of a fragment.
// The test fails when one does not load, and when the page has none. The configurations come back in order.
func Load[C any](t testing.TB, path, class, typ string, newDefault func() C) []C {
	t.Helper()
	blocks, err := yamlBlocks(read(t, path))
	if err != nil {
		t.Fatalf("%s:%v", path, err)
	}
	out, err := load(blocks, class, typ, newDefault)
	if err != nil {
		t.Fatalf("%s:%v", path, err)
	}
	return out
}

func load[C any](blocks []Block, class, typ string, newDefault func() C) ([]C, error) {
	var (
		out  []C
		errs []error
	)
	for _, b := range blocks {
		for id, sub := range components(b, class, typ) {
			cfg := newDefault()
			if err := confmap.NewFromStringMap(sub).Unmarshal(&cfg); err != nil {
				errs = append(errs, fmt.Errorf("%d: %s does not load: %w", b.Line, id, err))
				continue
			}
			if err := confmap.Validate(cfg); err != nil {
				errs = append(errs, fmt.Errorf("%d: %s is not valid: %w", b.Line, id, err))
				continue
			}
			out = append(out, cfg)
		}
	}
	if len(out) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("0: no block configures %s under %s", typ, class))
	}
	return out, errors.Join(errs...)
}

// components returns the configurations of typ in a block by id; an empty one is an empty map.
func components(b Block, class, typ string) map[string]map[string]any {
	var top map[string]any
	if yaml.Unmarshal([]byte(expandEnv(b.Text)), &top) != nil {
		return nil // a list or a scalar: YAML, but not a configuration
	}
	section := top
	if s, ok := top[class].(map[string]any); ok {
		section = s
	}
	out := map[string]map[string]any{}
	for id, v := range section {
		name, _, _ := strings.Cut(id, "/")
		if name != typ {
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			out[id] = v
		case nil:
			out[id] = map[string]any{}
		}
	}
	return out
}

var envRef = regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}`)

// expandEnv puts in the default of ${env:NAME:-default}, and the name itself where there is no default, so that a page can
// show a secret from the environment without the test needing one.
func expandEnv(s string) string {
	return envRef.ReplaceAllStringFunc(s, func(ref string) string {
		m := envRef.FindStringSubmatch(ref)
		if strings.Contains(ref, ":-") {
			return m[2]
		}
		return m[1]
	})
}
