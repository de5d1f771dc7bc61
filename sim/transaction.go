package sim

import (
	"errors"
	"fmt"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// transaction is what a handler writes at once: it looks up the schedule of its
// job, puts jobs into its queue, and acks its own.
type transaction struct {
	schedule string
	jobs     int
	read     *store.Guard // the row as it was looked up
	back     bool         // it is rolled back
}

// transact ends the claim in a transaction. A failed call is made again: if it was
// made, the claim is gone, and nothing is written twice. A handler that fails
// rolls back, and then has its job tried again.
func (w *worker) transact() {
	world, job := w.node.w, w.job
	tx := &transaction{schedule: job.Schedule, jobs: w.spawns, back: w.ends == fails}
	world.intent = intent{tx: tx}
	err := w.node.engine.Tx(ctx, func(staged *tickonce.Tx) error {
		if _, _, err := staged.Lookup(tx.schedule); err != nil {
			return err
		}
		for range tx.jobs {
			if _, err := staged.Enqueue(w.queue.row.Name, nil, tickonce.EnqueueOptions{}); err != nil {
				return err
			}
		}
		if err := staged.Ack(job); err != nil || !tx.back {
			return err
		}
		return w.reason
	})
	world.intent = intent{}
	world.coverage.sometimes(enqueueRefused, errors.Is(err, tickonce.ErrLimit))
	switch {
	case err == nil || errors.Is(err, tickonce.ErrClaimLost):
		w.tx = false
		w.tell(EventHandlerEnded, succeeds.String())
		w.free()
	case errors.Is(err, tickonce.ErrConflict):
		w.goOn(works, world.now)
	case errors.Is(err, tickonce.ErrLimit), tx.back && err == error(w.reason):
		w.tx, w.spawns, w.ends = false, 0, fails
		w.goOn(works, world.now)
	default:
		w.failed(err)
	}
}

// transacted checks that a handler's transaction is written as it was asked for,
// and on what it had read.
func (t *truth) transacted(b *store.Batch) {
	tx := t.w.intent.tx
	if tx == nil {
		return
	}
	switch {
	case tx.back:
		t.w.fail(asAsked, tx.schedule, "a transaction that was rolled back was written")
	case len(b.Settles) != 1 || len(b.Inserts) != tx.jobs:
		t.w.fail(asAsked, tx.schedule, fmt.Sprintf("a transaction of one ack and %d jobs was written with %d and %d",
			tx.jobs, len(b.Settles), len(b.Inserts)))
	case tx.read == nil || !t.guards(*tx.read):
		t.w.fail(revGuard, tx.schedule, "a transaction was written although the schedule that it had looked up has changed")
	}
}

// refusalOf is why the batch has to be refused, by the first of its parts that
// cannot be written.
func (t *truth) refusalOf(b *store.Batch) store.Why {
	for _, g := range b.Guards {
		if !t.guards(g) {
			return store.Conflict
		}
	}
	for i := range b.Puts {
		if !t.guards(b.Puts[i].Guard) {
			return store.Conflict
		}
	}
	for _, g := range b.Removes {
		if !t.guards(g) {
			return store.Conflict
		}
	}
	for _, s := range b.Settles {
		if j := t.jobs[s.Job]; j == nil || !j.held(s.Attempt, t.w.shown()) {
			return store.ClaimLost
		}
	}
	if !t.hasRoom(b) {
		return store.QueueFull
	}
	return store.NotRefused
}
