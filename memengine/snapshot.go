package memengine

import (
	"strconv"
	"strings"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// A snapshot is the magic, a version, the sequences, the rows of queues,
// schedules, jobs and locks, each with their number before them and in order,
// the history of runs and of skips, and the checksum of all that.
const (
	magic           = "tickonce"
	snapshotVersion = 2 // 1 had neither overlap, breaker, run-once, hours, timeouts, deliveries nor a history
	checksumSize    = 4
)

// SnapshotError says that a snapshot or a journal's log cannot be restored. It
// is damaged or, if Newer, was written by a later version. It matches
// [tickonce.ErrSnapshot].
type SnapshotError struct {
	Journal bool  // the log, not the snapshot
	Offset  int64 // in bytes, of what is wrong
	Newer   bool
	Reason  string
}

func (e *SnapshotError) Error() string {
	what := "snapshot"
	if e.Journal {
		what = "journal"
	}
	how := "damaged"
	if e.Newer {
		how = "newer than this version"
	}
	return what + " is " + how + ": at byte " + strconv.FormatInt(e.Offset, 10) + ": " + e.Reason
}

// Is makes the error match [tickonce.ErrSnapshot].
func (e *SnapshotError) Is(target error) bool { return target == tickonce.ErrSnapshot }

// Snapshot answers the rows as bytes: the same state gives the same bytes
// (D1). The scheduler's lease is no part of it, but the sequence of terms is
// (D6). The rows are copied under the lock and encoded outside.
func (s *Store) Snapshot() ([]byte, error) {
	s.mu.Lock()
	last := s.last
	queues := make([]store.Queue, 0, s.queues.Len())
	s.queues.Scan(func(_ string, q *queue) bool {
		if q.used() {
			queues = append(queues, q.Queue)
		}
		return true
	})
	schedules := make([]store.Schedule, 0, s.ids.n)
	s.names.Scan(func(row *schedule) bool {
		schedules = append(schedules, row.Schedule)
		return true
	})
	jobs := make([]store.Job, 0, s.jobs.n)
	for j := range s.jobs.from(0) {
		jobs = append(jobs, j.Job)
	}
	leases := make([]store.Lease, 0, s.locks.Len())
	s.locks.Scan(func(lock string, l *lease) bool {
		if lock != store.SchedulerLock {
			leases = append(leases, l.Lease)
		}
		return true
	})
	runs, skips := s.runs.save(), s.skips.save()
	s.mu.Unlock()

	before := s.size.Load()
	b := make([]byte, 0, before+before/8)
	b = append(append(b, magic...), snapshotVersion)
	b = appendSequences(b, last)
	b = appendRows(b, queues, appendQueue)
	b = appendRows(b, schedules, appendSchedule)
	b = appendRows(b, jobs, appendJob)
	b = appendRows(b, leases, appendLease)
	b = appendHistory(b, runs, appendRun)
	b = appendHistory(b, skips, appendSkip)
	b = appendUint32(b, checksum(b))
	s.size.Store(int64(len(b)))
	return b, nil
}

func appendRows[T any](b []byte, rows []T, one func([]byte, *T) []byte) []byte {
	b = appendUint(b, uint64(len(rows)))
	for i := range rows {
		b = one(b, &rows[i])
	}
	return b
}

// invalidRow begins the reason of a hold, and the last error of a job, whose
// row broke a rule of its own when it was restored.
const invalidRow = "invalid row: "

// restoreStore makes a store of a snapshot, or of none if it is nil, and of
// the records in log that came after it, of each of which tell is told unless it
// is nil. Its error is a [*SnapshotError].
func restoreStore(now func() store.Instant, limits store.Limits, snapshot, log []byte, journal Journal, tell func(*Record)) (*Store, Recovery, error) {
	s := newStore(now, limits, journal)
	var r Recovery
	if snapshot != nil {
		if err := s.load(snapshot, &r); err != nil {
			return nil, Recovery{}, err
		}
	}
	if err := s.replayLog(log, &r, tell); err != nil {
		return nil, Recovery{}, err
	}
	return s, r, nil
}

// load fills an empty store.
func (s *Store) load(b []byte, r *Recovery) *SnapshotError {
	body := len(b) - checksumSize
	switch {
	case len(b) < len(magic) || string(b[:len(magic)]) != magic:
		return &SnapshotError{Reason: "does not begin like a snapshot"}
	case body < len(magic)+1 || checksum(b[:body]) != uint32At(b[body:]):
		return &SnapshotError{Offset: int64(max(body, 0)), Reason: "wrong checksum"}
	}
	d := &decoder{b: b[:body], at: len(magic)}
	if v := d.byte(); v > snapshotVersion {
		return &SnapshotError{Newer: true, Offset: int64(len(magic)), Reason: "version " + strconv.Itoa(int(v))}
	} else if d.version = v; v == 0 {
		d.fail(len(magic), "unknown version")
	}
	now := s.now()
	s.last = d.sequences()
	each(d, func() { s.loadQueue(d) })
	each(d, func() { s.loadSchedule(d, now, r) })
	each(d, func() { s.loadJob(d, now, r) })
	each(d, func() { s.loadLease(d) })
	s.loadPast(d, r)
	if d.err == nil && d.more() {
		d.fail(d.at, "does not end where it should")
	}
	if reason := s.audit(); reason != "" {
		d.fail(body, reason)
	}
	return d.err
}

func each(d *decoder, one func()) {
	for n := d.count(); n > 0 && d.err == nil; n-- {
		one()
	}
}

func (s *Store) loadQueue(d *decoder) {
	at := d.at
	row := d.queue()
	if d.err != nil {
		return
	}
	if last, _, ok := s.queues.Max(); ok && row.Name <= last {
		d.fail(at, "queues out of order")
		return
	}
	if row.Enqueued == 0 {
		d.fail(at, "queue that was never used")
		return
	}
	s.queue(row.Name).Queue = row
}

func (s *Store) loadSchedule(d *decoder, now store.Instant, r *Recovery) {
	at := d.at
	row := d.schedule()
	if d.err != nil {
		return
	}
	last, ok := s.names.Max()
	switch {
	case ok && row.Name <= last.Name:
		d.fail(at, "schedules out of order")
		return
	case row.ID > s.last.schedule:
		d.fail(at, "schedule id above its sequence")
		return
	case s.ids.find(int64(row.ID)) != nil:
		d.fail(at, "two schedules with one id")
		return
	}
	if rule := invalidSchedule(&row); rule != "" {
		r.Invalid++
		if reason := invalidRow + rule; row.Hold == nil || row.Hold.Reason != reason {
			row.Hold = &store.Hold{Reason: reason, Since: now, Times: 1}
		}
	}
	s.putSchedule(&putSchedule{next: &row})
}

func (s *Store) loadJob(d *decoder, now store.Instant, r *Recovery) {
	at := d.at
	row := d.job()
	if d.err != nil {
		return
	}
	q, ok := s.queues.Get(row.Queue)
	switch {
	case s.jobs.n > 0 && int64(row.ID) <= s.jobs.lastID():
		d.fail(at, "jobs out of order")
		return
	case row.ID > s.last.job:
		d.fail(at, "job id above its sequence")
		return
	case !ok || !q.used():
		d.fail(at, "job of an unknown queue")
		return
	}
	if rule := invalidJob(&row); rule != "" {
		r.Invalid++
		if row.State != store.Dead {
			q.Died++
		}
		// An earlier restore may have buried it, for the first of its faults.
		buried := row.State == store.Dead && row.Since.Valid() && strings.HasPrefix(row.LastError, invalidRow)
		if !buried {
			row.State, row.LastError, row.Since = store.Dead, invalidRow+rule, now
		}
	}
	j := s.newJob(q)
	j.Job, j.Queue = row, q.Name
	*inState(&q.Queue, j.State)++
	s.overlap.count(&j.Job, 0, j.State)
	s.addJob(j)
}

func (s *Store) loadLease(d *decoder) {
	at := d.at
	row := d.lease()
	if d.err != nil {
		return
	}
	last, _, ok := s.locks.Max()
	switch {
	case ok && row.Lock <= last:
		d.fail(at, "locks out of order")
	case row.Term > s.last.term:
		d.fail(at, "term above its sequence")
	case row.Lock == store.SchedulerLock:
		d.fail(at, "lease of the scheduler")
	default:
		s.putLease(&row)
	}
}

// loadPast reads the history; before version 2 there was none.
func (s *Store) loadPast(d *decoder, r *Recovery) {
	if d.version < 2 {
		for row := range s.ids.from(0) {
			s.unknown(&row.Schedule)
		}
		return
	}
	loadHistory(s, &s.runs, d, r, d.savedRun)
	loadHistory(s, &s.skips, d, r, d.savedSkip)
}

// audit answers which rule that goes beyond single rows is broken, or "".
func (s *Store) audit() string {
	if s.names.Len() != s.ids.n {
		return "two schedules with one name"
	}
	broken := ""
	s.queues.Scan(func(_ string, q *queue) bool {
		keys := 0
		for j := q.first; j != nil; j = j.next {
			if j.Key != "" && live(j.State) {
				keys++
			}
			if s.overlap.stuck(j) {
				broken = "two claimed jobs of schedule " + strconv.Quote(j.Schedule) + " that run alone"
				return false
			}
		}
		switch {
		case q.Enqueued != q.Len()+q.Done+q.Cancelled+q.Requeued+q.Purged:
			broken = "counters of queue " + strconv.Quote(q.Name) + " do not add up"
		case keys != len(q.keys):
			broken = "two live jobs with one key in queue " + strconv.Quote(q.Name)
		}
		return broken == ""
	})
	return broken
}
