package fileengine

import (
	"errors"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
)

// disk is a simulated one that does no more than it has to: what is not synced
// may be lost when the machine falls, in any part and in any order, names as
// well as bytes; and what a failed sync was to write is never written by a later
// one, though it can be read until then.
type disk struct {
	rng   *rand.Rand
	names map[string]*inode // as they are read
	last  map[string]*inode // as they certainly last
	moves []move            // from last to names
	held  bool              // the lock

	calls    int
	fails    func(call int) error // what a call answers in the place of success; errFall ends all
	fell     bool
	room     int // for the bytes of all files; 0: endless
	readOnly bool
}

var errFall = errors.New("the machine has fallen")

type inode struct {
	data  []byte // as it is read
	edits []edit // that led to it
}

// edit writes data at a place, or cuts the file there.
type edit struct {
	at   int
	data []byte
	cut  bool
	fate fate
}

type fate int

const (
	dirty fate = iota // the next sync makes it last
	lost              // no sync will
	lasts
)

// move makes name stand for a file and, if there is one, from for none. A nil
// file is no file.
type move struct {
	name, from string
	file       *inode
}

func newDisk(seed uint64) *disk {
	return &disk{rng: rand.New(rand.NewPCG(seed, 1)), names: map[string]*inode{}, last: map[string]*inode{}}
}

// fall answers the disk as the machine finds it when it starts again.
func (d *disk) fall() *disk {
	after := newDisk(d.rng.Uint64())
	keep := d.keeper()
	after.last = maps.Clone(d.last)
	for _, m := range d.moves {
		if keep() {
			m.apply(after.last)
		}
	}
	made := map[*inode]*inode{}
	for _, name := range slices.Sorted(maps.Keys(after.last)) {
		f := after.last[name]
		if made[f] == nil {
			made[f] = f.fall(d.keeper(), d.rng)
		}
		after.last[name] = made[f]
	}
	after.names = maps.Clone(after.last)
	return after
}

// kill answers the disk as another process finds it when this one has been
// killed: nothing is lost, and nothing more is sure to last.
func (d *disk) kill() *disk {
	d.held, d.fell, d.fails = false, false, nil
	return d
}

// keeper answers which of several unsynced changes last: none, all, the first
// ones, or any.
func (d *disk) keeper() func() bool {
	switch d.rng.IntN(4) {
	case 0:
		return func() bool { return false }
	case 1:
		return func() bool { return true }
	case 2:
		keeps := true
		return func() bool {
			keeps = keeps && d.rng.IntN(4) > 0
			return keeps
		}
	default:
		return func() bool { return d.rng.IntN(2) == 0 }
	}
}

func (f *inode) fall(keep func() bool, rng *rand.Rand) *inode {
	after := new(inode)
	for _, e := range f.edits {
		if e.fate != lasts {
			if !keep() {
				continue
			}
			if !e.cut && rng.IntN(3) == 0 { // a part of it
				from := rng.IntN(len(e.data) + 1)
				e.at, e.data = e.at+from, e.data[from:from+rng.IntN(len(e.data)-from+1)]
			}
		}
		after.edit(e)
	}
	after.sync(lasts)
	return after
}

func (f *inode) edit(e edit) {
	f.data = e.apply(f.data)
	f.edits = append(f.edits, e)
}

// sync decides what becomes of the edits that it is to make last.
func (f *inode) sync(to fate) {
	for i := range f.edits {
		if f.edits[i].fate == dirty {
			f.edits[i].fate = to
		}
	}
}

func (e edit) apply(data []byte) []byte {
	if e.cut {
		return data[:min(e.at, len(data))]
	}
	if missing := e.at + len(e.data) - len(data); missing > 0 {
		data = append(data, make([]byte, missing)...)
	}
	copy(data[e.at:], e.data)
	return data
}

func (m move) apply(names map[string]*inode) {
	delete(names, m.from)
	if m.file == nil {
		delete(names, m.name)
	} else {
		names[m.name] = m.file
	}
}

