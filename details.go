package tickonce

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/tickonce/tickonce/store"
)

// Detail is what a run said beside its outcome, or what became of a try to
// deliver its result. It is kept in memory only, by the engine that settled the
// run or the try.
type Detail struct {
	Number int64     // of the engine's details, from 1; a gap is of those that were dropped
	At     time.Time // the store's now

	Schedule string    // of the job, or ""
	Boundary time.Time // or the zero time
	Job      JobID     // whose run it is of

	// Of a run.
	Attempt    int // else 0
	Summary    string
	Deliveries int // that it staged

	// Of a try.
	Outbox   string
	Entry    JobID // else 0
	Try      int
	Delivery Delivery
	Last     bool   // no other try follows
	Error    string // of a failed one
}

// details are the latest ones of an engine, at most so many.
type details struct {
	most int

	mu      sync.Mutex
	ring    []Detail // the detail with number n is at (n-1) mod most
	last    int64    // the latest number
	read    int64    // the latest number that a reader got
	dropped int64    // before any reader got them
	added   signal

	of map[JobID][]int64 // the numbers of those that are kept, by the job
}

// Details yields the engine's details, the oldest one that is still there first,
// and waits for more until ctx ends and the last one was yielded. Nothing waits
// for the loop over it, however long it takes for one: [Config.Details] are
// kept, and then the oldest is dropped, see [Engine.DroppedDetails] (X2).
func (e *Engine) Details(ctx context.Context) iter.Seq[Detail] {
	return func(yield func(Detail) bool) {
		for number := int64(0); ; {
			added := e.details.added.next() // before the look, so that none is missed
			detail, ok := e.details.after(number)
			if ok {
				if number = detail.Number; !yield(detail) {
					return
				}
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-added:
			}
		}
	}
}

// DroppedDetails is how many details were dropped before any loop over
// [Engine.Details] got them.
func (e *Engine) DroppedDetails() int64 {
	e.details.mu.Lock()
	defer e.details.mu.Unlock()
	return e.details.dropped
}

// settled keeps what there is to say of a settled run or try.
func (d *details) settled(j *Job, now store.Instant, end ending) {
	detail := Detail{At: timeOf(now), Schedule: j.Schedule, Boundary: j.Boundary, Job: j.ID}
	switch outbox, is := OutboxName(j.Queue); {
	case is && j.Origin != 0:
		detail.Job, detail.Outbox, detail.Entry, detail.Try = j.Origin, outbox, j.ID, j.Attempt
		detail.Delivery, detail.Last, detail.Error = end.delivery, end.To != store.Pending, end.Error
	case is:
		return
	default:
		detail.Attempt, detail.Summary, detail.Deliveries = j.Attempt, j.summary(), len(end.deliver)
		if detail.Summary == "" && detail.Deliveries == 0 {
			return
		}
	}
	d.add(detail)
}

func (d *details) add(detail Detail) {
	d.mu.Lock()
	d.last++
	detail.Number = d.last
	if len(d.ring) < d.most {
		d.ring = append(d.ring, detail)
	} else {
		oldest := &d.ring[(d.last-1)%int64(d.most)]
		if oldest.Number > d.read {
			d.dropped++
		}
		if d.of[oldest.Job] = d.of[oldest.Job][1:]; len(d.of[oldest.Job]) == 0 {
			delete(d.of, oldest.Job)
		}
		*oldest = detail
	}
	if d.of == nil {
		d.of = map[JobID][]int64{}
	}
	d.of[detail.Job] = append(d.of[detail.Job], d.last)
	d.mu.Unlock()
	d.added.raise()
}

// after is the oldest detail behind the number.
func (d *details) after(number int64) (Detail, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	number = max(number, d.last-int64(len(d.ring))) + 1
	if number > d.last {
		return Detail{}, false
	}
	d.read = max(d.read, number)
	return d.ring[(number-1)%int64(d.most)], true
}

// join adds to a run what the details that are still there say of it.
func (d *details) join(run *PastRun) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, number := range d.of[run.Job] {
		switch detail := &d.ring[(number-1)%int64(d.most)]; {
		case detail.Entry == 0 && detail.Attempt == run.Attempt:
			run.Summary = detail.Summary
		case detail.Entry != 0 && run.Then == store.Done:
			run.Deliveries = append(run.Deliveries, *detail)
		}
	}
}
