package sim

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
)

// disk is what outlives the processes and their store. It is kept where a
// fault will have it read.
type disk struct {
	kept     bool
	store    store.Store // the scenario's own, which keeps everything itself
	blank    []byte      // the state in which that was when nothing had been written to it
	snapshot []byte      // the latest that was due, nil: the empty store
	base     []byte      // a state not older than that, which the log continues
	log      []byte
	old      bool   // the base is older than what was there, until the store opens
	left     []byte // the state that the next opening must find; nil: an empty one
}

// shortLog is how long a log may be, in bytes, whatever it continues.
const shortLog = 64 << 10

// open opens the store with what the disk has. It must be the state that was
// left there (invariant 11).
func (w *world) open() {
	w.checked[anOpening]++
	w.openings++
	w.causes.opened = w.tell(Event{Kind: EventStoreOpened, Cause: w.causes.fault, Reason: w.disk.from()})
	w.coverage.sometimes(tornTail, len(w.journal.torn) > 0)
	w.disk.old = false
	opened, invalid, made := w.disk.store, false, false
	if w.scenario.Store == nil {
		opened, invalid = w.openMemory()
	} else if opened == nil {
		opened = w.scenario.Store(w.shown, w.limits().Store())
		w.disk.store, made = opened, true
	} else if w.scenario.Reopen != nil {
		opened = w.scenario.Reopen(opened)
		w.disk.store = opened
	}
	w.truth.opened(opened)
	if made {
		w.disk.blank = w.truth.bytes()
	}
	if w.disk.left != nil && !invalid && !bytes.Equal(w.disk.left, w.truth.bytes()) {
		w.fail(durability, "", "the store opened in another state than it was left in")
	}
	w.disk.left = nil
	w.mendAll()
}

// openMemory opens the store in memory, and reports whether rows that were
// invalid are held anew in it.
func (w *world) openMemory() (opened store.Store, invalid bool) {
	durable := memengine.Durable{Snapshot: w.disk.base, Log: slices.Concat(w.disk.log, w.journal.torn)}
	if w.disk.kept {
		durable.Journal = &w.journal
	}
	e, recovery, err := memengine.Open(tickonce.Config{Clock: newClock(w, &w.clock), Limits: w.limits()}, durable)
	if err != nil {
		panic(fmt.Sprintf("sim: the store does not open again: %v", err))
	}
	invalid = recovery.Invalid > 0
	torn := len(w.journal.torn) > 0
	switch {
	case recovery.Offset != int64(len(w.disk.log)) || (recovery.Torn != "") != torn:
		w.fail(durability, "", fmt.Sprintf("of a log with %d bytes of whole records, behind which one is torn: %s, the store took %d; the rest, it says, %q",
			len(w.disk.log), yesNo(torn), recovery.Offset, recovery.Torn))
	case invalid && !w.spoilt:
		w.fail(durability, "", fmt.Sprintf("the store opened with %d invalid rows, and none was ever spoilt", recovery.Invalid))
	}
	w.journal.torn = nil
	return e.Store(), invalid
}

func (w *world) limits() tickonce.Limits {
	return tickonce.Limits{QueueLength: w.scenario.Engine.QueueLimit}
}

// restart is with what the fault lets a store open again: another than that in
// memory keeps everything, or begins empty.
func (w *world) restart(f *Fault) Restart {
	if f.Restart == FromSnapshot && w.scenario.Store != nil {
		return FromJournal
	}
	return f.Restart
}

// from says what a store that opens has: nothing, if nothing was ever written.
func (d *disk) from() string {
	switch {
	case d.store == nil && len(d.base) == 0 && len(d.log) == 0, d.store != nil && bytes.Equal(d.left, d.blank):
		return "empty"
	case d.store == nil && d.old:
		return "snapshot"
	default:
		return "journal"
	}
}

// lose takes from the disk what does not outlive a crash.
func (w *world) lose(restart Restart) {
	d := &w.disk
	switch restart {
	case FromSnapshot:
		d.base, d.log, d.left, d.old = d.snapshot, d.log[:0], d.snapshot, true
	case FromNothing:
		*d = disk{kept: d.kept}
	default:
		return
	}
	w.journal.torn = nil
}

// close takes the store away, with the state that is left of it.
func (w *world) close(restart Restart) {
	if w.truth.open {
		w.disk.left = w.truth.bytes()
		w.truth.open = false
	}
	w.lose(restart)
	if restart == FromSnapshot || restart == FromNothing {
		w.truth.term = 0
	}
}

// snapshot writes the state to the disk.
func (w *world) snapshot() {
	if w.truth.open && w.disk.kept && w.disk.store == nil {
		w.disk.snapshot = w.truth.bytes()
		w.disk.base, w.disk.log = w.disk.snapshot, w.disk.log[:0]
	}
	w.at(w.now.Add(w.scenario.Engine.SnapshotEvery.Milliseconds()), event{kind: snapshotDue})
}

// compact has a newer base take the place of a log that has grown longer than
// the last one.
func (w *world) compact() {
	if len(w.disk.log) > max(shortLog, len(w.disk.base)) && w.truth.open {
		w.disk.base, w.disk.log = w.truth.bytes(), w.disk.log[:0]
	}
}
