package htmlreport

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/tickonce/tickonce/sim"
)

// outcomes follows what became of each job that was fired and, apart from that, of
// what it delivered.
type outcomes struct {
	outboxes map[string]*outbox
	order    []string           // of their names
	jobs     map[int64]*outcome // but for those that were done at the first try
	entries  map[int64]*delivered
	ended    map[int64]string // how the last run of a job ended that was no success
}

// outcome is what became of a job, and of its deliveries.
type outcome struct {
	schedule   *schedule
	boundary   int64
	tries      int
	how        string // done, dead, open
	why        string // of its last try that failed
	deliveries []*delivered
}

// delivered is what became of a delivery.
type delivered struct {
	outbox string
	tries  int
	how    string // delivered, undelivered, open
	why    string
}

func (d *delivered) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{d.outbox, d.tries, d.how, d.why})
}

func (o *outcome) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{boundaryOrNull(o.boundary), o.tries, o.how, o.why, notNil(o.deliveries)})
}

// noBoundary is that of a job that was fired by hand.
const noBoundary = math.MinInt64

func boundaryOrNull(boundary int64) any {
	if boundary == noBoundary {
		return nil
	}
	return boundary
}

// tryOf is a try of an outbox, or several of one kind.
type tryOf struct {
	at       int64
	kind     string // delivered, retried, undelivered
	count    int64
	number   int    // which try it is
	schedule string // of the job that it tells of, or ""
	boundary int64
	why      string
}

func (q tryOf) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{q.at, q.kind, q.count, q.number, q.schedule, boundaryOrNull(q.boundary), q.why})
}

func newOutcomes(s sim.Scenario) outcomes {
	o := outcomes{outboxes: map[string]*outbox{}, jobs: map[int64]*outcome{}, entries: map[int64]*delivered{}, ended: map[int64]string{}}
	for _, b := range s.Outboxes {
		o.outboxes[b.Name] = &outbox{Name: b.Name}
		o.order = append(o.order, b.Name)
	}
	return o
}

// endings are the words of the ends of runs that are no success.
var endings = map[string]string{
	"fail": "failed", "panic": "panicked", "timeout": "timed out", "stop": "was cut off by a stop", "claim-lost": "lost its claim",
}

// tell follows the job of an event.
func (o *outcomes) tell(e *sim.Event, now, boundary int64, s *schedule) {
	if e.Job == 0 {
		return
	}
	if box := o.outboxes[e.Queue]; box != nil {
		o.delivers(box, e, now, boundary, s)
		return
	}
	job := o.jobs[e.Job]
	switch e.Kind {
	case sim.EventFired, sim.EventTriggered:
		o.jobs[e.Job] = &outcome{schedule: s, boundary: boundary, how: "open"}
	case sim.EventHandlerEnded, sim.EventHandlerCut:
		o.ended[e.Job] = endings[e.Reason]
	case sim.EventJobRetried, sim.EventJobDied:
		why := o.why(e)
		if kind := "failed"; s != nil {
			if e.Kind == sim.EventJobDied {
				kind = "dead"
			}
			s.tried(attempt{now, kind, e.Attempt, boundary, 1, why})
		}
		if job != nil {
			job.tries, job.why = e.Attempt, why
			if e.Kind == sim.EventJobDied {
				job.how = "dead"
			}
		}
	case sim.EventJobDone:
		delete(o.ended, e.Job)
		if job == nil {
			return
		}
		if job.tries, job.how = e.Attempt, "done"; e.Attempt == 1 && len(job.deliveries) == 0 {
			delete(o.jobs, e.Job)
		}
	}
}

// why says why the last try of a job failed.
func (o *outcomes) why(e *sim.Event) string {
	why := o.ended[e.Job]
	delete(o.ended, e.Job)
	switch {
	case e.Reason == "expired":
		why = "it expired"
	case e.Reason == "lapsed":
		why = "its claim lapsed"
	case e.Error != "" && (why == "" || why == "failed"):
		why = e.Error
	}
	return why
}

