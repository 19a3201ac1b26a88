package engine

// groups merges samples that become one point.
type groups struct {
	list  []group
	arena []Attr
	index map[string]int
	key   []byte
}

type group struct {
	attrs   []Attr
	order   uint64
	value   float64
	created float64
}

func (g *groups) reset() {
	g.list, g.index = g.list[:0], nil
	g.arena = nil // points keep it
}

// add merges a value into its group. A lower copy replaces what higher ones gave; equal ones are added up, or the largest wins.
func (g *groups) add(attrs []Attr, order uint64, value, created float64, largest bool) {
	i := g.at(attrs)
	if i < 0 {
		g.put(attrs, group{order: order, value: value, created: created})
		return
	}
	have := &g.list[i]
	switch {
	case order < have.order:
		have.order, have.value, have.created = order, value, created
	case order > have.order:
	case largest:
		have.value = max(have.value, value)
	default:
		have.value += value
		have.created = earliest(have.created, created)
	}
}

// at finds a group: by looking for a few, by an index for many.
func (g *groups) at(attrs []Attr) int {
	if len(g.list) <= 16 {
		for i := range g.list {
			if attrsEqual(g.list[i].attrs, attrs) {
				return i
			}
		}
		return -1
	}
	if g.index == nil {
		g.index = make(map[string]int, 4*len(g.list))
		for i := range g.list {
			g.index[string(g.render(g.list[i].attrs))] = i
		}
	}
	if i, ok := g.index[string(g.render(attrs))]; ok {
		return i
	}
	return -1
}

func (g *groups) put(attrs []Attr, n group) {
	from := len(g.arena)
	g.arena = append(g.arena, attrs...)
	n.attrs = g.arena[from:len(g.arena):len(g.arena)]
	if g.index != nil {
		g.index[string(g.render(attrs))] = len(g.list)
	}
	g.list = append(g.list, n)
}

func (g *groups) render(attrs []Attr) []byte {
	g.key = AppendKey(g.key[:0], attrs)
	return g.key
}

// AppendKey appends a form of the attributes that no other attributes have.
func AppendKey(b []byte, attrs []Attr) []byte {
	for _, a := range attrs {
		b = append(appendLen(b, len(a.Key)), a.Key...)
		b = append(appendLen(b, len(a.Value)), a.Value...)
	}
	return b
}

func appendLen(b []byte, n int) []byte {
	return append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func (g *groups) points() []Point {
	if len(g.list) == 0 {
		return nil
	}
	out := make([]Point, len(g.list))
	for i := range g.list {
		out[i] = Point{Attrs: g.list[i].attrs, Value: g.list[i].value, Created: g.list[i].created}
	}
	return out
}
