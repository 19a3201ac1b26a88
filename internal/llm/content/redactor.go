package content

import (
	"fmt"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Redactor redacts. Safe for concurrent use: it is read-only once made.
type Redactor struct {
	mode         Mode
	maxLength    int
	services     []Rule
	hashIdentity bool
	keys         *table
	hash         *hasher // nil when nothing is hashed
	places       map[string]rule
	walks        sync.Pool // of *walk
}

// New compiles the configuration. Its error lists every fault of it: see Config.Validate.
func New(cfg Config) (*Redactor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	r := &Redactor{
		mode:         cfg.Mode,
		maxLength:    cfg.MaxLength,
		services:     append([]Rule(nil), cfg.Services...),
		hashIdentity: cfg.HashIdentity,
		keys:         baseTable(),
	}
	if r.mode == "" {
		r.mode = ModeStrip
	}
	if r.maxLength == 0 {
		r.maxLength = DefaultMaxLength
	}
	if len(cfg.HashKey) > 0 {
		r.hash = newHasher(cfg.HashKey)
	}
	r.addPlaces()
	r.keys.configure(cfg)
	r.keys.seal()
	r.places = make(map[string]rule, len(PlaceKeys))
	for _, p := range PlaceKeys {
		r.places[p] = r.keys.lookup(p)
	}
	return r, nil
}

// addPlaces gives the text that is no attribute its rules, under the names by which configuration reaches it.
func (r *Redactor) addPlaces() {
	for key, p := range map[string]rule{
		placeStatus:     {verb: verbContent, class: ClassError, noLength: true},
		placeSpanName:   {verb: verbName, class: ClassName},
		placeEventName:  {verb: verbName, class: ClassName},
		placeBody:       {verb: verbContent, class: ClassMessage, keys: newMeasureKeys(placeBody)},
		placeLogEvent:   {verb: verbName, class: ClassName},
		placeScope:      {verb: verbName, class: ClassName},
		placeTraceState: {verb: verbLabel, class: ClassMetadata},
	} {
		r.keys.exact[key] = &p
	}
}

// configure lays overrides, allow and deny over the table.
func (t *table) configure(cfg Config) {
	ruleFor := func(key string) rule {
		if old, ok := t.exact[key]; ok {
			return *old
		}
		return rule{verb: verbContent, class: ClassUnknown, keys: newMeasureKeys(key)}
	}
	force := func(key string, change func(*rule)) {
		n := ruleFor(key)
		if _, known := t.exact[key]; n.verb == verbSecret || !known && isSecretKey(key) {
			return // no configuration lets a credential through
		}
		change(&n)
		n.forced = true
		t.exact[key] = &n
	}
	denied := func(key string) bool {
		for _, d := range cfg.Deny {
			if p, ok := strings.CutSuffix(d, "*"); d == key || ok && strings.HasPrefix(key, p) {
				return true
			}
		}
		return false
	}
	for _, d := range cfg.Deny {
		if p, ok := strings.CutSuffix(d, "*"); ok {
			t.forced = append(t.forced, forcedPrefix{p, rule{verb: verbContent, class: ClassUnknown}})
		} else {
			force(d, func(n *rule) { n.verb = verbContent })
		}
	}
	for _, a := range cfg.Allow {
		if p, ok := strings.CutSuffix(a, "*"); ok {
			t.forced = append(t.forced, forcedPrefix{p, rule{verb: verbAllow, class: ClassUnknown}})
		} else if !denied(a) {
			force(a, func(n *rule) { n.verb = verbAllow })
		}
	}
	for i := len(cfg.Overrides) - 1; i >= 0; i-- { // the first that matches wins, so it is laid on last
		if o := cfg.Overrides[i]; o.Key != "" {
			force(o.Key, func(n *rule) { n.verb, n.mode = verbContent, o.Mode })
		}
	}
	for _, o := range cfg.Overrides {
		if o.Prefix != "" {
			t.forced = append(t.forced, forcedPrefix{o.Prefix, rule{verb: verbContent, class: ClassUnknown, mode: o.Mode}})
		}
	}
}

// ModeOf is the mode for everything that comes from a resource: that of the first rule for its service.name, else the default.
func (r *Redactor) ModeOf(res pcommon.Resource) Mode {
	if len(r.services) == 0 {
		return r.mode
	}
	v, ok := res.Attributes().Get("service.name")
	if !ok || v.Type() != pcommon.ValueTypeStr {
		return r.mode
	}
	for i := range r.services {
		if r.services[i].Service == v.Str() {
			return r.services[i].Mode
		}
	}
	return r.mode
}
