package doctest

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// KeyTable compares the key tables of the page at path with the default configuration cfg, both ways: every row names a key
// that exists and its true default, and every key has a row, its own or that of a block above it.
//
// A key table has the headings "key" and "default" first. A key is written as an operator nests it, joined by dots
// (`histograms.exponential`); `slo[].ttft` is a key in a list's elements, `models.<name>.ttft` in a map's values. Several keys
// with one default may share a row, separated by commas. The default is the YAML that would give it; "—", "none" or nothing
// stands for an empty or absent value. A row for a block with keys below it stands for all of those that have no row, and its
// default says only whether the block is there: "—" when it is absent, else anything but that.
//
// except names keys (with all below them) that need no row, such as the client settings of a shared package.
func KeyTable(t testing.TB, path string, cfg any, except ...string) {
	t.Helper()
	for _, problem := range compare(keyRows(read(t, path)), keysOf(cfg), except) {
		t.Errorf("%s:%s", path, problem)
	}
}

func compare(rows []row, keys []key, except []string) []string {
	if len(rows) == 0 {
		return []string{"0: no table with the headings key and default"}
	}
	var problems []string
	byPath := make(map[string]key, len(keys))
	for _, k := range keys {
		byPath[k.path] = k
	}
	listed := map[string]bool{}
	for _, r := range rows {
		for _, p := range r.keys {
			k, ok := byPath[p]
			switch {
			case !ok:
				problems = append(problems, fmt.Sprintf("%d: %q is not a key of the configuration", r.line, p))
			case listed[p]:
				problems = append(problems, fmt.Sprintf("%d: %q has a row already", r.line, p))
			default:
				if why := mismatch(r.def, k); why != "" {
					problems = append(problems, fmt.Sprintf("%d: %q: %s", r.line, p, why))
				}
			}
			listed[p] = true
		}
	}
	for _, k := range keys {
		if k.leaf && !covered(k.path, listed, except) {
			problems = append(problems, fmt.Sprintf("0: key %q has no row", k.path))
		}
	}
	return problems
}

// covered says whether the key itself or a block above it has a row or is excepted.
func covered(path string, listed map[string]bool, except []string) bool {
	for _, e := range except {
		if path == e || strings.HasPrefix(path, e+".") || strings.HasPrefix(path, e+"[]") {
			return true
		}
	}
	for p := path; ; {
		if listed[p] {
			return true
		}
		i := strings.LastIndexByte(p, '.')
		if i < 0 {
			return false
		}
		p = strings.TrimSuffix(strings.TrimSuffix(p[:i], "[]"), ".<name>")
	}
}

// mismatch says how a written default differs from the true one, or "".
func mismatch(written string, k key) string {
	if isNone(written) {
		if k.unset || isEmpty(k.value) {
			return ""
		}
		return fmt.Sprintf("the page says %q, the default is %v", written, show(k.value))
	}
	if k.unset {
		return fmt.Sprintf("the page says %q, by default it is absent", written)
	}
	if !k.leaf && k.value.Kind() == reflect.Struct {
		return ""
	}
	var v any
	if err := yaml.Unmarshal([]byte(written), &v); err != nil || !same(v, k.value) {
		return fmt.Sprintf("the page says %q, the default is %v", written, show(k.value))
	}
	return ""
}

func isNone(s string) bool {
	switch strings.ToLower(s) {
	case "", "-", "—", "–", "none", "empty", `""`, "[]", "{}":
		return true
	}
	return false
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
		return v.Len() == 0
	case reflect.Interface, reflect.Pointer:
		return v.IsNil()
	case reflect.Struct:
		return v.IsZero()
	}
	return false
}

// same says whether YAML value w is what v holds. Durations and types that unmarshal from text are compared by value,
// so that 90s and 1m30s, or 512MiB and 536870912, are the same.
func same(w any, v reflect.Value) bool {
	text := fmt.Sprint(w)
	if w == nil {
		return isEmpty(v)
	}
	if v.Type() == durationType {
		d, err := time.ParseDuration(text)
		return err == nil && d == time.Duration(v.Int())
	}
	if isScalar(v.Type()) {
		n := reflect.New(v.Type())
		err := n.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
		return err == nil && reflect.DeepEqual(n.Elem().Interface(), v.Interface())
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && same(w, v.Elem())
	case reflect.String:
		s, ok := w.(string)
		return ok && s == v.String()
	case reflect.Bool:
		b, ok := w.(bool)
		return ok && b == v.Bool()
	case reflect.Slice, reflect.Array:
		list, ok := w.([]any)
		if !ok || len(list) != v.Len() {
			return false
		}
		for i, e := range list {
			if !same(e, v.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		m, ok := w.(map[string]any)
		if !ok || len(m) != v.Len() {
			return false
		}
		for it := v.MapRange(); it.Next(); {
			e, ok := m[fmt.Sprint(it.Key())]
			if !ok || !same(e, it.Value()) {
				return false
			}
		}
		return true
	case reflect.Struct:
		return sameStruct(w, v)
	}
	return sameNumber(w, v)
}

// sameStruct compares a written mapping with an element of a list or map, key by key; keys that are not written must be zero.
func sameStruct(w any, v reflect.Value) bool {
	m, ok := w.(map[string]any)
	if !ok {
		return false
	}
	var keys []key
	walk("", v, &keys, 0)
	seen := 0
	for _, k := range keys {
		if strings.ContainsAny(k.path, ".[") {
			continue
		}
		e, written := m[k.path]
		switch {
		case written && !same(e, k.value):
			return false
		case !written && !k.unset && !k.value.IsZero():
			return false
		}
		if written {
			seen++
		}
	}
	return seen == len(m)
}

func sameNumber(w any, v reflect.Value) bool {
	var f float64
	switch n := w.(type) {
	case int:
		f = float64(n)
	case float64:
		f = n
	default:
		return false
	}
	switch {
	case v.CanInt():
		return f == float64(v.Int())
	case v.CanUint():
		return f == float64(v.Uint())
	case v.CanFloat():
		return f == v.Float()
	}
	return false
}

// show renders a default for a message. A secret stays hidden: configopaque prints itself as [REDACTED].
func show(v reflect.Value) any {
	if v.CanInterface() {
		return fmt.Sprintf("%v", v.Interface())
	}
	return v
}
