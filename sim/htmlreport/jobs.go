package htmlreport

import (
	"slices"
	"time"

	"github.com/tickonce/tickonce/sim"
)

// jobs follows each job from its fire to its end, to know how many wait: those
// that are ready, or were claimed and their claim has lapsed, and that nobody
// works on.
type jobs struct {
	queues   map[string]*waiting
	outboxes map[string]bool
	all      waiting
	live     map[int64]*job
	alarms   []alarm // in the order of time
	strays   [][2]int64
	snapshot int64 // how often one is taken; 0: only at the start
}

type job struct {
	queue string
	made  int64
	waits bool
	alarm int64 // when it begins to wait; 0: it does, or somebody works on it
}

type alarm struct{ at, job int64 }

// waiting are the steps of how many jobs of a queue wait.
type waiting struct {
	n     int64
	steps [][2]int64
}

func newJobs(s sim.Scenario) jobs {
	q := jobs{
		queues: map[string]*waiting{}, outboxes: map[string]bool{}, live: map[int64]*job{}, snapshot: s.Engine.SnapshotEvery.Milliseconds(),
	}
	for _, o := range s.Outboxes {
		q.outboxes[o.Name] = true
	}
	return q
}

// tell follows the job of an event.
func (q *jobs) tell(e *sim.Event, now, boundary int64) {
	q.ring(now)
	j := q.live[e.Job]
	until := now + e.Until.Sub(e.Shown).Round(time.Millisecond).Milliseconds()
	switch e.Kind {
	case sim.EventStoreOpened:
		q.forget(e.Reason, now)
	case sim.EventFired, sim.EventEnqueued, sim.EventTriggered:
		if e.Kind == sim.EventEnqueued && !q.outboxes[e.Queue] {
			q.stray(now)
		}
		q.end(e.Job, now) // one of a number that a restart gave anew
		q.live[e.Job] = &job{queue: e.Queue, made: now}
		q.wait(q.live[e.Job], now)
	case sim.EventClaimed:
		if j == nil {
			j = &job{queue: e.Queue, made: boundary}
			q.live[e.Job] = j
		}
		q.work(j, now)
		q.later(e.Job, j, until+1)
	case sim.EventJobRetried:
		if j != nil {
			q.work(j, now)
			q.later(e.Job, j, until)
		}
	case sim.EventJobDied, sim.EventJobDone:
		q.end(e.Job, now)
	}
}

// stray counts a job of no schedule; those of a minute are one row.
func (q *jobs) stray(now int64) {
	const minute = int64(time.Minute / time.Millisecond)
	if n := len(q.strays); n > 0 && q.strays[n-1][0]/minute == now/minute {
		q.strays[n-1][1]++
		return
	}
	q.strays = append(q.strays, [2]int64{now, 1})
}

// tried notes an attempt that failed.
func (s *schedule) tried(a attempt) {
	s.Tries = append(s.Tries, a)
	if a.kind == "dead" {
		s.Dead++
	} else {
		s.Failed++
	}
}

// ring has those jobs wait whose time has come.
func (q *jobs) ring(now int64) {
	for len(q.alarms) > 0 && q.alarms[0].at <= now {
		a := q.alarms[0]
		q.alarms = q.alarms[1:]
		if j := q.live[a.job]; j != nil && j.alarm == a.at {
			q.wait(j, a.at)
		}
	}
}

func (q *jobs) later(id int64, j *job, at int64) {
	j.alarm = at
	i, _ := slices.BinarySearchFunc(q.alarms, at, func(a alarm, at int64) int {
		if a.at <= at {
			return -1
		}
		return 1
	})
	q.alarms = slices.Insert(q.alarms, i, alarm{at, id})
}

func (q *jobs) wait(j *job, now int64) {
	if !j.waits {
		q.step(j.queue, now, 1)
	}
	j.waits, j.alarm = true, 0
}

func (q *jobs) work(j *job, now int64) {
	if j.waits {
		q.step(j.queue, now, -1)
	}
	j.waits, j.alarm = false, 0
}

func (q *jobs) end(id, now int64) {
	if j := q.live[id]; j != nil {
		q.work(j, now)
		delete(q.live, id)
	}
}

func (q *jobs) step(name string, now, by int64) {
	if q.queues[name] == nil {
		q.queues[name] = &waiting{}
	}
	q.queues[name].step(now, by)
	q.all.step(now, by)
}

// step keeps what an instant ends with, if that is another number.
func (w *waiting) step(now, by int64) {
	w.n += by
	n := len(w.steps)
	if n > 0 && w.steps[n-1][0] == now {
		n--
	}
	w.steps = w.steps[:n]
	if n == 0 && w.n != 0 || n > 0 && w.steps[n-1][1] != w.n {
		w.steps = append(w.steps, [2]int64{now, w.n})
	}
}

// mostSteps bounds the steps of a queue on the page.
const mostSteps = 3000

// thinned are the steps or, of too many, for each of equal stretches of the run
// the highest and the last.
func (w *waiting) thinned(end int64) [][2]int64 {
	if w == nil {
		return [][2]int64{}
	}
	if len(w.steps) <= mostSteps {
		return notNil(w.steps)
	}
	var list [][2]int64
	stretch := end/(mostSteps/2) + 1
	for i := 0; i < len(w.steps); {
		top, last := i, i
		for ; i < len(w.steps) && w.steps[i][0]/stretch == w.steps[last][0]/stretch; i++ {
			if w.steps[i][1] > w.steps[top][1] {
				top = i
			}
			last = i
		}
		if list = append(list, w.steps[top]); top != last {
			list = append(list, w.steps[last])
		}
	}
	return list
}

// forget drops the jobs that the store does not know any more.
func (q *jobs) forget(opened string, now int64) {
	kept := int64(-1)
	switch {
	case opened == "journal":
		return
	case opened == "snapshot" && q.snapshot > 0:
		kept = now - now%q.snapshot
	case opened == "snapshot":
		kept = 0
	}
	for id, j := range q.live {
		if j.made > kept {
			q.end(id, now)
		}
	}
}
