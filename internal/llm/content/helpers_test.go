package content

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

var testKey = []byte("0123456789abcdef")

// redactor makes a Redactor with a hash key.
func redactor(t testing.TB, cfg Config) *Redactor {
	cfg.HashKey = testKey
	r, err := New(cfg)
	require.NoError(t, err)
	return r
}

func attributes(t testing.TB, raw map[string]any) pcommon.Map {
	m := pcommon.NewMap()
	require.NoError(t, m.FromRaw(raw))
	return m
}

// redactAttribute puts one attribute on a span, redacts the span, and returns its attributes.
func redactAttribute(t testing.TB, r *Redactor, key string, value any, f *Facts) pcommon.Map {
	s := ptrace.NewSpan()
	require.NoError(t, s.Attributes().FromRaw(map[string]any{key: value}))
	r.Span(r.mode, s, f)
	return s.Attributes()
}
