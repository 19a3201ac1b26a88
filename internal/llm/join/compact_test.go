package join

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/cost"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// fill sets every field of a value to something that is not its zero, each number to another.
func fill(t *testing.T, v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[cost.Amount]() {
			a, err := cost.Parse("1.25")
			require.NoError(t, err)
			v.Set(reflect.ValueOf(a))
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), n)
		fill(t, v.Index(1), n)
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.String:
		v.SetString("word" + string(rune('A'+*n%60)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(*n % 200))
	default:
		t.Fatalf("what is a %s?", v.Type())
	}
}

// What is packed comes out as it was, field by field: of a request that has everything, of one that has nothing, and of one that has one
// field alone, whichever.
func TestPackForgetsNothing(t *testing.T) {
	var full request.Request
	n := 0
	fill(t, reflect.ValueOf(&full).Elem(), &n)
	var s sharing
	check := func(r request.Request) {
		t.Helper()
		var c compact
		s.pack(&r, &c)
		got := request.Request{Model: "left from before"}
		c.unpack(&got)
		assert.Equal(t, r, got)
		assert.Equal(t, r.InputTokens.Known || r.OutputTokens.Known, c.reports())
		assert.Equal(t, r.Usage(), c.usage())
		assert.Equal(t, r.Currency, c.currency())
	}
	check(full)
	check(request.Request{})
	typ := reflect.TypeFor[request.Request]()
	for _, f := range reflect.VisibleFields(typ) {
		if f.Anonymous {
			continue
		}
		var one request.Request
		reflect.ValueOf(&one).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(full).FieldByIndex(f.Index))
		check(one)
	}
}

// Requests share what they say in words when they say the same, and only then.
func TestSharing(t *testing.T) {
	var s sharing
	a := request.Request{Source: &request.Source{Service: "a"}, Model: "m"}
	again := request.Request{Source: &request.Source{Service: "a"}, Model: "m", ResponseID: "1", TTFT: request.Some(1.0)}
	assert.Same(t, s.of(&a), s.of(&again))
	price := cost.Price{Currency: "USD", Input: 1}
	other := cost.Price{Currency: "USD", Input: 2}
	distinct := []request.Request{
		a,
		{Source: &request.Source{Service: "b"}, Model: "m"},
		{Source: &request.Source{Service: "a", Model: "x"}, Model: "m"},
		{Source: a.Source, ResponseModel: "m"},
		{Source: a.Source, Model: "m", ResponseModel: "m"},
		{Source: a.Source, Model: "mm"},
		{Source: a.Source, Model: "m", Invalid: []string{"x"}},
		{Source: a.Source, Model: "m", Business: request.Business{Dimensions: []request.Dimension{{Name: "x", Value: "y"}}}},
		{Source: a.Source, Model: "m", Business: request.Business{Dimensions: []request.Dimension{{Name: "x", Value: "y", Default: true}}}},
		{Source: a.Source, Model: "m", Business: request.Business{Price: &price}},
		{Source: a.Source, Model: "m", Business: request.Business{Price: &other}},
	}
	seen := map[*shared]bool{}
	for i := range distinct {
		seen[s.of(&distinct[i])] = true
	}
	assert.Len(t, seen, len(distinct))
}

// What is shared is bounded, whatever a caller invents, and what is remembered stays what it was.
func TestSharingIsBounded(t *testing.T) {
	var s sharing
	names := make([]compact, 3*maxShared)
	for i := range names {
		name := string(rune('A'+i%26)) + string(rune(i))
		r := request.Request{Source: &request.Source{Service: name}, Model: name}
		s.pack(&r, &names[i])
		require.LessOrEqual(t, len(s.known), maxShared)
		require.LessOrEqual(t, len(s.sources), maxShared)
	}
	for i := range names {
		var r request.Request
		names[i].unpack(&r)
		name := string(rune('A'+i%26)) + string(rune(i))
		require.Equal(t, name, r.Model)
		require.Equal(t, name, r.Source.Service)
	}
}
