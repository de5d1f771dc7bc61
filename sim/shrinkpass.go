package sim

import (
	"slices"
	"time"
)

// reductions are what is tried, again and again, until none of it makes the scenario
// smaller: first what leaves out most. Each change that may be taken over leaves
// something out or is simpler by [simplerThan], so there is an end.
var reductions = []func(*shrinker){
	(*shrinker).leaveOutExpectations,
	(*shrinker).endSooner,
	(*shrinker).leaveOutFaults,
	(*shrinker).leaveOutOutboxes,
	(*shrinker).leaveOutSchedules,
	(*shrinker).leaveOutQueues,
	(*shrinker).leaveOutProcesses,
	(*shrinker).beginSooner,
	(*shrinker).simplify,
}

// leaveOut leaves out parts of a list of n: all, halves, quarters, down to one
// by one.
func (k *shrinker) leaveOut(n func() int, leave func(s *Scenario, from, to int)) {
	for size := n(); size > 0; size = min(size/2, n()) {
		for to := n(); to > 0 && !k.ended; to -= size {
			k.try(func(s *Scenario) { leave(s, max(to-size, 0), to) })
		}
	}
}

func (k *shrinker) leaveOutExpectations() {
	if len(k.how.Keep) > 0 {
		return
	}
	k.leaveOut(func() int { return len(k.best.Scenario.Expect) }, func(s *Scenario, from, to int) {
		s.Expect = slices.Delete(s.Expect, from, to)
	})
}

func (k *shrinker) leaveOutFaults() {
	k.leaveOut(func() int { return len(k.best.Scenario.Faults) }, func(s *Scenario, from, to int) {
		s.Faults = slices.Delete(s.Faults, from, to)
	})
}

func (k *shrinker) leaveOutQueues() {
	k.leaveOut(func() int { return len(k.best.Scenario.Queues) }, func(s *Scenario, from, to int) {
		s.Queues = slices.Delete(s.Queues, from, to)
	})
}

// leaveOutOutboxes leaves out outboxes, and whatever names them.
func (k *shrinker) leaveOutOutboxes() {
	k.leaveOut(func() int { return len(k.best.Scenario.Outboxes) }, func(s *Scenario, from, to int) {
		for _, o := range s.Outboxes[from:to] {
			for i := range s.Schedules {
				for _, named := range []*string{&s.Schedules[i].Deliver, &s.Schedules[i].Outbox} {
					if *named == o.Name {
						*named = ""
					}
				}
			}
			s.Faults = slices.DeleteFunc(s.Faults, func(f Fault) bool { return f.Queue == o.Name || f.Into == o.Name })
		}
		s.Outboxes = slices.Delete(s.Outboxes, from, to)
	})
}

// leaveOutSchedules leaves out schedules, and whatever names them or their
// queues.
func (k *shrinker) leaveOutSchedules() {
	k.leaveOut(func() int { return len(k.best.Scenario.Schedules) }, func(s *Scenario, from, to int) {
		s.Schedules = slices.Delete(s.Schedules, from, to)
		schedules, queues := map[string]bool{"": true}, map[string]bool{"": true}
		for i := range s.Schedules {
			schedules[s.Schedules[i].Name], queues[s.Schedules[i].Queue] = true, true
		}
		for i := range s.Outboxes {
			queues[s.Outboxes[i].Name] = true
		}
		s.Faults = slices.DeleteFunc(s.Faults, func(f Fault) bool {
			return !schedules[f.Schedule] || f.Kind != FaultEditChange && !queues[f.Queue] || !queues[f.Into]
		})
		for i := range s.Faults {
			queues[s.Faults[i].Queue] = true
		}
		s.Queues = slices.DeleteFunc(s.Queues, func(q Queue) bool { return !queues[q.Name] })
		s.Handlers = s.Handlers.of(s.Schedules)
		s.Expect = slices.DeleteFunc(s.Expect, func(e Expect) bool { return !schedules[e.Schedule] })
	})
}