// call counts a call, and answers what it fails with.
func (d *disk) call(op, name string) error {
	if d.fell {
		return errFall
	}
	d.calls++
	var err error
	if d.fails != nil {
		err = d.fails(d.calls)
		d.fell = errors.Is(err, errFall)
	}
	if err != nil {
		err = &fs.PathError{Op: op, Path: name, Err: err}
	}
	return err
}

// change is a call that a disk refuses which is read-only.
func (d *disk) change(op, name string) error {
	err := d.call(op, name)
	if err == nil && d.readOnly {
		err = &fs.PathError{Op: op, Path: name, Err: syscall.EROFS}
	}
	return err
}

func (d *disk) move(op string, m move) error {
	err := d.change(op, m.name)
	if err == nil || !d.fell && !d.readOnly && d.rng.IntN(2) == 0 { // it may have happened all the same
		m.apply(d.names)
		d.moves = append(d.moves, m)
	}
	return err
}

// left answers how many bytes files may grow by.
func (d *disk) left() int {
	if d.room == 0 {
		return math.MaxInt
	}
	left := d.room
	for _, f := range d.names {
		left -= len(f.data)
	}
	return max(left, 0)
}

func (d *disk) lock() (func() error, error) {
	if err := d.change("open", lockName); err != nil {
		return nil, err
	}
	if d.held {
		return nil, ErrLocked
	}
	d.held = true
	return func() error { d.held = false; return nil }, nil
}

func (d *disk) list() []string { return slices.Sorted(maps.Keys(d.names)) }

func (d *disk) find(name string) (*inode, error) {
	if f := d.names[name]; f != nil {
		return f, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// simulated is the disk as an engine sees it.
type simulated struct{ *disk }

func (d simulated) names() ([]string, error) { return d.list(), d.call("open", ".") }

func (d simulated) read(name string) ([]byte, error) {
	if err := d.call("open", name); err != nil {
		return nil, err
	}
	f, err := d.find(name)
	if err != nil {
		return nil, err
	}
	return slices.Clone(f.data), nil
}

func (d simulated) create(name string) (file, error) {
	f := new(inode)
	if err := d.move("open", move{name: name, file: f}); err != nil {
		return nil, err
	}
	return &handle{d: d.disk, f: f, name: name}, nil
}

func (d simulated) open(name string) (file, error) {
	if err := d.change("open", name); err != nil {
		return nil, err
	}
	f, err := d.find(name)
	if err != nil {
		return nil, err
	}
	return &handle{d: d.disk, f: f, name: name}, nil
}

func (d simulated) rename(from, to string) error {
	return d.move("rename", move{name: to, from: from, file: d.disk.names[from]})
}

func (d simulated) remove(name string) error { return d.move("remove", move{name: name}) }

func (d simulated) sync() error {
	if err := d.change("sync", "."); err != nil {
		return err
	}
	d.last, d.moves = maps.Clone(d.disk.names), nil
	return nil
}

type handle struct {
	d      *disk
	f      *inode
	name   string
	closed bool
}

func (h *handle) change(op string) error {
	if h.closed {
		return fs.ErrClosed
	}
	return h.d.change(op, h.name)
}

func (h *handle) WriteAt(b []byte, at int64) (n int, err error) {
	if err = h.change("write"); err == nil {
		n = len(b)
		if over := max(0, int(at)+n-len(h.f.data)) - h.d.left(); over > 0 {
			n, err = max(0, n-over), &fs.PathError{Op: "write", Path: h.name, Err: syscall.ENOSPC}
		}
	} else if errors.Is(err, syscall.ENOSPC) || errors.Is(err, errFall) {
		n = h.d.rng.IntN(len(b) + 1)
	}
	h.f.edit(edit{at: int(at), data: slices.Clone(b[:n])})
	return n, err
}

func (h *handle) Truncate(size int64) error {
	err := h.change("truncate")
	if err == nil {
		h.f.edit(edit{at: int(size), cut: true})
	}
	return err
}

func (h *handle) Sync() error {
	err := h.change("sync")
	if err != nil {
		h.f.sync(lost)
	} else {
		h.f.sync(lasts)
	}
	return err
}

func (h *handle) Close() error {
	if h.closed {
		return fs.ErrClosed
	}
	h.closed = true
	return h.d.call("close", h.name)
}
