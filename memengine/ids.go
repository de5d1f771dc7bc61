package memengine

import "slices"

// byID finds rows by ids that come from a rising sequence and so are dense: in
// leaves of 64 ids each, in order. It costs about nine bytes a row; an empty
// leaf is dropped.
type byID[T any] struct {
	leaves []leaf[T]
	n      int
	spare  []*[64]*T // of leaves that were dropped: empty
}

// maxSpareLeaves bounds the leaves that are kept for use again: for the jobs
// of a tick of 1,000 fires.
const maxSpareLeaves = 16

type leaf[T any] struct {
	base int64 // id / 64
	live int
	rows *[64]*T
}

// search answers where the leaf with this base is, or belongs. Without gaps
// in front of it, or behind it, it is where arithmetic says.
func (x *byID[T]) search(base int64) (int, bool) {
	if len(x.leaves) == 0 {
		return 0, false
	}
	end := len(x.leaves) - 1
	if i := base - x.leaves[0].base; 0 <= i && i <= int64(end) && x.leaves[i].base == base {
		return int(i), true
	}
	if i := int64(end) - (x.leaves[end].base - base); 0 <= i && i <= int64(end) && x.leaves[i].base == base {
		return int(i), true
	}
	if base > x.leaves[end].base {
		return end + 1, false
	}
	return slices.BinarySearchFunc(x.leaves, base, func(l leaf[T], base int64) int {
		switch {
		case l.base < base:
			return -1
		case l.base > base:
			return 1
		default:
			return 0
		}
	})
}

// find answers the row with this id, or nil.
func (x *byID[T]) find(id int64) *T {
	i, ok := x.search(id >> 6)
	if !ok {
		return nil
	}
	return x.leaves[i].rows[id&63]
}

// put adds a row whose id no kept row has.
func (x *byID[T]) put(id int64, row *T) {
	i, ok := x.search(id >> 6)
	if !ok {
		x.leaves = slices.Insert(x.leaves, i, leaf[T]{base: id >> 6, rows: x.emptyLeaf()})
	}
	l := &x.leaves[i]
	l.rows[id&63] = row
	l.live++
	x.n++
}

func (x *byID[T]) emptyLeaf() *[64]*T {
	n := len(x.spare)
	if n == 0 {
		return new([64]*T)
	}
	rows := x.spare[n-1]
	x.spare = x.spare[:n-1]
	return rows
}

// drop removes the row with this id, which is there.
func (x *byID[T]) drop(id int64) {
	i, _ := x.search(id >> 6)
	l := &x.leaves[i]
	l.rows[id&63] = nil
	l.live--
	x.n--
	if l.live > 0 {
		return
	}
	if len(x.spare) < maxSpareLeaves {
		x.spare = append(x.spare, l.rows)
	}
	switch i {
	case 0:
		x.leaves[0] = leaf[T]{}
		x.leaves = x.leaves[1:]
	default:
		x.leaves = slices.Delete(x.leaves, i, i+1)
	}
}

// from yields the rows with this id or a larger one, in id order.
func (x *byID[T]) from(id int64) func(yield func(*T) bool) {
	return func(yield func(*T) bool) {
		i, ok := x.search(id >> 6)
		at := int64(0)
		if ok {
			at = id & 63
		}
		for ; i < len(x.leaves); i++ {
			for _, row := range x.leaves[i].rows[at:] {
				if row != nil && !yield(row) {
					return
				}
			}
			at = 0
		}
	}
}

// lastID answers the largest id. There must be a row.
func (x *byID[T]) lastID() int64 {
	l := x.leaves[len(x.leaves)-1]
	for i := len(l.rows) - 1; ; i-- {
		if l.rows[i] != nil {
			return l.base<<6 + int64(i)
		}
	}
}