// leaveOutProcesses leaves out one process after the other, with its own faults.
func (k *shrinker) leaveOutProcesses() {
	for runner := k.best.Scenario.Engine.Runners; runner > 0; runner-- {
		k.try(func(s *Scenario) {
			s.Engine.Runners--
			s.Faults = slices.DeleteFunc(s.Faults, func(f Fault) bool { return f.Runner == runner })
			for i := range s.Faults {
				if s.Faults[i].Runner > runner {
					s.Faults[i].Runner--
				}
			}
		})
	}
}

// endSooner shortens the run, and cuts off the faults of what is left out.
func (k *shrinker) endSooner() {
	k.try(func(s *Scenario) { s.QuietAfter = 0 })
	for _, d := range simplerDurations(k.best.Scenario.For) {
		if k.try(func(s *Scenario) { s.endAt(d) }) {
			return
		}
	}
	for _, d := range simplerDurations(k.best.Scenario.QuietAfter) {
		if k.try(func(s *Scenario) { s.quietAfter(d) }) {
			return
		}
	}
}

func (s *Scenario) endAt(d time.Duration) {
	s.For = d
	if s.QuietAfter > 0 {
		s.QuietAfter = min(s.QuietAfter, d)
	}
	s.cutFaults(d)
}

func (s *Scenario) quietAfter(d time.Duration) {
	s.QuietAfter = d
	s.cutFaults(d)
}

// cutFaults has no fault last beyond the instant.
func (s *Scenario) cutFaults(end time.Duration) {
	s.Faults = slices.DeleteFunc(s.Faults, func(f Fault) bool { return f.At >= end })
	for i := range s.Faults {
		s.Faults[i].For = min(s.Faults[i].For, end-s.Faults[i].At)
	}
}

// beginSooner leaves out time before the first fault.
func (k *shrinker) beginSooner() {
	first := k.best.Scenario.firstFault()
	for _, d := range append([]time.Duration{0}, simplerDurations(first)...) {
		if d >= first {
			continue
		}
		if k.try(func(s *Scenario) {
			by := first - d
			for i := range s.Faults {
				s.Faults[i].At -= by
			}
			s.For -= by
			s.QuietAfter = max(s.QuietAfter-by, 0)
		}) {
			return
		}
	}
}

// firstFault is when the first fault begins; 0 without one.
func (s *Scenario) firstFault() time.Duration {
	first := time.Duration(0)
	for i, f := range s.Faults {
		if i == 0 || f.At < first {
			first = f.At
		}
	}
	return first
}

// simplify puts simpler values in the place of others, each for itself.
func (k *shrinker) simplify() {
	k.try(func(s *Scenario) { s.Start = time.Time{} })
	for _, key := range engineKeys {
		k.simplifyValue(func(s *Scenario) value { return key.of(&s.Engine) })
	}
	for i := range k.best.Scenario.Queues {
		k.simplifyValue(func(s *Scenario) value { return numberValue[int]{n: &s.Queues[i].Workers, least: 1} })
	}
	for i := range k.best.Scenario.Outboxes {
		k.simplifyValue(func(s *Scenario) value { return numberValue[int]{n: &s.Outboxes[i].Workers, least: 1} })
		for _, key := range outboxKeys[1:] {
			k.simplifyValue(func(s *Scenario) value { return key.of(&s.Outboxes[i]) })
		}
	}
	for i := range k.best.Scenario.Schedules {
		for _, key := range scheduleKeys {
			k.simplifyValue(func(s *Scenario) value { return key.of(&s.Schedules[i]) })
		}
	}
	for i := range k.best.Scenario.Faults {
		k.simplifyValue(func(s *Scenario) value { return durationValue{d: &s.Faults[i].At} })
		for _, key := range keysOf(k.best.Scenario.Faults[i].Kind) {
			k.simplifyValue(func(s *Scenario) value { return key.of(&s.Faults[i]) })
		}
	}
}

// simplifyValue takes over the first of the simpler values with which the
// scenario still comes to what is kept.
func (k *shrinker) simplifyValue(of func(*Scenario) value) {
	if of(&k.best.Scenario).text() == "" {
		return
	}
	for i := range of(&k.best.Scenario).simpler() {
		if k.try(func(s *Scenario) { of(s).simpler()[i]() }) {
			return
		}
	}
}
