package engine

import "strings"

// known are the families a table names, with the sample names they may have.
type known struct {
	exact map[string]struct{}
	globs []glob
}

// glob is a name with one * in it.
type glob struct{ before, after string }

func (k *known) add(family string) {
	if before, after, ok := strings.Cut(family, "*"); ok {
		k.globs = append(k.globs, glob{before, after})
		return
	}
	k.exact[family] = struct{}{}
	for _, s := range suffixes {
		k.exact[family+s] = struct{}{}
	}
}

func (k *known) has(name string) bool {
	if _, ok := k.exact[name]; ok {
		return true
	}
	for _, g := range k.globs {
		if !strings.HasPrefix(name, g.before) || len(name) < len(g.before)+len(g.after) {
			continue
		}
		if strings.HasSuffix(name, g.after) || strings.HasSuffix(base(name), g.after) {
			return true
		}
	}
	return false
}

// families returns every family the rules of a table read, whether through terms or, by what Reads says, through functions.
func (t *Table) families() []string {
	var out []string
	for _, r := range t.Rules {
		for _, s := range r.From {
			out = append(out, s.Reads...)
			for _, term := range s.Terms {
				out = append(out, term.Family)
				if term.Count != "" {
					out = append(out, term.Count)
				}
			}
		}
	}
	return out
}

func knownOf(t *Table) *known { return knownByTable[t] }

func index(t *Table) *known {
	k := &known{exact: map[string]struct{}{}}
	for _, f := range t.families() {
		k.add(f)
	}
	for _, f := range t.Ignored {
		k.add(f)
	}
	return k
}
