package sim

import (
	"errors"
	"fmt"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/internal/faultstore"
	"github.com/tickonce/tickonce/store"
)

// beginEdit gives the operator an edit to do when those before are done. The
// operator has an engine of its own over the store, like a process that runs no
// schedules.
func (w *world) beginEdit(fault int) {
	if w.operator == nil {
		w.operator = &node{w: w, index: len(w.nodes), clock: &timeline{{from: w.start}}}
		w.operator.boot()
	}
	if w.edits = append(w.edits, fault); len(w.edits) == 1 {
		w.takeOff(w.operator, event{kind: operatorActs}, w.edit)
	}
}

// edit does the first of the edits, or tries again later.
func (w *world) edit() {
	i := w.edits[0]
	f := &w.scenario.Faults[i]
	err := error(faultstore.ErrLost)
	if w.overloaded = false; w.truth.open {
		err = w.makeEdit(f)
	}
	switch {
	case err == nil || w.overloaded && errors.Is(err, faultstore.ErrLost): // or jobs would pile up for as long as replies are lost
		w.faults[i].effect++
		if w.edits = w.edits[1:]; len(w.edits) > 0 {
			w.at(w.now, event{kind: operatorActs})
		}
		return
	case !errors.Is(err, faultstore.ErrLost) && !errors.Is(err, tickonce.ErrConflict):
		w.fail(noError, f.Schedule, fmt.Sprintf("%s: %v", f, err))
	}
	w.at(w.now.Add(errorBackoffMS), event{kind: operatorActs})
}

func (w *world) makeEdit(f *Fault) (err error) {
	o, began := w.operator, w.now
	w.intent = intent{edit: f.Kind}
	switch f.Kind {
	case FaultOverload:
		if err = o.enqueue([]spawn{{w.truth.place(f.Queue), f.Jobs}}, nil); errors.Is(err, tickonce.ErrLimit) {
			err = nil
		}
	case FaultEditRename:
		as := *w.truth.named[f.Schedule].scenario
		as.Name = f.To
		w.intent = intent{edit: FaultEditAdd, as: &as}
		err = o.engine.Tx(ctx, func(tx *tickonce.Tx) error {
			if _, err := tx.Unschedule(f.Schedule); err != nil {
				return err
			}
			_, err := tx.Schedule(as.Name, as.Spec, as.Queue, as.Payload, as.options())
			return err
		})
		if err == nil && w.now == began {
			w.truth.checkEdit(FaultEditRemove, f.Schedule, nil)
			w.truth.checkEdit(FaultEditAdd, f.To, &as)
		}
	case FaultEditAdd, FaultEditChange, FaultEditPolicies:
		as := *w.truth.named[f.Schedule].scenario
		if f.Kind == FaultEditPolicies {
			as.Policies = f.Policies
			if as.RunOnce {
				as.MaxAttempts = 0
			}
		}
		if f.Spec != "" {
			as.Spec = f.Spec
		}
		if f.Queue != "" {
			as.Queue = f.Queue
		}
		if f.CatchUp != 0 {
			as.CatchUp = f.CatchUp
		}
		err = o.registers(&as)
	case FaultEditPause:
		_, err = o.engine.Pause(ctx, f.Schedule)
	case FaultEditResume:
		_, err = o.engine.Resume(ctx, f.Schedule, tickonce.ResumeOptions{})
	case FaultEditTrigger:
		err = o.trigger(f.Schedule)
	default:
		_, err = o.engine.Unschedule(ctx, f.Schedule)
	}
	w.intent = intent{}
	w.checkEvents()
	if err == nil && w.now == began && f.Kind != FaultEditRename {
		w.truth.checkEdit(f.Kind, f.Schedule, nil)
	}
	return err
}

// trigger fires a schedule by hand. One that is not there, is paused or full, or
// whose overlap forbids it, is let be.
func (n *node) trigger(name string) error {
	s, began := n.w.truth.named[name], n.w.now
	n.w.intent.edit = FaultEditTrigger
	_, err := n.engine.Trigger(ctx, name)
	if errors.Is(err, faultstore.ErrLost) || errors.Is(err, tickonce.ErrConflict) {
		return err
	}
	n.w.coverage.sometimes(triggerRefused, errors.Is(err, tickonce.ErrPaused) || errors.Is(err, tickonce.ErrOverlap))
	for _, refusal := range [...]struct {
		err  error
		want bool
	}{
		{tickonce.ErrNotFound, !s.known},
		{tickonce.ErrPaused, s.known && s.row.Paused != store.Active},
		{tickonce.ErrOverlap, s.known && s.row.Paused == store.Active && s.overlaps()},
		{tickonce.ErrInvalidOption, s.known && s.row.Paused == store.Active && !s.overlaps() && s.undecidable()},
	} {
		if errors.Is(err, refusal.err) && (refusal.want || n.w.now > began) || errors.Is(err, tickonce.ErrLimit) {
			return nil
		}
	}
	return err
}
