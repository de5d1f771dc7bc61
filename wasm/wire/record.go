package wire

import (
	"math"
	"slices"
	"time"

	"github.com/tickonce/tickonce"
)

// RecordKind is the kind of a record.
type RecordKind uint32

// The kinds of records. A host passes over those that it does not know.
const (
	RecordFired   RecordKind = iota + 1 // a boundary fired
	RecordBegun                         // a job was handed out: its handler is to be called
	RecordEnded                         // the context of a run has ended: its handler should return
	RecordStopped                       // a worker, or the runner, has ended
	RecordJournal                       // a record of the journal
	RecordEvent                         // an event
)

// Record is one thing that a call put out. A host that keeps a journal stores
// the records of the journal before it acts on anything that the same call put
// out or answered.
//
// Every record is little-endian and begins at a multiple of 8 bytes with its
// kind and its size, both of 4 bytes; the size counts these 8 and what fills
// the record up to a multiple of 8. Instants, ids and numbers of 8 bytes are
// IEEE 754 floats that hold whole numbers; an instant that is absent is NaN.
type Record struct {
	Kind RecordKind

	// Of fired and begun ones.
	Job      tickonce.JobID
	Boundary time.Time
	Schedule string
	Queue    string

	// Of begun ones, beside these.
	Run         int64 // what the host names it by when it ended; 0: it was claimed by a call
	Worker      int32 // that claimed it; 0: a call. Of stopped ones: which; 0: the runner
	Attempt     int32
	MaxAttempts int32
	Priority    int32
	Origin      tickonce.JobID
	Enqueued    time.Time
	RunAt       time.Time
	Deadline    time.Time
	LastError   string
	Payload     []byte

	// Of ended ones, with Run, and of stopped ones, with Worker: why; nil of a
	// clean stop.
	Err *Error

	// Of the journal.
	Data []byte

	// Of events.
	Event *Event
}

// Begun is the record of a job that was claimed.
func Begun(job *tickonce.Job) *Record {
	return &Record{
		Kind: RecordBegun, Job: job.ID, Boundary: job.Boundary, Schedule: job.Schedule,
		Queue: job.Queue, Attempt: int32(job.Attempt), MaxAttempts: int32(job.MaxAttempts), Priority: int32(job.Priority),
		Origin: job.Origin, Enqueued: job.Enqueued, RunAt: job.RunAt, Deadline: job.Deadline, LastError: job.LastError,
		Payload: job.Payload,
	}
}

const headerBytes = 8

func put32(b []byte, v uint32) []byte {
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
}

func put64(b []byte, v float64) []byte {
	bits := math.Float64bits(v)
	return append(b, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24),
		byte(bits>>32), byte(bits>>40), byte(bits>>48), byte(bits>>56))
}

func putAt(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return put64(b, math.NaN())
	}
	return put64(b, float64(t.UnixMilli()))
}

// begin appends the header of a record, and seal sets its size: start is where
// it began.
func begin(b []byte, kind RecordKind) ([]byte, int) {
	return put32(put32(b, uint32(kind)), 0), len(b)
}

func seal(b []byte, start int) []byte {
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	put32(b[start+4:start+4], uint32(len(b)-start))
	return b
}

// appendFired appends a fired record. It is the one of which there are many.
func appendFired(b []byte, f tickonce.Fire) []byte {
	b, start := begin(b, RecordFired)
	b = put64(b, float64(f.Job))
	b = putAt(b, f.Boundary)
	b = put32(b, uint32(len(f.Schedule)))
	b = put32(b, uint32(len(f.Queue)))
	return seal(append(append(b, f.Schedule...), f.Queue...), start)
}

// Append appends the bytes of the record to b, whose length is a multiple of 8.
func (r *Record) Append(b []byte) []byte {
	if r.Kind == RecordFired {
		return appendFired(b, tickonce.Fire{Job: r.Job, Boundary: r.Boundary, Schedule: r.Schedule, Queue: r.Queue})
	}
	b, start := begin(b, r.Kind)
	switch r.Kind {
	case RecordBegun:
		b = put64(b, float64(r.Run))
		b = put64(b, float64(r.Job))
		b = putAt(b, r.Boundary)
		b = put64(b, float64(r.Origin))
		b = putAt(b, r.Enqueued)
		b = putAt(b, r.RunAt)
		b = putAt(b, r.Deadline)
		b = put32(b, uint32(r.Worker))
		b = put32(b, uint32(r.Attempt))
		b = put32(b, uint32(r.MaxAttempts))
		b = put32(b, uint32(r.Priority))
		b = put32(b, uint32(len(r.Queue)))
		b = put32(b, uint32(len(r.Schedule)))
		b = put32(b, uint32(len(r.LastError)))
		b = put32(b, uint32(len(r.Payload)))
		b = append(append(append(append(b, r.Queue...), r.Schedule...), r.LastError...), r.Payload...)
	case RecordEnded, RecordStopped:
		if r.Kind == RecordEnded {
			b = put64(b, float64(r.Run))
		} else {
			b = put64(b, float64(r.Worker))
		}
		var code, message string
		if r.Err != nil {
			code, message = r.Err.Code, r.Err.Message
		}
		b = put32(b, uint32(len(code)))
		b = put32(b, uint32(len(message)))
		b = append(append(b, code...), message...)
	case RecordJournal:
		b = append(put32(b, uint32(len(r.Data))), r.Data...)
	case RecordEvent:
		b = put32(b, 0)
		at := len(b)
		b = encode(b, r.Event, visitEvent)
		put32(b[at-4:at-4], uint32(len(b)-at))
	}
	return seal(b, start)
}

