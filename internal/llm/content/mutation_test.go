package content

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// catches runs the canaries of one key through r and reports whether the rule did its work: nothing came out, and everything
// was counted as the class.
func catches(t *testing.T, r *Redactor, key string, class Class) bool {
	for _, f := range forms {
		var c canaries
		td := ptrace.NewTraces()
		span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		f.set(&c, span.Attributes().PutEmpty(key))
		var facts Facts
		r.Traces(td, &facts)
		b, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
		assert.NoError(t, err)
		if len(escaped(b)) > 0 || facts.ByClass[class] != 1 || facts.Total() != 1 {
			return false
		}
	}
	return true
}

// TestEveryContentRuleIsNeeded removes one rule of the tables after the other: each time a canary has to come out, or to be
// counted as something else. So no rule is there for nothing, and none can be lost without a test telling.
func TestEveryContentRuleIsNeeded(t *testing.T) {
	whole := redactor(t, Config{})
	without := func(change func(*table)) *Redactor {
		tab := &table{exact: maps.Clone(whole.keys.exact), byNamespace: maps.Clone(whole.keys.byNamespace)}
		change(tab)
		tab.seal()
		return &Redactor{mode: ModeStrip, maxLength: whole.maxLength, keys: tab, places: whole.places}
	}
	for class, keys := range contentKeys {
		for _, key := range keys {
			assert.True(t, catches(t, whole, key, class), "%s is not caught as %s", key, class)
			mutant := without(func(tab *table) { delete(tab.exact, key) })
			assert.False(t, catches(t, mutant, key, class), "%s: nothing changes without the rule", key)
		}
	}
	for _, p := range contentPrefixes {
		ns, _, _ := strings.Cut(p.prefix, ".")
		mutant := without(func(tab *table) {
			tab.byNamespace[ns] = slices.DeleteFunc(slices.Clone(tab.byNamespace[ns]), func(q prefixRule) bool { return q.prefix == p.prefix })
		})
		key := strings.TrimSuffix(p.prefix, ".") + ".0.something"
		assert.True(t, catches(t, whole, key, p.class), "%s is not caught as %s", key, p.class)
		assert.False(t, catches(t, mutant, key, p.class), "%s: nothing changes without the rule", p.prefix)
	}
}
