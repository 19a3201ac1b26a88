// Package typotest holds a component to refusing keys that it does not have, at every depth of its configuration. For tests only.
package typotest

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
)

// key is one that no configuration has.
const key = "no_such_key"

// Run puts a key that does not exist into every section of the configuration, one after the other, and wants an error that names it.
func Run(t *testing.T, create func() component.Config) {
	t.Helper()
	sections := sectionsOf(reflect.TypeOf(create()), nil, 0)
	if len(sections) == 0 {
		t.Fatal("the configuration has no sections")
	}
	for _, path := range sections {
		t.Run(strings.Join(append([]string{"top"}, path...), "::"), func(t *testing.T) {
			if err := refusal(create(), path); err != nil {
				t.Error(err)
			}
		})
	}
}

// refusal reports how cfg fails to refuse a key that does not exist at path.
func refusal(cfg component.Config, path []string) error {
	err := confmap.NewFromStringMap(at(path)).Unmarshal(cfg)
	switch {
	case err == nil:
		return errors.New("an unknown key is passed over")
	case !strings.Contains(err.Error(), key):
		return fmt.Errorf("the error does not name the key: %w", err)
	}
	return nil
}

// element and entry are the steps of a path into a list and a map.
const element, entry = "0", "entry"

// at is a configuration with the key at path.
func at(path []string) map[string]any {
	var v any = map[string]any{key: 1}
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == element {
			v = []any{v}
		} else {
			v = map[string]any{path[i]: v}
		}
	}
	return v.(map[string]any)
}

var text = reflect.TypeFor[encoding.TextUnmarshaler]()

// sectionsOf returns the paths of the structs in t that are read from keys.
func sectionsOf(t reflect.Type, path []string, depth int) (all [][]string) {
	step := func(s string) []string { return append(path[:len(path):len(path)], s) }
	switch t.Kind() {
	case reflect.Pointer:
		return sectionsOf(t.Elem(), path, depth)
	case reflect.Slice:
		return sectionsOf(t.Elem(), step(element), depth+1)
	case reflect.Map:
		return sectionsOf(t.Elem(), step(entry), depth+1)
	case reflect.Struct:
	default:
		return nil
	}
	if depth > 8 || reflect.PointerTo(t).Implements(text) {
		return nil
	}
	if strings.HasPrefix(t.Name(), "Optional[") { // configoptional
		get, _ := reflect.PointerTo(t).MethodByName("Get")
		return sectionsOf(get.Type.Out(0), path, depth+1)
	}
	all = append(all, path)
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("mapstructure"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case strings.Contains(opts, "squash"):
			if inner := sectionsOf(f.Type, path, depth+1); len(inner) > 0 {
				all = append(all, inner[1:]...) // the first is this one
			}
		case name != "":
			all = append(all, sectionsOf(f.Type, step(name), depth+1)...)
		}
	}
	return all
}