// ParseRecords reads what a call put out, but for the kinds that are passed over.
// The bytes of the records are copied. What is no record is an error, and then
// those before it are answered.
func ParseRecords(b []byte, passOver ...RecordKind) (records []Record, err error) {
	for len(b) > 0 {
		size := 0
		if len(b) >= headerBytes {
			size = int(get32(b[4:]))
		}
		if size < headerBytes || size%8 != 0 || size > len(b) {
			return records, &RequestError{"the records", "are cut or damaged"}
		}
		kind, f := RecordKind(get32(b)), fields{b: b[headerBytes:size]}
		if b = b[size:]; slices.Contains(passOver, kind) {
			continue
		}
		r := Record{Kind: kind}
		if known := f.record(&r); f.bad || len(f.b) >= 8 && known {
			return records, &RequestError{"the records", "are damaged"}
		} else if known {
			records = append(records, r)
		}
	}
	return records, nil
}

func get32(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// fields are those of a record that are yet to be read.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) next(n int) []byte {
	if f.bad = f.bad || n > len(f.b); f.bad {
		return nil
	}
	b := f.b[:n]
	f.b = f.b[n:]
	return b
}

func (f *fields) u32() int {
	if b := f.next(4); b != nil {
		return int(get32(b))
	}
	return 0
}

func (f *fields) float() float64 {
	low := f.u32()
	return math.Float64frombits(uint64(low) | uint64(f.u32())<<32)
}

func (f *fields) whole() int64 {
	v := f.float()
	if v != math.Trunc(v) || math.Abs(v) > 1<<53 { // NaN, too
		f.bad = true
		return 0
	}
	return int64(v)
}

func (f *fields) at() time.Time {
	before := *f
	if v := f.float(); v != v {
		return time.Time{}
	}
	*f = before
	return time.UnixMilli(f.whole()).UTC()
}

func (f *fields) text(n int) string { return string(f.next(n)) }

// record reads the fields of a record, and reports whether its kind is known.
func (f *fields) record(r *Record) bool {
	switch r.Kind {
	case RecordFired:
		r.Job = tickonce.JobID(f.whole())
		r.Boundary = f.at()
		schedule, queue := f.u32(), f.u32()
		r.Schedule, r.Queue = f.text(schedule), f.text(queue)
	case RecordBegun:
		r.Run = f.whole()
		r.Job = tickonce.JobID(f.whole())
		r.Boundary = f.at()
		r.Origin = tickonce.JobID(f.whole())
		r.Enqueued, r.RunAt, r.Deadline = f.at(), f.at(), f.at()
		r.Worker, r.Attempt = int32(f.u32()), int32(f.u32())
		r.MaxAttempts, r.Priority = int32(f.u32()), int32(f.u32())
		queue, schedule, lastError, payload := f.u32(), f.u32(), f.u32(), f.u32()
		r.Queue, r.Schedule, r.LastError = f.text(queue), f.text(schedule), f.text(lastError)
		r.Payload = append([]byte(nil), f.next(payload)...)
	case RecordEnded, RecordStopped:
		if of := f.whole(); r.Kind == RecordEnded {
			r.Run = of
		} else {
			r.Worker = int32(of)
		}
		code, message := f.u32(), f.u32()
		if e := (Error{f.text(code), f.text(message)}); e != (Error{}) {
			r.Err = &e
		}
	case RecordJournal:
		r.Data = append([]byte(nil), f.next(f.u32())...)
	case RecordEvent:
		r.Event = &Event{}
		if text := f.next(f.u32()); f.bad || decode(text, r.Event, visitEvent) != nil {
			f.bad = true
		}
	default:
		return false
	}
	return true
}

var recordNames = [...]string{"", "fired", "begun", "ended", "stopped", "journal", "event"}

func (k RecordKind) String() string {
	if int(k) < len(recordNames) {
		return recordNames[k]
	}
	return "unknown"
}

// Text is the record as JSON, as the conversations have it.
func (r *Record) Text() []byte {
	return encode(nil, r, func(r *Record, o *object) {
		kind := r.Kind.String()
		o.text("kind", &kind)
		whole(o, "run", &r.Run)
		whole(o, "worker", &r.Worker)
		whole(o, "job", &r.Job)
		o.at("boundary", &r.Boundary)
		o.text("schedule", &r.Schedule)
		o.text("queue", &r.Queue)
		whole(o, "attempt", &r.Attempt)
		whole(o, "maxAttempts", &r.MaxAttempts)
		whole(o, "priority", &r.Priority)
		whole(o, "origin", &r.Origin)
		o.at("enqueued", &r.Enqueued)
		o.at("runAt", &r.RunAt)
		o.at("deadline", &r.Deadline)
		o.text("lastError", &r.LastError)
		o.bytes("payload", &r.Payload)
		maybe(o, "error", &r.Err, visitError)
		o.bytes("data", &r.Data)
		maybe(o, "event", &r.Event, visitEvent)
	})
}
