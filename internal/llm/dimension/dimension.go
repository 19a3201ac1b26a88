// Package dimension finds the labels that an operator asked for (team, app, tier, …) on the spans of a request, and keeps their values
// few: a list of allowed ones, or a cap beyond which further values share one.
package dimension

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/names"
)

// Config is one dimension.
type Config struct {
	// Name is the label's key on points and records.
	Name string
	// From are the places to look in, the first that says something wins: span.K, parent.K, resource.K, baggage.K, header.K.
	From []string
	// Default is the value where nothing says one.
	Default string
	// Max is the number of different values; further ones become Overflow.
	Max int
	// Values, when there are any, are the only ones that are allowed; every other becomes Other.
	Values []string
}

// Values that stand for others.
const (
	// Overflow stands for values beyond Max.
	Overflow = "_overflow"
	// Other stands for a value that is not allowed, or that does not have the form of a name.
	Other = "_other"
)

// MaxDimensions bounds the dimensions; each multiplies the series.
const MaxDimensions = 8

// expiry is how long a value that is not seen keeps its place.
const expiry = time.Hour

// Resolver finds values. It is safe for concurrent use.
type Resolver struct {
	dims []*dim
	// SpanSources says that a value can stand on a span, and not on resources alone.
	SpanSources bool
}

