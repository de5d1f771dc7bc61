package memengine

import (
	"bytes"
	"slices"

	"github.com/tickonce/tickonce/store"
)

// A record is what one call changed: a version, the sequences, the operation
// and its now, and the changed rows, each behind a tag. Up to version 2 its
// version is that of the rows' encoding, as in a snapshot; 3 leaves out payloads
// that are there already, so that a record is not long because of what was only
// claimed, settled, or fired.
const recordVersion = 3

const (
	tagPutSchedule = iota + 1
	tagRemoveSchedule
	tagPutJob
	tagDropJob
	tagPutQueue
	tagPutLease
	tagDropLease
	tagRun
	tagSkip
	tagKeepSchedule // a put of a row with the payload that the one of its name had
	tagKeepJob
	tagFireJob // a put of a new job with the payload that its schedule had
)

// appendRecord appends the record of the changes in its frame.
func (s *Store) appendRecord(b []byte) []byte {
	c := &s.c
	start := len(b)
	b = append(b, make([]byte, frameSize)...)
	b = append(b, recordVersion)
	b = appendSequences(b, c.last)
	b = append(b, byte(c.op))
	b = appendInstant(b, c.now)
	for _, row := range c.removed {
		b = appendUint(append(b, tagRemoveSchedule), uint64(row.ID))
	}
	for i := range c.put {
		tag, next := byte(tagPutSchedule), c.put[i].after()
		row := c.put[i].row
		if row == nil {
			row = s.named(next.Name)
		}
		if row != nil && bytes.Equal(row.Payload, next.Payload) {
			tag, next.Payload = tagKeepSchedule, nil
		}
		b = appendSchedule(append(b, tag), &next)
	}
	for _, j := range c.gone {
		b = appendUint(append(b, tagDropJob), uint64(j.ID))
	}
	for i := range c.turned {
		next := c.turned[i].next
		next.Payload = nil
		b = appendJob(append(b, tagKeepJob), &next)
	}
	for _, j := range c.born {
		tag, next := byte(tagPutJob), j.Job
		if row := s.ids.find(int64(j.ScheduleID)); row != nil && next.Payload != nil && bytes.Equal(row.Payload, next.Payload) {
			tag, next.Payload = tagFireJob, nil
		}
		b = appendJob(append(b, tag), &next)
	}
	for _, q := range c.queues {
		b = appendQueue(append(b, tagPutQueue), &q.next)
	}
	for _, lock := range c.dropped {
		if lock != store.SchedulerLock {
			b = appendString(append(b, tagDropLease), lock)
		}
	}
	for i := range c.granted {
		if l := &c.granted[i]; l.Lock != store.SchedulerLock {
			b = appendLease(append(b, tagPutLease), l)
		}
	}
	for i := range c.runs {
		b = appendRun(append(b, tagRun), &c.runs[i], 0)
	}
	for i := range c.skips {
		b = appendSkip(append(b, tagSkip), &c.skips[i], 0)
	}
	putFrame(b[start:])
	return b
}

// replay applies the record in payload, whose first byte is at offset in the
// log. It answers false if the record is contained already.
func (s *Store) replay(payload []byte, offset int64, tell func(*Record)) (bool, *SnapshotError) {
	d := &decoder{b: payload, base: offset, log: true}
	if v := d.byte(); v > recordVersion {
		return false, &SnapshotError{Journal: true, Offset: offset, Newer: true, Reason: "record of a newer version"}
	} else if d.version = v; v == 0 {
		d.fail(0, "unknown version")
	}
	last := d.sequences()
	op := op(d.byte())
	now := d.instant()
	switch {
	case d.err != nil:
		return false, d.err
	case op == 0 || int(op) >= len(opNames):
		d.fail(0, "unknown operation")
	case last.record <= s.last.record:
		return false, nil
	case last.record > s.last.record+1:
		d.fail(0, "the records before it are missing")
	case last.schedule < s.last.schedule || last.job < s.last.job || last.term < s.last.term:
		d.fail(0, "a sequence falls")
	}
	c := s.stage(op, now)
	given := c.last
	c.last = last
	for d.more() {
		s.stageRow(c, d, &given)
	}
	if d.err != nil {
		return false, d.err
	}
	c.unknown = d.version < 2
	if tell != nil {
		tell(s.record(frameSize + len(payload)))
	}
	s.apply()
	return true, nil
}

