package fileengine

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tickonce/tickonce/memengine"
)

// Recovery is what [Open] found.
type Recovery struct {
	Created bool // the directory held no state: the engine begins empty
	Records int  // of the logs that were applied
	Invalid int  // rows of the snapshot, see [memengine.Recovery]

	// Dropped are the ends of logs that a crash had left unfinished.
	Dropped []Tail
}

// Tail is the end of a log that was cut off, since it is no whole record.
// Nothing in it was on disk by the policy of [Options.SyncEvery]. It may be a
// write that failed.
type Tail struct {
	File    string
	Offset  int64 // where it began
	Bytes   int64 // its length
	Records int   // whole ones in it, behind one that is not
	Reason  string
}

// contents is the state that a directory holds.
type contents struct {
	id       identity
	snapshot []byte // or nil
	logs     []logFile
	first    uint64 // the generation of the snapshot, or of the first log
}

type logFile struct {
	name       string
	generation uint64
	data       []byte // the whole file
	end        int    // of its last whole record
	synced     int    // what was certainly on disk before that
	tail       *Tail
}

// readDirectory reads the newest snapshot and the logs behind it. A directory
// without either answers no logs.
func readDirectory(dir directory) (*contents, error) {
	names, err := dir.names()
	if err != nil {
		return nil, err
	}
	c := &contents{first: 1}
	present := map[uint64]bool{}
	last := uint64(0)
	for _, name := range names {
		c.first = max(c.first, generationOf(name, snapshotPrefix))
		if g := generationOf(name, logPrefix); g > 0 {
			present[g] = true
			last = max(last, g)
		}
	}
	if err := c.readSnapshot(dir, names); err != nil {
		return nil, err
	}
	if last == 0 && c.snapshot == nil {
		return c, nil
	}
	for g := c.first; g <= max(last, c.first); g++ {
		name := fileName(logPrefix, g)
		if !present[g] {
			return nil, &DamageError{File: name, Found: "there is no such file, nor a snapshot in its place"}
		}
		if err := c.readLog(dir, name, g); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *contents) readSnapshot(dir directory, names []string) error {
	name := fileName(snapshotPrefix, c.first)
	for _, n := range names {
		if n != name {
			continue
		}
		b, err := dir.read(name)
		if err != nil {
			return err
		}
		if c.id, err = checkHeader(name, b, snapshotMagic, c.first); err != nil {
			return err
		}
		c.snapshot = b[headerSize:]
	}
	return nil
}

func (c *contents) readLog(dir directory, name string, generation uint64) error {
	b, err := dir.read(name)
	if err != nil {
		return err
	}
	id, err := checkHeader(name, b, logMagic, generation)
	if err != nil {
		return err
	}
	if c.snapshot == nil && len(c.logs) == 0 {
		c.id = id
	}
	if id != c.id {
		return &DamageError{
			File: name, Offset: int64(magicSize + 4),
			Found: fmt.Sprintf("belongs to store %x, the files before it to store %x", id, c.id),
		}
	}
	l, err := scanLog(name, b)
	l.generation = generation
	c.logs = append(c.logs, l)
	return err
}

// scanLog finds the end of a log with a good header. What is no whole record
// may be what a crash has left of what was not on disk yet. If a whole record
// after it says that it was, the log was damaged later.
func scanLog(name string, b []byte) (logFile, error) {
	l := logFile{name: name, data: b, end: headerSize, synced: headerSize}
	for l.end < len(b) {
		record, before, fault := recordAt(b, l.end)
		if fault == "" {
			l.end += frameSize + len(record)
			l.synced = int(before)
			continue
		}
		synced, records := lastSynced(b, l.end)
		if synced > int64(l.end) {
			return l, l.damage(fault + ", which was on disk when the records after it were written")
		}
		l.tail = &Tail{File: name, Offset: int64(l.end), Bytes: int64(len(b) - l.end), Records: records, Reason: fault}
		break
	}
	return l, nil
}

// damage says that the log is no good where it should go on.
func (l *logFile) damage(found string) error {
	return &DamageError{
		File: l.name, Offset: int64(l.end),
		Found: fmt.Sprintf("%s (cut to %d bytes, and without later logs, it holds the state before that)", found, l.end),
	}
}

// log answers all records, one behind the other.
func (c *contents) log() []byte {
	var all []byte
	for i := range c.logs {
		for record := range c.logs[i].records() {
			all = append(all, record...)
		}
	}
	return all
}

// records yields the whole records, and where they begin.
func (l *logFile) records() func(yield func([]byte, int) bool) {
	return func(yield func([]byte, int) bool) {
		for at := headerSize; at < l.end; {
			record, _, _ := recordAt(l.data, at)
			at += frameSize
			if !yield(record, at) {
				return
			}
			at += len(record)
		}
	}
}

// dropped answers the ends of logs that are no whole records.
func (c *contents) dropped() []Tail {
	var tails []Tail
	for i := range c.logs {
		if t := c.logs[i].tail; t != nil {
			tails = append(tails, *t)
		}
	}
	return tails
}

// nameTails and named have tails, and an error that is of a file, name their
// files by paths.
func nameTails(path string, tails []Tail) []Tail {
	for i := range tails {
		tails[i].File = filepath.Join(path, tails[i].File)
	}
	return tails
}

func named(path string, err error) error {
	var damaged *DamageError
	if errors.As(err, &damaged) {
		damaged.File = filepath.Join(path, damaged.File)
	}
	if errors.Is(err, ErrLocked) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// judge says in terms of the files what was found in the snapshot or in the
// records of log, of which none can be torn in a frame that is whole.
func (c *contents) judge(found memengine.Recovery, err error) error {
	if err == nil && found.Torn != "" {
		err = &memengine.SnapshotError{Journal: true, Offset: found.Offset, Reason: found.Torn}
	}
	return c.locate(err)
}

// locate says in which file, and where in it, the snapshot or a record is no
// good. Records are missing where a log was damaged at its end, if the
// next goes on.
func (c *contents) locate(err error) error {
	var damaged *memengine.SnapshotError
	if !errors.As(err, &damaged) {
		return err
	}
	at := &DamageError{Newer: damaged.Newer, Found: damaged.Reason}
	if !damaged.Journal {
		at.File, at.Offset = fileName(snapshotPrefix, c.first), damaged.Offset+int64(headerSize)
		return at
	}
	rest := damaged.Offset
	for i := range c.logs {
		l := &c.logs[i]
		at.File, at.Offset = l.name, int64(l.end)
		for record, start := range l.records() {
			if rest < int64(len(record)) {
				at.Offset = int64(start) + rest
				return at
			}
			rest -= int64(len(record))
		}
		if l.tail != nil && i < len(c.logs)-1 {
			return l.damage(l.tail.Reason + ", though a later log goes on")
		}
	}
	return at
}

// mend makes the directory as it was read: unfinished ends are cut off, and all
// that is there lasts, as what another process wrote may not yet.
func (c *contents) mend(dir directory) error {
	for i := range c.logs {
		if err := c.logs[i].mend(dir); err != nil {
			return err
		}
	}
	return dir.sync()
}

// mend writes again what may not be on disk. To sync it is not enough: if a sync
// has failed the system may take it for written.
func (l *logFile) mend(dir directory) error {
	f, err := dir.open(l.name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(l.data[l.synced:l.end], int64(l.synced))
	if err == nil && l.tail != nil {
		err = f.Truncate(int64(l.end))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// removeBefore removes what a snapshot has taken the place of, and what was
// not finished. What cannot be removed is left to the next time.
func removeBefore(dir directory, generation uint64) {
	names, _ := dir.names()
	for _, name := range names {
		g := max(generationOf(name, logPrefix), generationOf(name, snapshotPrefix))
		bare, unfinished := strings.CutSuffix(name, temporary)
		unfinished = unfinished && max(generationOf(bare, logPrefix), generationOf(bare, snapshotPrefix)) > 0
		if 0 < g && g < generation || unfinished {
			_ = dir.remove(name)
		}
	}
}
