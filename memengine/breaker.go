package memengine

import "github.com/tickonce/tickonce/store"

// ended tells the schedule of a job how the job ended (X4), and answers, where
// that opened its breaker, the failures in a row.
func (s *Store) ended(c *changes, j *store.Job, failed bool) uint8 {
	if !j.Counts() {
		return 0
	}
	row := s.ids.find(int64(j.ScheduleID))
	if row == nil || row.staged < 0 {
		return 0
	}
	next := &row.Schedule
	if row.staged > 0 {
		next = c.put[row.staged-1].next
	}
	if !failed && next.Failures == 0 { // as most ends are
		return 0
	}
	after := *next
	changed, tripped := after.Ended(failed)
	if !changed {
		return 0
	}
	after.Rev++
	if row.staged > 0 {
		c.put[row.staged-1].next = &after // not in place: the answer of the put stands
	} else {
		c.putOver(row, putSchedule{row: row, next: &after})
	}
	if !tripped {
		return 0
	}
	return after.Failures
}
