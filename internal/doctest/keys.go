package doctest

import (
	"encoding"
	"reflect"
	"strings"
	"time"
)

// key is one setting of a configuration struct, by the path an operator writes.
type key struct {
	path  string        // dotted; [] stands for an element of a list, <name> for a key of a map
	value reflect.Value // its default, addressable where possible
	unset bool          // an optional block or pointer that is absent by default; value is what it would hold
	leaf  bool          // no keys below it
}

// keysOf lists every key of cfg (a struct or a pointer to one) in the order of its fields, parents before children.
// The list comes from types, so that a key whose default is empty is listed as well.
func keysOf(cfg any) []key {
	var out []key
	v := addressable(reflect.ValueOf(cfg))
	walk("", v, &out, 0)
	return out
}

// maxDepth stops a type that contains itself.
const maxDepth = 12

func walk(prefix string, v reflect.Value, out *[]key, depth int) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("mapstructure"), ",")
		name = strings.TrimSpace(name)
		if !f.IsExported() || name == "-" {
			continue
		}
		if strings.Contains(opts, "squash") {
			walk(prefix, v.Field(i), out, depth)
			continue
		}
		if strings.Contains(opts, "remain") {
			continue
		}
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		add(join(prefix, name), v.Field(i), out, depth+1)
	}
}

func add(path string, v reflect.Value, out *[]key, depth int) {
	inner, unset := unwrap(v)
	k := key{path: path, value: inner, unset: unset, leaf: true}
	at := len(*out)
	*out = append(*out, k)
	if depth > maxDepth || isScalar(inner.Type()) {
		return
	}
	switch inner.Kind() {
	case reflect.Struct:
		walk(path, inner, out, depth)
	case reflect.Slice, reflect.Array:
		if e := structElem(inner.Type()); e != nil {
			walk(path+"[]", reflect.New(e).Elem(), out, depth)
		}
	case reflect.Map:
		if e := structElem(inner.Type()); e != nil {
			walk(path+".<name>", reflect.New(e).Elem(), out, depth)
		}
	}
	(*out)[at].leaf = len(*out) == at+1
}

// unwrap takes a pointer or a configoptional.Optional apart. What is absent by default gives its type's value and unset = true.
func unwrap(v reflect.Value) (reflect.Value, bool) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return reflect.New(v.Type().Elem()).Elem(), true
		}
		return v.Elem(), false
	}
	if !strings.HasPrefix(v.Type().Name(), "Optional[") {
		return v, false
	}
	c := addressable(v).Addr() // a copy: GetOrInsertDefault changes it
	has := c.MethodByName("HasValue").Call(nil)[0].Bool()
	get := "Get"
	if !has {
		get = "GetOrInsertDefault"
	}
	if c.MethodByName(get).Type().Out(0).Elem().Kind() != reflect.Struct && !has {
		return reflect.Zero(c.MethodByName(get).Type().Out(0).Elem()), true
	}
	return c.MethodByName(get).Call(nil)[0].Elem(), !has
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// isScalar says that a value is written as one YAML scalar even if its kind is a struct.
func isScalar(t reflect.Type) bool {
	return t == durationType || reflect.PointerTo(t).Implements(textType)
}

func structElem(t reflect.Type) reflect.Type {
	e := t.Elem()
	if e.Kind() == reflect.Pointer {
		e = e.Elem()
	}
	if e.Kind() != reflect.Struct || isScalar(e) {
		return nil
	}
	return e
}

func addressable(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Pointer {
		return v.Elem()
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}
