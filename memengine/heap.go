package memengine

// heap is a 4-ary heap of rows that know their place in it, so that any of
// them can be taken out.
type heap[T any] struct {
	rows   []*T
	before func(a, b *T) bool
	place  func(*T) *int32 // the row's index + 1; 0: not in the heap
}

// top answers the first row, or nil.
func (h *heap[T]) top() *T {
	if len(h.rows) == 0 {
		return nil
	}
	return h.rows[0]
}

func (h *heap[T]) has(row *T) bool { return *h.place(row) != 0 }

func (h *heap[T]) push(row *T) {
	h.rows = append(h.rows, row)
	h.up(len(h.rows)-1, row)
}

func (h *heap[T]) pop() *T {
	row := h.rows[0]
	h.remove(row)
	return row
}

// remove takes the row out, if it is in.
func (h *heap[T]) remove(row *T) {
	i := int(*h.place(row)) - 1
	if i < 0 {
		return
	}
	*h.place(row) = 0
	end := len(h.rows) - 1
	last := h.rows[end]
	h.rows[end] = nil
	h.rows = h.rows[:end]
	if i == end {
		return
	}
	if i > 0 && h.before(last, h.rows[(i-1)/4]) {
		h.up(i, last)
	} else {
		h.down(i, last)
	}
}

// up settles row at i or above.
func (h *heap[T]) up(i int, row *T) {
	for i > 0 {
		parent := (i - 1) / 4
		if !h.before(row, h.rows[parent]) {
			break
		}
		h.set(i, h.rows[parent])
		i = parent
	}
	h.set(i, row)
}

// down settles row at i or below.
func (h *heap[T]) down(i int, row *T) {
	for {
		first := 4*i + 1
		if first >= len(h.rows) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(h.rows)); c++ {
			if h.before(h.rows[c], h.rows[least]) {
				least = c
			}
		}
		if !h.before(h.rows[least], row) {
			break
		}
		h.set(i, h.rows[least])
		i = least
	}
	h.set(i, row)
}

func (h *heap[T]) set(i int, row *T) {
	h.rows[i] = row
	*h.place(row) = int32(i + 1)
}

// each visits the rows that satisfy in, from the row at i down. If a row does,
// all rows before it have to.
func (h *heap[T]) each(i int, in func(*T) bool, visit func(*T)) {
	if i >= len(h.rows) || !in(h.rows[i]) {
		return
	}
	visit(h.rows[i])
	for c := 4*i + 1; c <= 4*i+4; c++ {
		h.each(c, in, visit)
	}
}
