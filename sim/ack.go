package sim

import (
	"errors"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// sentAck is an ack, or a retry, that comes to the store when its worker has
// gone on. It dies with its process.
type sentAck struct {
	worker    *worker
	life      int
	job       *tickonce.Job
	ends      ending
	reason    handlerError
	class     Class
	duplicate bool
	fault     int // by which it is late, from 1
}

// sendLater sends the worker's ack on its way, once or twice, if a fault says
// so. It reports whether the worker need not send one.
func (w *world) sendLater(of *worker) bool {
	late := false
	for _, i := range w.ackFaults {
		f := &w.scenario.Faults[i]
		duplicate, lost := f.Kind == FaultDuplicateAck, f.Kind == FaultLostAck
		if late && !duplicate || !f.concerns(of.has.job, of.queue) || f.Chance != 0 && !w.draws.ackFault.happens(f.Chance) {
			continue
		}
		w.faults[i].effect++
		w.meets(of.has.job, i+1)
		if !lost {
			w.send(
				sentAck{worker: of, life: of.node.lives, job: of.has.job, ends: of.has.ends, reason: of.has.reason, class: of.has.class, duplicate: duplicate, fault: i + 1},
				w.draws.ackLater.within(f.Takes).Milliseconds())
		}
		late = late || !duplicate
	}
	return late
}

// send lets the ack come so much later.
func (w *world) send(a sentAck, laterMS int64) {
	w.sends++
	w.sent[w.sends] = a
	w.sentMemory += jobMemory(a.job.Payload)
	w.at(w.now.Add(laterMS), event{kind: ackComes, node: int32(a.worker.node.index), index: w.sends})
}

// receive lets an ack come. A late one that fails is sent again.
func (w *world) receive(index int32) {
	a := w.sent[index]
	delete(w.sent, index)
	w.sentMemory -= jobMemory(a.job.Payload)
	if n := a.worker.node; !n.up || n.lives != a.life {
		return
	}
	var before []byte
	if a.duplicate && w.flying == nil {
		before = w.truth.before()
	}
	w.answers = a.fault
	err := w.settle(a.job, a.ends, a.reason, a.class)
	w.answers = 0
	lost := errors.Is(err, tickonce.ErrClaimLost)
	switch {
	case a.duplicate:
		w.coverage.sometimes(duplicateAckRefused, lost)
		if lost && before != nil {
			w.checked[aSecondAck]++
		}
		if lost && w.truth.changedSince(before) {
			w.fail(staleToken, a.job.Schedule, jobOf(store.Instant(a.job.Boundary.UnixMilli()))+": an ack that was refused changed the state")
		}
	case a.ends == succeeds:
		w.coverage.sometimes(ackRefused, lost)
	}
	if err == nil || lost {
		return
	}
	a.worker.check(err)
	if !a.duplicate {
		w.send(a, errorBackoffMS)
	}
}
