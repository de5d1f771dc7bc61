package memengine

import (
	"hash/crc32"
	"math"
	"slices"
	"sync"
)

// Journal keeps the records of a store (D2). The store calls it under its
// lock, one record for each call that changed something: a journal that waits
// holds up the whole store.
//
// Append adds record to the end of the log, wholly or not at all: after an
// error the log is as it was, or every later Append fails too. It must not
// keep record or call the store. A record is less than 4 GiB long: a call that
// would make a longer one fails, and changes nothing.
//
// The concatenation of all records is the log; a journal adds nothing of its
// own between them.
type Journal interface {
	Append(record []byte) error
}

// MemJournal is a journal in memory. Its zero value is an empty log. It is
// safe for concurrent use.
type MemJournal struct {
	mu  sync.Mutex
	log []byte
}

// Append implements [Journal].
func (j *MemJournal) Append(record []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.log = append(j.log, record...)
	return nil
}

// Bytes answers a copy of the log.
func (j *MemJournal) Bytes() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.log)
}

// A frame is four bytes each of the payload's length, its checksum and the
// checksum of these eight bytes, and then the payload.
const (
	frameSize     = 12
	longestRecord = math.MaxUint32 // with its frame, so that a journal has room for its own
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func appendUint32(b []byte, v uint32) []byte {
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
}

func uint32At(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// putFrame fills in the frame at the head of frame, which ends with its
// payload.
func putFrame(frame []byte) {
	payload := frame[frameSize:]
	h := appendUint32(frame[:0], uint32(len(payload)))
	h = appendUint32(h, checksum(payload))
	appendUint32(h, checksum(h))
}

// Recovery is what a restore found.
type Recovery struct {
	Records int // of the log that were applied
	Skipped int // of the log that the snapshot contained already

	// Offset is where the log's last whole record ends. If there is more, it
	// was torn: dropped, for the reason given. Cut the log there before a
	// journal appends to it.
	Offset int64
	Torn   string // "" if the log ends there

	// Invalid counts the rows of the snapshot that broke a rule of their own
	// and were loaded all the same: a schedule held, a job dead (D1).
	Invalid int
}

// nextRecord answers the payload of the record at the head of log, or why there is
// no whole one, and then how many bytes cannot begin another.
func nextRecord(log []byte) (payload []byte, torn string, skip int) {
	if len(log) < frameSize {
		return nil, "ends within the frame of a record", len(log)
	}
	if checksum(log[:8]) != uint32At(log[8:]) {
		return nil, "no frame of a record", 1
	}
	n := int64(uint32At(log))
	if n > int64(len(log)-frameSize) {
		return nil, "ends within a record", len(log)
	}
	payload = log[frameSize : frameSize+n]
	if checksum(payload) != uint32At(log[4:]) {
		return nil, "record with a wrong checksum", frameSize + int(n)
	}
	return payload, "", 0
}

// replayLog applies a log. Bytes that are no whole record are the torn tail of
// a crash if no whole record follows them anywhere: they are dropped and
// reported (D3). If one follows, the log was damaged later, and is refused.
func (s *Store) replayLog(log []byte, r *Recovery, tell func(*Record)) *SnapshotError {
	for int(r.Offset) < len(log) {
		at := int(r.Offset)
		payload, torn, skip := nextRecord(log[at:])
		if torn != "" {
			for next := at + skip; next < len(log); next += skip {
				if payload, _, skip = nextRecord(log[next:]); payload != nil {
					return &SnapshotError{Journal: true, Offset: int64(at), Reason: torn + ", with whole records after it"}
				}
			}
			r.Torn = torn
			break
		}
		applied, err := s.replay(payload, int64(at+frameSize), tell)
		switch {
		case err != nil:
			return err
		case applied:
			r.Records++
		case r.Records > 0:
			return &SnapshotError{Journal: true, Offset: int64(at), Reason: "record out of order"}
		default:
			r.Skipped++
		}
		r.Offset += int64(frameSize + len(payload))
	}
	if reason := s.audit(); reason != "" {
		return &SnapshotError{Journal: true, Offset: r.Offset, Reason: reason}
	}
	return nil
}
