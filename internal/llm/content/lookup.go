package content

import (
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/keytable"
	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
)

// table answers what is known about a key. Built once; read by any number of goroutines.
type table struct {
	exact map[string]*rule
	known *keytable.Table[*rule] // exact, as it was when it was sealed, and frequent keys
	// byNamespace holds the prefixes by what stands before their first '.', the longest first.
	byNamespace map[string][]prefixRule
	// forced come before everything else, in this order: deny, allow, overrides by prefix.
	forced []forcedPrefix
}

type forcedPrefix struct {
	prefix string
	rule   rule
}

// Keys are the attribute keys that the tables name, in order.
func Keys() []string { return slices.Sorted(maps.Keys(baseTable().exact)) }

// baseTable is the table without configuration.
func baseTable() *table {
	t := &table{exact: make(map[string]*rule, 1024), byNamespace: map[string][]prefixRule{}}
	for v, keys := range safeKeys {
		for _, k := range keys {
			t.exact[k] = &rule{verb: v, class: classOfVerb(v), keys: newMeasureKeys(k)}
		}
	}
	for _, h := range safeHeaders {
		for _, p := range []string{"http.request.header.", "http.response.header.", "ai.request.headers."} {
			for _, k := range []string{p + h, p + strings.ReplaceAll(h, "-", "_")} {
				t.exact[k] = &rule{verb: verbLabel, class: ClassMetadata, keys: newMeasureKeys(k)}
			}
		}
	}
	for _, h := range []string{"user-agent", "user_agent"} {
		for _, p := range []string{"http.request.header.", "ai.request.headers."} {
			t.exact[p+h] = &rule{verb: verbAgent, class: ClassMetadata, keys: newMeasureKeys(p + h)}
		}
	}
	for c, keys := range contentKeys {
		v := verbContent
		if c == ClassSecret {
			v = verbSecret
		}
		for _, k := range keys {
			t.exact[k] = &rule{verb: v, class: c, keys: newMeasureKeys(k)}
		}
	}
	for _, list := range [][]prefixRule{contentPrefixes, safePrefixes} {
		for _, p := range list {
			ns, _, _ := strings.Cut(p.prefix, ".")
			t.byNamespace[ns] = append(t.byNamespace[ns], p)
		}
	}
	for _, list := range t.byNamespace {
		sort.SliceStable(list, func(i, j int) bool { return len(list[i].prefix) > len(list[j].prefix) })
	}
	t.seal()
	return t
}

// seal makes what was put into exact known to lookup.
func (t *table) seal() {
	known := maps.Clone(t.exact)
	add := func(key string) {
		if _, ok := known[key]; !ok {
			r := t.derive(key)
			known[key] = &r
		}
	}
	for _, a := range names.SpanAttributes {
		add(a.Key)
	}
	for _, k := range frequentKeys {
		add(k)
	}
	t.known = keytable.New(known)
}

func classOfVerb(v verb) Class {
	switch v {
	case verbModel, verbName:
		return ClassName
	case verbError:
		return ClassError
	case verbURL:
		return ClassURL
	case verbIdentity:
		return ClassIdentity
	}
	return ClassUnknown
}

// lookup returns the rule of a key.
func (t *table) lookup(key string) rule {
	r, known := t.known.Get(key)
	if known && r.forced {
		return *r
	}
	for i := range t.forced {
		if f := &t.forced[i]; strings.HasPrefix(key, f.prefix) {
			if known && r.verb == verbSecret || !known && isSecretKey(key) {
				return rule{verb: verbSecret, class: ClassSecret} // no configuration lets a credential through
			}
			return f.rule
		}
	}
	if known {
		return *r
	}
	return t.derive(key)
}

// derive returns the rule of a key that is not in exact, as it follows from the key's prefix and words.
func (t *table) derive(key string) rule {
	switch {
	case !isKey(key):
		return rule{verb: verbContent, class: ClassUnknown, noLength: true} // the key itself may be what a user typed
	case strings.HasSuffix(key, lengthSuffix), strings.HasSuffix(key, countSuffix):
		return rule{verb: verbNumber, class: ClassUnknown, noLength: true}
	case strings.HasSuffix(key, rolesSuffix), strings.HasSuffix(key, typesSuffix):
		return rule{verb: verbSummary, class: ClassUnknown, noLength: true}
	}
	ns, _, _ := strings.Cut(key, ".")
	list := t.byNamespace[ns]
	for i := range list {
		p := &list[i]
		if !strings.HasPrefix(key, p.prefix) {
			continue
		}
		if p.verb == verbIdentity {
			if _, text := keyWords(key[len(p.prefix):], make([]byte, 0, 32)); text {
				break // user.question is nobody's name
			}
		}
		if p.verb != verbContent {
			return rule{verb: p.verb, class: p.class}
		}
		if isSecretKey(key) {
			return rule{verb: verbSecret, class: ClassSecret}
		}
		return leafRule(p, key[len(p.prefix):])
	}
	return unknownRule(key)
}

// The suffixes of what a redaction leaves behind about a text: characters, number of messages, their roles, the types of their parts.
const (
	lengthSuffix = ".length"
	countSuffix  = ".count"
	rolesSuffix  = ".roles"
	typesSuffix  = ".types"
)
