package join

// ref is the number of an element of a slab; 0 is none.
type ref uint32

// chunk is how many elements a slab grows by.
const chunk = 128

// slab holds elements that refer to each other by number and not by pointer, so that the garbage collector, which would follow tens of
// thousands of pointers each time, has nothing to do. An element stays where it is until it is released.
type slab[T any] struct {
	chunks []*[chunk]T
	free   []ref
	used   int
}

// add makes an element, which is zero.
func (s *slab[T]) add() (ref, *T) {
	s.used++
	if n := len(s.free); n > 0 {
		r := s.free[n-1]
		s.free = s.free[:n-1]
		return r, s.at(r)
	}
	s.chunks = append(s.chunks, new([chunk]T))
	first := ref(len(s.chunks)-1)*chunk + 1
	for i := ref(chunk - 1); i > 0; i-- {
		s.free = append(s.free, first+i)
	}
	return first, s.at(first)
}

// at is element r, nil when r is none.
func (s *slab[T]) at(r ref) *T {
	if r == 0 {
		return nil
	}
	return &s.chunks[(r-1)/chunk][(r-1)%chunk]
}

// release makes room of element r. A slab of which nothing is used any more gives up its memory.
func (s *slab[T]) release(r ref) {
	var zero T
	*s.at(r) = zero
	s.free = append(s.free, r)
	if s.used--; s.used == 0 {
		*s = slab[T]{}
	}
}