// stageRow stages the next changed row of a record. given are the ids that
// are taken.
func (s *Store) stageRow(c *changes, d *decoder, given *sequences) {
	at := d.at
	bad := func(reason string) {
		if reason != "" {
			d.fail(at, reason)
		}
	}
	switch tag := d.byte(); tag {
	case tagRemoveSchedule:
		row := s.ids.find(d.id())
		switch {
		case d.err != nil:
		case row == nil || row.staged != 0:
			bad("removes a schedule that is not there")
		default:
			c.remove(row)
		}
	case tagPutSchedule, tagKeepSchedule:
		if next := d.schedule(); d.err == nil {
			bad(s.stageSchedule(c, tag, &next, given))
		}
	case tagDropJob:
		j := s.jobs.find(d.id())
		switch {
		case d.err != nil:
		case j == nil || j.staged != 0:
			bad("drops a job that is not there")
		default:
			c.end(j)
		}
	case tagPutJob, tagKeepJob, tagFireJob:
		if next := d.job(); d.err == nil {
			bad(s.stageJob(c, tag, &next, given))
		}
	case tagPutQueue:
		row := d.queue()
		if d.err != nil {
			return
		}
		next := c.counters(s.queue(row.Name))
		for i, n := range happened(next) {
			*n = *happened(&row)[i]
		}
	case tagDropLease:
		lock := d.string()
		if d.err == nil {
			c.dropped = append(c.dropped, lock)
		}
	case tagPutLease:
		l := d.lease()
		switch {
		case d.err != nil:
		case l.Term > c.last.term:
			bad("term above its sequence")
		default:
			c.granted = append(c.granted, l)
		}
	case tagRun:
		run, id, _, broken := d.savedRun()
		switch {
		case d.err != nil:
		case id != 0 || broken != "":
			bad("run that is none")
		default:
			c.runs = append(c.runs, run)
		}
	case tagSkip:
		skip, id, _, broken := d.savedSkip()
		switch {
		case d.err != nil:
		case id != 0 || broken != "":
			bad("skip that is none")
		default:
			c.skips = append(c.skips, skip)
		}
	default:
		bad("unknown kind of row")
	}
}

// stageSchedule stages a row that was put, and answers why it cannot be one, or "".
func (s *Store) stageSchedule(c *changes, tag byte, next *store.Schedule, given *sequences) string {
	row, old := s.ids.find(int64(next.ID)), s.named(next.Name)
	if tag == tagKeepSchedule {
		if old == nil || next.Payload != nil {
			return "keeps a payload that is not there"
		}
		next.Payload = old.Payload
	}
	switch {
	case row != nil && (row.staged != 0 || row.Name != next.Name):
		return "changes a schedule that is not there"
	case row != nil:
		c.putOver(row, putSchedule{row: row, next: next})
		return ""
	case next.ID <= given.schedule || next.ID > c.last.schedule:
		return "schedule id out of sequence"
	case old != nil && !slices.Contains(c.removed, old):
		return "two schedules with one name"
	}
	given.schedule = next.ID
	c.put = append(c.put, putSchedule{next: next})
	return ""
}

// stageJob stages a row that was put, and answers why it cannot be one, or "".
func (s *Store) stageJob(c *changes, tag byte, next *store.Job, given *sequences) string {
	if !live(next.State) && next.State != store.Dead {
		return "unknown state of a job"
	}
	j := s.jobs.find(int64(next.ID))
	switch row := s.ids.find(int64(next.ScheduleID)); {
	case tag == tagPutJob:
	case tag == tagKeepJob && j != nil && next.Payload == nil:
		next.Payload = j.Payload
	case tag == tagFireJob && j == nil && row != nil && next.Payload == nil:
		next.Payload = row.Payload
	default:
		return "keeps a payload that is not there"
	}
	switch {
	case j != nil && (j.staged != 0 || !sameJob(&j.Job, next)):
		return "changes a job that is not there"
	case j != nil:
		c.turn(j, *next)
		return ""
	case next.ID <= given.job || next.ID > c.last.job:
		return "job id out of sequence"
	}
	given.job = next.ID
	j = s.newJob(s.queue(next.Queue))
	j.Job, j.Queue = *next, j.q.Name
	c.bear(j)
	return ""
}

// sameJob reports whether b may be a later row of the job a.
func sameJob(a, b *store.Job) bool {
	return a.Queue == b.Queue && a.Key == b.Key && a.Schedule == b.Schedule &&
		a.ScheduleID == b.ScheduleID && a.Origin == b.Origin && a.Alone == b.Alone
}
