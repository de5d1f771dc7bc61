package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// transaction is what a handler writes at once: it looks up the schedule of its
// job, puts jobs into queues and entries into outboxes, and acks its own. Or it is
// what somebody puts there without more.
type transaction struct {
	schedule string // "": no lookup, and no ack
	spawns   []spawn
	payload  []byte       // of the entries
	read     *store.Guard // the row as it was looked up
	back     bool         // it is rolled back
}

// transact ends the claim in a transaction. A failed call is made again: if it was
// made, the claim is gone, and nothing is written twice. A handler that fails
// rolls back, and then has its job tried again.
func (a *attempt) transact() {
	world, job := a.worker.node.w, a.job
	tx := &transaction{schedule: job.Schedule, spawns: a.spawns, payload: entryOf(job), back: a.ends == fails}
	world.intent = intent{tx: tx}
	err := a.worker.node.engine.Tx(ctx, func(staged *tickonce.Tx) error {
		if _, _, err := staged.Lookup(tx.schedule); err != nil {
			return err
		}
		for _, p := range tx.spawns {
			if err := p.stage(staged, tx.payload); err != nil {
				return err
			}
		}
		if err := staged.Ack(job); err != nil || !tx.back {
			return err
		}
		return a.reason
	})
	world.intent = intent{}
	world.coverage.sometimes(enqueueRefused, errors.Is(err, tickonce.ErrLimit))
	if tx.toOutbox() {
		refused := errors.Is(err, tickonce.ErrClaimLost) || errors.Is(err, tickonce.ErrConflict) || errors.Is(err, tickonce.ErrLimit)
		world.coverage.sometimes(entryRolledBack, refused || tx.back && err == error(a.reason))
	}
	switch {
	case err == nil || errors.Is(err, tickonce.ErrClaimLost):
		a.tx, a.acked = false, true
		a.tell(EventHandlerEnded, succeeds.String())
		if a.run == nil {
			a.worker.free()
		} else {
			a.returns(nil)
		}
	case errors.Is(err, tickonce.ErrConflict):
		a.again(world.now)
	case errors.Is(err, tickonce.ErrLimit), tx.back && err == error(a.reason):
		a.tx, a.spawns, a.ends = false, nil, fails
		a.again(world.now)
	default:
		a.worker.check(err)
		a.again(world.now.Add(errorBackoffMS))
	}
}

// toOutbox reports whether it puts an entry into an outbox.
func (tx *transaction) toOutbox() bool {
	return slices.ContainsFunc(tx.spawns, func(p spawn) bool { return p.into.outbox != nil })
}

// transacted checks that a transaction is written as it was asked for, and on what
// it had read.
func (t *truth) transacted(b *store.Batch) {
	tx := t.w.intent.tx
	if tx == nil {
		return
	}
	acks := 0
	if tx.schedule != "" {
		acks = 1
	}
	switch {
	case tx.back:
		t.w.fail(asAsked, tx.schedule, "a transaction that was rolled back was written")
	case len(b.Settles) != acks || !tx.inserts(b.Inserts):
		t.w.fail(asAsked, tx.schedule, fmt.Sprintf("a transaction was written with %d acks and %d jobs, which are not those that were asked for",
			len(b.Settles), len(b.Inserts)))
	case acks > 0 && (tx.read == nil || !t.guards(*tx.read)):
		t.w.fail(revGuard, tx.schedule, "a transaction was written although the schedule that it had looked up has changed")
	}
}

// inserts reports whether those are the jobs and entries of the transaction.
func (tx *transaction) inserts(list []store.Insert) bool {
	list = slices.DeleteFunc(slices.Clone(list), isResult)
	for _, p := range tx.spawns {
		want := store.Insert{Queue: p.into.row.Name, Stamps: plainStamps, RunAt: store.None}
		if o := p.into.outbox; o != nil {
			want.Payload, want.Stamps = tx.payload, o.stamps()
		}
		for range p.jobs {
			if len(list) == 0 || !sameInsert(&list[0], &want) {
				return false
			}
			list = list[1:]
		}
	}
	return len(list) == 0
}

func sameInsert(a, b *store.Insert) bool {
	return a.Queue == b.Queue && bytes.Equal(a.Payload, b.Payload) && a.Key == b.Key && a.Stamps == b.Stamps && a.Priority == b.Priority &&
		a.RunAt == b.RunAt && a.DelayMS == b.DelayMS && a.ExpiresMS == b.ExpiresMS
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
