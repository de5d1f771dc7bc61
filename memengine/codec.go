package memengine

import (
	"unicode/utf8"

	"github.com/tickonce/tickonce/store"
)

// The encoding that snapshots and records share: integers as varints, signed
// ones in zigzag, strings with their length before them. Every value has one
// encoding, and no other is read, so that equal rows have equal bytes.

func appendUint(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendInt(b []byte, v int64) []byte { return appendUint(b, zigzag(v)) }

func zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

// appendInstant wraps around, so that None, the commonest, is 0.
func appendInstant(b []byte, t store.Instant) []byte { return appendUint(b, zigzag(int64(t))+2) }

func appendString[T string | []byte](b []byte, s T) []byte {
	return append(appendUint(b, uint64(len(s))), s...)
}

func appendStamps(b []byte, s store.Stamps) []byte {
	b = appendInt(b, s.VisibilityMS)
	b = appendInt(b, int64(s.BaseBackoffMS))
	return appendInt(b, int64(s.MaxAttempts))
}

func appendSchedule(b []byte, s *store.Schedule) []byte {
	b = appendUint(b, uint64(s.ID))
	b = appendUint(b, uint64(s.Rev))
	b = appendString(b, s.Name)
	b = appendString(b, s.Spec)
	b = appendString(b, s.Queue)
	b = appendString(b, s.Payload)
	b = appendStamps(b, s.Stamps)
	b = appendInt(b, s.ExpiresMS)
	b = appendInt(b, s.CatchUp.WindowMS)
	b = appendInt(b, int64(s.CatchUp.Max))
	b = appendBool(b, s.CatchUp.Newest)
	b = appendInstant(b, s.Anchor)
	b = appendInstant(b, s.Cursor)
	b = appendInstant(b, s.DueAt)
	b = appendInstant(b, s.SetAt)
	b = appendInt(b, int64(s.Priority))
	b = append(b, byte(s.Paused))
	b = appendBool(b, s.Hold != nil)
	if h := s.Hold; h != nil {
		b = appendString(b, h.Reason)
		b = appendInstant(b, h.Since)
		b = appendInt(b, int64(h.Times))
	}
	b = append(b, byte(s.Overlap), s.Breaker, s.Failures)
	b = appendBool(b, s.RunOnce)
	b = appendBool(b, s.AtAnchor)
	b = appendBool(b, s.Rare != nil)
	if r := s.Rare; r != nil {
		b = appendUint(b, uint64(r.Hours.Start))
		b = appendUint(b, uint64(r.Hours.End))
		b = appendString(b, r.Hours.Zone)
		b = appendInt(b, r.TimeoutMS)
	}
	return b
}

func appendJob(b []byte, j *store.Job) []byte {
	b = appendUint(b, uint64(j.ID))
	b = appendString(b, j.Queue)
	b = appendString(b, j.Payload)
	b = appendString(b, j.Key)
	b = appendString(b, j.Schedule)
	b = appendUint(b, uint64(j.ScheduleID))
	b = appendInstant(b, j.FireAt)
	b = appendStamps(b, j.Stamps)
	b = appendInstant(b, j.EnqueuedAt)
	b = appendInstant(b, j.RunAt)
	b = appendInstant(b, j.ExpiresAt)
	b = appendInt(b, int64(j.Priority))
	b = appendInt(b, int64(j.Attempts))
	b = append(b, byte(j.State))
	b = appendString(b, j.Worker)
	b = appendInstant(b, j.Deadline)
	b = appendString(b, j.LastError)
	b = appendInstant(b, j.Since)
	b = appendUint(b, uint64(j.Origin))
	b = appendInt(b, j.TimeoutMS)
	return appendBool(b, j.Alone)
}

// appendQueue writes the counters of what happened; how many jobs are in which
// state is known from the jobs.
func appendQueue(b []byte, q *store.Queue) []byte {
	b = appendString(b, q.Name)
	for _, n := range happened(q) {
		b = appendUint(b, uint64(*n))
	}
	return b
}

func happened(q *store.Queue) [8]*int64 {
	return [...]*int64{
		&q.Enqueued, &q.Claims, &q.Retried, &q.Done,
		&q.Died, &q.Cancelled, &q.Requeued, &q.Purged,
	}
}

func appendLease(b []byte, l *store.Lease) []byte {
	b = appendString(b, l.Lock)
	b = appendString(b, l.Owner)
	b = appendUint(b, uint64(l.Term))
	b = appendInt(b, l.TTLMS)
	return appendInstant(b, l.ExpiresAt)
}

func appendSequences(b []byte, q sequences) []byte {
	b = appendUint(b, uint64(q.record))
	b = appendUint(b, uint64(q.schedule))
	b = appendUint(b, uint64(q.job))
	return appendUint(b, uint64(q.term))
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// decoder reads what the append functions write. After its first error it
// answers zeros.
type decoder struct {
	b    []byte
	at   int
	err  *SnapshotError
	base int64 // the offset of b[0] in what is reported
	log  bool

	version byte // of the encoding
}

// fail notes that the bytes from at on are not what they have to be.
func (d *decoder) fail(at int, reason string) {
	if d.err == nil {
		d.err = &SnapshotError{Journal: d.log, Offset: d.base + int64(at), Reason: reason}
	}
	d.at = len(d.b)
}

func (d *decoder) more() bool { return d.at < len(d.b) }

func (d *decoder) byte() byte {
	if !d.more() {
		d.fail(d.at, "ends too early")
		return 0
	}
	d.at++
	return d.b[d.at-1]
}

func (d *decoder) bool() bool {
	at := d.at
	v := d.byte()
	if v > 1 {
		d.fail(at, "not a boolean")
	}
	return v == 1
}

func (d *decoder) uint() uint64 {
	at := d.at
	var v uint64
	for shift := 0; ; shift += 7 {
		c := d.byte()
		if d.err != nil {
			return 0
		}
		v |= uint64(c&0x7f) << shift
		switch {
		case c >= 0x80 && shift < 63:
		case c == 0 && shift > 0, shift == 63 && c > 1:
			d.fail(at, "not a number as it is written")
			return 0
		default:
			return v
		}
	}
}

func (d *decoder) int() int64 {
	v := d.uint()
	return int64(v>>1) ^ -int64(v&1)
}

func (d *decoder) instant() store.Instant {
	v := d.uint() - 2
	if d.err != nil {
		return 0
	}
	return store.Instant(int64(v>>1) ^ -int64(v&1))
}

// count reads a number that is never negative.
func (d *decoder) count() int64 {
	at := d.at
	v := d.uint()
	if v > 1<<63-1 {
		d.fail(at, "number out of range")
		return 0
	}
	return int64(v)
}

// id reads a number from 1 on.
func (d *decoder) id() int64 {
	at := d.at
	v := d.count()
	if v == 0 {
		d.fail(at, "id is 0")
	}
	return v
}

func (d *decoder) int32() int32   { return narrow[int32](d, d.int) }
func (d *decoder) int16() int16   { return narrow[int16](d, d.int) }
func (d *decoder) uint16() uint16 { return narrow[uint16](d, d.uint) }

// narrow reads a number that is not larger than its type.
func narrow[T int32 | int16 | uint16, V int64 | uint64](d *decoder, read func() V) T {
	at := d.at
	v := read()
	if v != V(T(v)) {
		d.fail(at, "number out of range")
		return 0
	}
	return T(v)
}

func (d *decoder) raw() []byte {
	at := d.at
	n := d.uint()
	if n > uint64(len(d.b)-d.at) {
		d.fail(at, "text is longer than what is left")
		return nil
	}
	d.at += int(n)
	return d.b[d.at-int(n) : d.at]
}

func (d *decoder) string() string { return string(d.raw()) }

func (d *decoder) bytes() []byte {
	b := d.raw()
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}

func (d *decoder) stamps() store.Stamps {
	return store.Stamps{VisibilityMS: d.int(), BaseBackoffMS: d.int32(), MaxAttempts: d.int32()}
}

func (d *decoder) schedule() store.Schedule {
	s := store.Schedule{
		ID:        store.ScheduleID(d.id()),
		Rev:       store.Rev(d.count()),
		Name:      d.string(),
		Spec:      d.string(),
		Queue:     d.string(),
		Payload:   d.bytes(),
		Stamps:    d.stamps(),
		ExpiresMS: d.int(),
		CatchUp:   store.CatchUp{WindowMS: d.int(), Max: d.int32(), Newest: d.bool()},
		Anchor:    d.instant(),
		Cursor:    d.instant(),
		DueAt:     d.instant(),
		SetAt:     d.instant(),
		Priority:  d.int16(),
		Paused:    store.Pause(d.byte()),
	}
	if d.bool() {
		s.Hold = &store.Hold{Reason: d.string(), Since: d.instant(), Times: d.int32()}
	}
	if d.version < 2 {
		s.AtAnchor = s.Cursor == s.Anchor
		return s
	}
	s.Overlap, s.Breaker, s.Failures = store.Overlap(d.byte()), d.byte(), d.byte()
	s.RunOnce, s.AtAnchor = d.bool(), d.bool()
	if d.bool() {
		s.Rare = &store.Rare{
			Hours:     store.Hours{Start: d.uint16(), End: d.uint16(), Zone: d.string()},
			TimeoutMS: d.int(),
		}
	}
	return s
}

func (d *decoder) job() store.Job {
	j := store.Job{
		ID:         store.JobID(d.id()),
		Queue:      d.string(),
		Payload:    d.bytes(),
		Key:        d.string(),
		Schedule:   d.string(),
		ScheduleID: store.ScheduleID(d.count()),
		FireAt:     d.instant(),
		Stamps:     d.stamps(),
		EnqueuedAt: d.instant(),
		RunAt:      d.instant(),
		ExpiresAt:  d.instant(),
		Priority:   d.int16(),
		Attempts:   d.int32(),
		State:      store.State(d.byte()),
		Worker:     d.string(),
		Deadline:   d.instant(),
		LastError:  d.string(),
		Since:      d.instant(),
	}
	if d.version < 2 {
		if j.State == store.Claimed && j.Deadline != store.None { // was not kept: what it was without a heartbeat
			j.Since = j.Deadline.Add(-j.Stamps.VisibilityMS)
		}
		return j
	}
	j.Origin, j.TimeoutMS, j.Alone = store.JobID(d.count()), d.int(), d.bool()
	return j
}

func (d *decoder) queue() store.Queue {
	q := store.Queue{Name: d.string()}
	for _, n := range happened(&q) {
		*n = d.count()
	}
	return q
}

func (d *decoder) lease() store.Lease {
	return store.Lease{
		Lock:      d.string(),
		Owner:     d.string(),
		Term:      store.Term(d.id()),
		TTLMS:     d.int(),
		ExpiresAt: d.instant(),
	}
}

func (d *decoder) sequences() sequences {
	return sequences{
		record:   d.sequence(),
		schedule: store.ScheduleID(d.sequence()),
		job:      store.JobID(d.sequence()),
		term:     store.Term(d.sequence()),
	}
}

// sequence reads a last number, which leaves room for those to come: more than
// a store can ever give, like instants exact in a JavaScript number.
func (d *decoder) sequence() int64 {
	at := d.at
	v := d.count()
	if v > int64(store.MaxInstant) {
		d.fail(at, "sequence out of range")
	}
	return v
}

// invalidSchedule says which rule of its own the row breaks, or "". Its spec
// is the engine's to judge (Q1).
func invalidSchedule(s *store.Schedule) string {
	switch {
	case !validName(s.Name):
		return "name"
	case !validName(s.Queue):
		return "queue"
	case s.Rev < 1:
		return "rev"
	case invalidStamps(&s.Stamps):
		return "stamps"
	case s.ExpiresMS < 0:
		return "expiry"
	case s.CatchUp.WindowMS < 0 || s.CatchUp.Max < 1 || s.CatchUp.Max > 64:
		return "catch-up"
	case !s.Anchor.Valid():
		return "anchor"
	case !s.Cursor.Valid():
		return "cursor"
	case !s.DueAt.Valid() && s.DueAt != store.None:
		return "due-at"
	case !s.SetAt.Valid():
		return "set-at"
	case s.Paused > store.PausedByRunOnce:
		return "pause"
	case s.Overlap > store.BufferOne:
		return "overlap"
	case s.Failures > s.Breaker:
		return "failures"
	case s.Rare != nil && (s.Rare.Hours.Start >= 1440 || s.Rare.Hours.End >= 1440 || !utf8.ValidString(s.Rare.Hours.Zone)):
		return "hours"
	case s.Rare != nil && s.Rare.TimeoutMS < 0:
		return "timeout"
	default:
		return ""
	}
}

// invalidJob says which rule of its own the row breaks, or "".
func invalidJob(j *store.Job) string {
	pending := j.State == store.Pending
	switch {
	case !live(j.State) && j.State != store.Dead:
		return "state"
	case !validName(j.Queue):
		return "queue"
	case invalidStamps(&j.Stamps):
		return "stamps"
	case j.Attempts < 0 || j.Attempts > j.Stamps.MaxAttempts || j.State == store.Claimed && j.Attempts == 0:
		return "attempts"
	case !j.FireAt.Valid() && j.FireAt != store.None:
		return "boundary"
	case !j.EnqueuedAt.Valid():
		return "enqueued-at"
	case !j.RunAt.Valid():
		return "run-at"
	case !j.ExpiresAt.Valid() && j.ExpiresAt != store.None:
		return "expiry"
	case !j.Deadline.Valid() && (j.State == store.Claimed || j.Deadline != store.None):
		return "deadline"
	case pending == j.Since.Valid() || pending && j.Since != store.None:
		return "since"
	case j.TimeoutMS < 0:
		return "timeout"
	default:
		return ""
	}
}

// validName leaves the finer rules of names to the engine.
func validName(s string) bool { return s != "" && utf8.ValidString(s) }

func invalidStamps(s *store.Stamps) bool {
	return s.VisibilityMS <= 0 || s.BaseBackoffMS < 0 || s.MaxAttempts < 1
}
