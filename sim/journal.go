package sim

import (
	"bytes"
	"fmt"

	"github.com/tickonce/tickonce/internal/faultstore"
)

// errJournal is what an append of the journal fails with, and its call (D2).
var errJournal = fmt.Errorf("the journal failed: %w", faultstore.ErrLost)

// journal takes the records of the store in memory to the disk, unless a fault
// keeps one from it. It implements [memengine.Journal].
type journal struct {
	w *world

	faults []int         // those that are on
	call   faultstore.Op // the one under way
	failed bool          // its append did
	before []byte        // the state before it, if that is compared

	// What came to the disk of a record whose append failed, nil of none. No other
	// record comes behind it until the store opens again.
	torn   []byte
	tornBy int // the fault
}

// Append fails calls of processes alone, and of these one that another fault has
// already met only behind a torn record.
func (j *journal) Append(record []byte) error {
	w := j.w
	if n := w.acting; n != nil {
		if j.torn != nil {
			return j.fail(n, j.tornBy)
		}
		for _, i := range j.faults {
			f := &w.scenario.Faults[i]
			if n.reply != faultstore.Pass || f.Chance != 0 && !w.draws.journalFault.happens(f.Chance) {
				continue
			}
			if f.Torn {
				j.torn, j.tornBy = w.tear(record), i
			}
			return j.fail(n, i)
		}
	}
	w.disk.log = append(w.disk.log, record...)
	return nil
}

// fail has an append of n fail by a fault.
func (j *journal) fail(n *node, fault int) error {
	j.failed = true
	j.w.faults[fault].effect++
	j.w.tellOfCall(n, j.call, fault, Event{Kind: EventCallLost, Reason: "journal"})
	return errJournal
}

// tear is what comes to the disk of a record that is not written to its end: its
// first bytes, with nothing behind them or, where a file grows before it is
// written, zeros.
func (w *world) tear(record []byte) []byte {
	torn := append([]byte{}, record[:w.draws.journalTorn.choice(int64(len(record)))]...)
	if w.draws.journalTorn.choice(2) == 0 {
		return torn
	}
	grown := make([]byte, len(record))
	copy(grown, torn)
	if bytes.Equal(grown, record) {
		return torn
	}
	return grown
}

// sends notes the call that comes to the store, and what it must leave as it is
// if its record cannot be written.
func (j *journal) sends(op faultstore.Op) {
	if (len(j.faults) > 0 || j.torn != nil) && writes(op) {
		j.call, j.before = op, j.w.truth.before()
	}
}

// receives checks a call whose record could not be written: it changed nothing
// (D2).
func (j *journal) receives() {
	if j.failed && j.w.truth.changedSince(j.before) {
		j.w.fail(failedWrite, "", fmt.Sprintf("a call (%s) whose record the journal refused changed the state", opWords[Op(j.call.Method)+1]))
	}
	j.w.coverage.sometimes(journalFailed, j.failed)
	j.failed, j.before = false, nil
}

// end ends a fault. The processes start again, together with the store, if there
// is a torn record behind which nothing can be written.
func (j *journal) end(fault int) {
	j.faults = without(j.faults, fault)
	if j.torn != nil && j.w.truth.open {
		j.w.stop(0, false, FromJournal)
		j.w.comeBack(0)
	}
}
