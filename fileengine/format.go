package fileengine

import (
	"encoding/binary"
	"hash/crc32"
	"strconv"
	"strings"
)

// Every file begins with a header: the magic of its kind, the version, the
// identity of the store, the generation and the checksum of these. A later
// version may change what comes after the header, not the header.
const (
	logMagic      = "tick-log"
	snapshotMagic = "ticksnap"
	magicSize     = len(logMagic)
	version       = 1
	generationAt  = magicSize + 4 + len(identity{})
	headerSize    = generationAt + 8 + 4
)

// In a log each record follows a frame: the record's length, how much of the
// log was certainly on disk when the record was written, the record's checksum
// and that of the frame.
//
// The frame's checksum begins with the header's and with where the frame is, so
// that bytes count as a record only in their own place: not in another store's
// log, and not where a payload holds a copy of a log.
const frameSize = 4 + 8 + 4 + 4

// identity tells stores apart. It is drawn when a directory is filled.
type identity [16]byte

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// header answers the header of a file.
func header(magic string, id identity, generation uint64) []byte {
	b := make([]byte, 0, headerSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = append(b, id[:]...)
	b = binary.LittleEndian.AppendUint64(b, generation)
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

// sum answers the checksum of a header.
func sum(header []byte) uint32 { return binary.LittleEndian.Uint32(header[headerSize-4:]) }

// generationIn answers the generation in a header.
func generationIn(header []byte) uint64 { return binary.LittleEndian.Uint64(header[generationAt:]) }

// checkHeader answers the identity in the header of a file.
func checkHeader(name string, b []byte, magic string, generation uint64) (id identity, err error) {
	damaged := func(at int, found string) (identity, error) {
		return id, &DamageError{File: name, Offset: int64(at), Found: found}
	}
	switch {
	case len(b) < headerSize:
		return damaged(len(b), "ends within its header")
	case string(b[:magicSize]) != magic:
		return damaged(0, "does not begin like the file that its name says")
	case checksum(b[:headerSize-4]) != sum(b):
		return damaged(headerSize-4, "header with a wrong checksum")
	}
	if v := binary.LittleEndian.Uint32(b[magicSize:]); v > version {
		return id, &DamageError{File: name, Offset: int64(magicSize), Newer: true, Found: "version " + strconv.FormatUint(uint64(v), 10)}
	} else if v != version {
		return damaged(magicSize, "unknown version")
	}
	copy(id[:], b[magicSize+4:])
	if g := generationIn(b); g != generation {
		return damaged(generationAt, "is number "+strconv.FormatUint(g, 10)+", not what its name says")
	}
	return id, nil
}

// appendRecord appends a record in its frame, to be written at a place of the
// log with the header's checksum.
func appendRecord(b, record []byte, head uint32, at, synced int64) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(record)))
	b = binary.LittleEndian.AppendUint64(b, uint64(synced))
	b = binary.LittleEndian.AppendUint32(b, checksum(record))
	b = binary.LittleEndian.AppendUint32(b, frameSum(b[start:], head, at))
	return append(b, record...)
}

// frameSum answers the checksum of a frame, which ends with it or before it.
func frameSum(frame []byte, head uint32, at int64) uint32 {
	var place [8]byte
	binary.LittleEndian.PutUint64(place[:], uint64(at))
	return crc32.Update(crc32.Update(head, castagnoli, place[:]), castagnoli, frame[:frameSize-4])
}

// recordAt answers the record at a place of a log, and how much was on disk
// before it; or why there is no whole one.
func recordAt(log []byte, at int) (record []byte, synced int64, fault string) {
	if len(log)-at < frameSize {
		return nil, 0, "ends within the frame of a record"
	}
	frame := log[at : at+frameSize]
	length := int64(binary.LittleEndian.Uint32(frame))
	synced = int64(binary.LittleEndian.Uint64(frame[4:]))
	switch {
	case synced < int64(headerSize) || synced > int64(at) || // spares most checksums where there is no frame
		frameSum(frame, sum(log), int64(at)) != binary.LittleEndian.Uint32(frame[frameSize-4:]):
		return nil, 0, "no frame of a record"
	case length > int64(len(log)-at-frameSize):
		return nil, 0, "ends within a record"
	}
	record = log[at+frameSize : at+frameSize+int(length)]
	if checksum(record) != binary.LittleEndian.Uint32(frame[12:]) {
		return nil, 0, "record with a wrong checksum"
	}
	return record, synced, ""
}

// lastSynced answers the most that any whole record after a place says was on
// disk before it, and how many such records there are.
func lastSynced(log []byte, after int) (synced int64, records int) {
	for at := after + 1; at <= len(log)-frameSize; at++ {
		if record, s, fault := recordAt(log, at); fault == "" {
			synced, records = max(synced, s), records+1
			at += frameSize + len(record) - 1
		}
	}
	return synced, records
}

const (
	logPrefix      = "log-"
	snapshotPrefix = "snapshot-"
	temporary      = ".tmp"
	lockName       = "lock"
)

func fileName(prefix string, generation uint64) string {
	digits := strconv.FormatUint(generation, 10)
	return prefix + strings.Repeat("0", max(0, 8-len(digits))) + digits
}

// generationOf answers the generation in the name of a file, or 0.
func generationOf(name, prefix string) uint64 {
	digits, _ := strings.CutPrefix(name, prefix)
	generation, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || fileName(prefix, generation) != name {
		return 0
	}
	return generation
}