// delivers follows an entry of an outbox.
func (o *outcomes) delivers(box *outbox, e *sim.Event, now, boundary int64, s *schedule) {
	entry := o.entries[e.Job]
	q := tryOf{at: now, count: 1, number: e.Attempt, schedule: e.Schedule, boundary: boundary}
	switch e.Kind {
	case sim.EventEnqueued:
		if e.Origin == 0 {
			return
		}
		entry = &delivered{outbox: box.Name, how: "open"}
		o.entries[e.Job] = entry
		job := o.jobs[e.Origin]
		if job == nil { // done at the first try
			job = &outcome{schedule: s, boundary: boundary, tries: 1, how: "done"}
			o.jobs[e.Origin] = job
		}
		job.deliveries = append(job.deliveries, entry)
		if s != nil && !slices.Contains(s.Outboxes, box.Name) {
			s.Outboxes = append(s.Outboxes, box.Name)
		}
		return
	case sim.EventHandlerEnded, sim.EventHandlerCut:
		o.ended[e.Job] = endings[e.Reason]
		return
	case sim.EventJobDone:
		delete(o.ended, e.Job)
		q.kind = "delivered"
		box.Delivered++
	case sim.EventJobRetried:
		q.kind, q.why = "retried", o.why(e)
		box.Retried++
	case sim.EventJobDied:
		q.kind, q.why = "undelivered", o.why(e)
		box.Dead++
		if s != nil {
			s.Undelivered++
			s.Tries = append(s.Tries, attempt{now, q.kind, e.Attempt, boundary, 1, box.Name + ": " + q.why})
		}
	default:
		return
	}
	box.Tries = append(box.Tries, q)
	if entry == nil {
		return
	}
	if entry.tries, entry.why = e.Attempt, q.why; q.kind != "retried" {
		entry.how = q.kind
		delete(o.entries, e.Job)
	}
}

// mostOutcomes is how many jobs of a schedule the page tells one by one of.
const mostOutcomes = 2000

// close gives each schedule the jobs of which there is more to tell than that they,
// and their deliveries, were done at the first try.
func (o *outcomes) close(end int64) []outbox {
	list := map[*schedule][]*outcome{}
	for _, id := range slices.Sorted(maps.Keys(o.jobs)) {
		job := o.jobs[id]
		usual := job.how == "done" && job.tries == 1
		for _, d := range job.deliveries {
			usual = usual && d.how == "delivered" && d.tries == 1
		}
		if s := job.schedule; s != nil && (!usual || len(job.deliveries) != len(s.Outboxes)) {
			list[s] = append(list[s], job)
		}
	}
	for s, jobs := range list {
		slices.SortStableFunc(jobs, func(a, b *outcome) int { return cmp.Compare(a.boundary, b.boundary) })
		if s.Outcomes = jobs; len(jobs) > mostOutcomes {
			s.Outcomes, s.Untold = jobs[:mostOutcomes], true
		}
	}
	boxes := []outbox{}
	for _, name := range o.order {
		box := *o.outboxes[name]
		box.Tries = notNil(mergeDeliveries(box.Tries, max(end/2000, 1000)))
		boxes = append(boxes, box)
	}
	return boxes
}

// mergeDeliveries makes one of those that came through at the first try within the
// same stretch of time, and one of any kind where there are too many.
func mergeDeliveries(tries []tryOf, stretch int64) (list []tryOf) {
	last := map[string]int{} // of each kind, the place in the list
	for _, q := range tries {
		plain := q.kind == "delivered" && q.number == 1 || len(tries) > mostRows/4
		if i, ok := last[q.kind]; ok && plain && q.at/stretch == list[i].at/stretch {
			list[i].count += q.count
			list[i].schedule, list[i].boundary, list[i].number, list[i].why = "", noBoundary, 0, ""
			continue
		}
		if plain {
			last[q.kind] = len(list)
		}
		list = append(list, q)
	}
	return list
}
