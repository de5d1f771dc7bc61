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
	live     map[int64]*job
	alarms   []alarm // in the order of time
	snapshot int64   // how often one is taken; 0: only at the start
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
	return jobs{queues: map[string]*waiting{}, live: map[int64]*job{}, snapshot: s.Engine.SnapshotEvery.Milliseconds()}
}

// tell follows the job of an event, and notes the attempt of the schedule that
// failed.
func (q *jobs) tell(e *sim.Event, now int64, s *schedule, boundary int64) {
	q.ring(now)
	j := q.live[e.Job]
	until := now + e.Until.Sub(e.Shown).Round(time.Millisecond).Milliseconds()
	switch e.Kind {
	case sim.EventStoreOpened:
		q.forget(e.Reason, now)
	case sim.EventFired:
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
		s.Failed++
		s.Tries = append(s.Tries, attempt{now, "failed", e.Attempt, boundary})
		if j != nil {
			q.work(j, now)
			q.later(e.Job, j, until)
		}
	case sim.EventJobDied:
		s.Dead++
		s.Tries = append(s.Tries, attempt{now, "dead", e.Attempt, boundary})
		q.end(e.Job, now)
	case sim.EventJobDone:
		q.end(e.Job, now)
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
	w := q.queues[name]
	if w == nil {
		w = &waiting{}
		q.queues[name] = w
	}
	w.n += by
	if n := len(w.steps); n > 0 && w.steps[n-1][0] == now {
		w.steps[n-1][1] = w.n
	} else {
		w.steps = append(w.steps, [2]int64{now, w.n})
	}
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