type dim struct {
	Config
	from    []source
	keep    []string // the attribute for each source that keeps what it says while a trace is held
	allowed map[string]bool

	mu   sync.Mutex // guards seen
	seen map[string]time.Time
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_.]{0,63}$`)

// reserved are the beginnings of names that have a meaning already.
var reserved = []string{"gen_ai.", "llm.", "llmspan.", "otel.", "service.", "telemetry.", "error.", "deployment.environment.name", "le", "job", "instance"}

// Validate says what is wrong with dimensions, by their place in the list.
func Validate(cfg []Config) error {
	_, err := New(cfg)
	return err
}

// New returns a resolver.
func New(cfg []Config) (*Resolver, error) {
	var errs []error
	r := &Resolver{}
	if len(cfg) > MaxDimensions {
		errs = append(errs, fmt.Errorf("at most %d are possible, since each multiplies the time series; got %d", MaxDimensions, len(cfg)))
	}
	for i, c := range cfg {
		fail := func(key string, err error) {
			errs = append(errs, fmt.Errorf("%d::%s: %w", i, key, err))
		}
		d := &dim{Config: c, seen: map[string]time.Time{}}
		switch {
		case !nameForm.MatchString(c.Name):
			fail("name", fmt.Errorf("must be lower case letters, digits, _ and ., beginning with a letter, such as team; got %q", c.Name))
		case slices.ContainsFunc(reserved, func(p string) bool { return c.Name == p || (strings.HasSuffix(p, ".") && strings.HasPrefix(c.Name, p)) }):
			fail("name", fmt.Errorf("%q has a meaning already; choose another", c.Name))
		case slices.ContainsFunc(r.dims, func(o *dim) bool { return o.Name == c.Name }):
			fail("name", fmt.Errorf("%q is there twice", c.Name))
		default:
			if err := allowed(c.Name); err != nil {
				fail("name", err)
			}
		}
		if len(c.From) == 0 {
			fail("from", errors.New("must name at least one place, such as span.team, resource.team, header.x-team"))
		}
		for j, f := range c.From {
			s, err := parseSource(f)
			if err != nil {
				fail("from::"+strconv.Itoa(j), err)
				continue
			}
			r.SpanSources = r.SpanSources || s.kind != ofResource
			d.from = append(d.from, s)
			d.keep = append(d.keep, names.DimensionKept+c.Name+"."+strconv.Itoa(j))
		}
		if c.Max < 1 || c.Max > 10_000 {
			fail("max_values", fmt.Errorf("must be from 1 to 10000, got %d", c.Max))
		}
		if len(c.Values) > 0 {
			d.allowed = map[string]bool{}
			for j, v := range c.Values {
				if !printable(v) {
					fail("values::"+strconv.Itoa(j), fmt.Errorf("must be 1 to %d printable ASCII characters without quotes, got %q", maxValue, v))
				}
				d.allowed[v] = true
			}
		}
		if !printable(c.Default) {
			fail("default", fmt.Errorf("must be 1 to %d printable ASCII characters without quotes, such as unknown; got %q", maxValue, c.Default))
		}
		r.dims = append(r.dims, d)
	}
	return r, errors.Join(errs...)
}

// Len is the number of dimensions.
func (r *Resolver) Len() int { return len(r.dims) }

// Name is the name of dimension i.
func (r *Resolver) Name(i int) string { return r.dims[i].Name }

// Place is one span on the way from a request span upwards, the request span first.
type Place struct {
	Span, Resource pcommon.Map
	// Layer says that the span is the request span or a layer around it.
	Layer bool
}

// Find is the value of dimension i for a request, as it stands on the spans. With kept set the spans have been through Keep.
func (r *Resolver) Find(i int, way []Place, kept bool) (value string, ok bool) {
	d := r.dims[i]
	for j := range d.from {
		s := &d.from[j]
		for at := range way {
			p := &way[at]
			switch s.kind {
			case ofSpan:
				if !p.Layer {
					continue
				}
			case ofParent:
				if at == 0 {
					continue
				}
			case ofResource:
				if !p.Layer {
					continue
				}
				if v, ok := s.read(p.Resource); ok {
					return v, true
				}
				continue
			}
			if kept {
				if v, ok := p.Span.Get(d.keep[j]); ok {
					return v.Str(), true
				}
				continue
			}
			if v, ok := s.read(p.Span); ok {
				return v, true
			}
		}
	}
	return "", false
}

// Keep notes on a span what its attributes tell, because the attributes may not survive until the trace is whole: headers can carry
// anything, so they are removed.
func (r *Resolver) Keep(a pcommon.Map) {
	for _, d := range r.dims {
		for j := range d.from {
			s := &d.from[j]
			if s.kind == ofResource {
				continue
			}
			if v, ok := s.read(a); ok {
				a.PutStr(d.keep[j], d.form(v))
			}
		}
	}
}

// Forget removes what Keep noted.
func (r *Resolver) Forget(a pcommon.Map) {
	a.RemoveIf(func(k string, _ pcommon.Value) bool { return strings.HasPrefix(k, names.DimensionKept) })
}

// Label is the value as a label at a time, the default for one that was not found. overflowed says that the cap has cost it its value.
func (r *Resolver) Label(now time.Time, i int, value string, found bool) (label string, overflowed bool) {
	d := r.dims[i]
	if !found {
		return d.Default, false
	}
	v := d.form(value)
	if v == Other || d.allowed != nil || v == d.Default {
		return v, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.seen[v]
	if !known && len(d.seen) >= d.Max {
		for old, last := range d.seen {
			if now.Sub(last) > expiry {
				delete(d.seen, old)
			}
		}
		if len(d.seen) >= d.Max {
			return Overflow, true
		}
	}
	if !known {
		v = strings.Clone(v) // what is remembered does not keep the span's other texts
	}
	d.seen[v] = now
	return v, false
}

// maxValue is the longest value in bytes.
const maxValue = 64

// printable tells whether an operator's value is in the form in which values leave the redaction unchanged.
func printable(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return s != "" && len(s) <= maxValue
}

// form is a value as itself when it is allowed or has the form of a name, else Other: what a caller may choose can be any text.
func (d *dim) form(v string) string {
	if d.allowed != nil {
		if d.allowed[v] {
			return v
		}
		return Other
	}
	if len(v) > maxValue {
		return Other
	}
	for i := 0; i < len(v); i++ {
		c := v[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '.' || c == '_' || c == ':' || c == '/' || c == '@' || c == '+' || c == '-':
		default:
			return Other
		}
	}
	return v
}
