package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	_ "modernc.org/sqlite"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/fileengine"
)

const (
	diskSchedules = 10_000
	diskTicks     = 10  // of a repetition
	diskEnqueues  = 100 // of a repetition
)

// keeper is a way to keep schedules and jobs, the first of them in memory
// alone.
type keeper struct {
	name string
	open func(w *workload, dir string) (kept, error)
}

var keepers = []keeper{
	{"memory", openMemory},
	{"fileengine, not synced", openFiles(fileengine.Options{SyncEvery: -1})},
	{"SQLite, not synced", openSQLite("OFF")},
	{"fileengine", openFiles(fileengine.Options{})},
	{"SQLite", openSQLite("FULL")},
}

// kept is a keeper at work.
type kept interface {
	run
	enqueue() error // one job, in a write of its own
	close() error
}

// measureDisk measures fires in ticks of about 1,000, and jobs that are enqueued
// one by one, by the time on the wall: most of it is waiting for the disk.
func measureDisk(n, repetitions int) (rows []row, err error) {
	w := newWorkload(n)
	at := make([]kept, len(keepers))
	defer func() {
		for _, k := range at {
			if k != nil {
				err = errors.Join(err, k.close())
			}
		}
	}()
	for i, k := range keepers {
		dir, err := os.MkdirTemp("", "bench")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if at[i], err = k.open(w, dir); err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
	}
	fires, enqueues := make([]sample, len(keepers)), make([]sample, len(keepers))
	nowMS := int64(epoch)
	for range repetitions {
		runtime.GC()
		fired := -1
		for i, k := range at {
			spent, n, err := tickFor(k, nowMS, w.stepMS)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", keepers[i].name, err)
			}
			if fired >= 0 && n != fired {
				return nil, fmt.Errorf("%s fired %d times, %s %d times", keepers[i].name, n, keepers[0].name, fired)
			}
			fired = n
			fires[i].add(spent, n)

			begin := time.Now()
			for range diskEnqueues {
				if err := k.enqueue(); err != nil {
					return nil, fmt.Errorf("%s: %w", keepers[i].name, err)
				}
			}
			enqueues[i].add(time.Since(begin), diskEnqueues)
			if _, err := k.drain(); err != nil {
				return nil, fmt.Errorf("%s: %w", keepers[i].name, err)
			}
		}
		nowMS += diskTicks * w.stepMS
	}
	for _, m := range []struct {
		what      string
		schedules int
		samples   []sample
	}{{"fire, kept", n, fires}, {"enqueue, kept", 0, enqueues}} {
		for i, k := range keepers {
			r := newRow(m.what, m.schedules, k.name, m.samples[i])
			if i > 0 {
				r.compare(keepers[0].name, m.samples[i].over(m.samples[0]))
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// tickFor lets some ticks pass. Only the fires are timed.
func tickFor(k kept, nowMS, stepMS int64) (spent time.Duration, fires int, err error) {
	for range diskTicks {
		nowMS += stepMS
		begin := time.Now()
		err := k.fire(nowMS)
		spent += time.Since(begin)
		if err != nil {
			return 0, 0, err
		}
		n, err := k.drain()
		if err != nil {
			return 0, 0, err
		}
		fires += n
	}
	return spent, fires, nil
}

// keptEngine is an engine in memory, of which something may be kept.
type keptEngine struct {
	*engineRun
	end func() error
}

func (e keptEngine) close() error { return e.end() }

func (e keptEngine) enqueue() error { return enqueueJobs(e.engine, 1) }

func openMemory(w *workload, _ string) (kept, error) {
	r, err := openEngine(w)
	if err != nil {
		return nil, err
	}
	return keptEngine{r.(*engineRun), func() error { return nil }}, nil
}

// openFiles opens an engine that is kept in files. The schedules are put there
// without syncs.
func openFiles(o fileengine.Options) func(*workload, string) (kept, error) {
	return func(w *workload, dir string) (kept, error) {
		c := &clock{epoch}
		config := tickonce.Config{Clock: c, Seed: 1, Owner: "bench", Batch: batch, LeaseTTL: time.Hour}
		e, _, err := fileengine.Open(dir, config, fileengine.Options{SyncEvery: -1})
		if err != nil {
			return nil, err
		}
		err = register(e.Engine, w)
		if err = errors.Join(err, e.Close()); err != nil {
			return nil, err
		}
		if e, _, err = fileengine.Open(dir, config, o); err != nil {
			return nil, err
		}
		return keptEngine{&engineRun{clock: c, engine: e.Engine}, e.Close}, nil
	}
}

// sqlite does in tables what the engine does: a tick reads what is due, and in
// one transaction moves the cursors and inserts the jobs.
type sqlite struct {
	db                            *sql.DB
	due, advance, insert, removed *sql.Stmt
}

const sqliteSchema = `
CREATE TABLE schedules (id INTEGER PRIMARY KEY, name TEXT UNIQUE, every INTEGER, cursor INTEGER, payload BLOB);
CREATE INDEX due ON schedules (cursor, name);
CREATE TABLE jobs (id INTEGER PRIMARY KEY, queue TEXT, schedule INTEGER, boundary INTEGER, run_at INTEGER, payload BLOB);
`

func openSQLite(synchronous string) func(*workload, string) (kept, error) {
	return func(w *workload, dir string) (kept, error) {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous("+synchronous+")")
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		s := &sqlite{db: db}
		if err := s.fill(w); err != nil {
			return nil, errors.Join(err, db.Close())
		}
		return s, nil
	}
}

func (s *sqlite) fill(w *workload) error {
	if _, err := s.db.Exec(sqliteSchema); err != nil {
		return err
	}
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, t := range w.schedules {
		if _, err := tx.Exec("INSERT INTO schedules (name, every, cursor, payload) VALUES (?, ?, ?, ?)", t.name, t.intervalMS, t.firstMS, payload); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&s.due, "SELECT id, every, cursor, payload FROM schedules WHERE cursor <= ? ORDER BY cursor, name LIMIT ?"},
		{&s.advance, "UPDATE schedules SET cursor = ? WHERE id = ?"},
		{&s.insert, "INSERT INTO jobs (queue, schedule, boundary, run_at, payload) VALUES (?, ?, ?, ?, ?)"},
		{&s.removed, "DELETE FROM jobs"},
	} {
		if *p.stmt, err = s.db.Prepare(p.text); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqlite) fire(nowMS int64) error {
	for {
		n, err := s.tick(nowMS)
		if err != nil || n < batch {
			return err
		}
	}
}

// tick fires one boundary of each of the first schedules that are due.
func (s *sqlite) tick(nowMS int64) (n int, err error) {
	tx, err := s.db.Begin()
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	type move struct {
		id, every, cursor int64
		payload           []byte
	}
	var moves []move
	rows, err := tx.Stmt(s.due).Query(nowMS, batch)
	if err != nil {
		return 0, err
	}
	for rows.Next() {
		var m move
		if err := rows.Scan(&m.id, &m.every, &m.cursor, &m.payload); err != nil {
			return 0, errors.Join(err, rows.Close())
		}
		moves = append(moves, m)
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	advance, insert := tx.Stmt(s.advance), tx.Stmt(s.insert)
	for _, m := range moves {
		if _, err := advance.Exec(m.cursor+m.every, m.id); err != nil {
			return 0, err
		}
		if _, err := insert.Exec(queueName, m.id, m.cursor, nowMS, m.payload); err != nil {
			return 0, err
		}
	}
	return len(moves), tx.Commit()
}

func (s *sqlite) enqueue() error {
	_, err := s.insert.ExecContext(context.Background(), queueName, nil, nil, int64(epoch), payload)
	return err
}

func (s *sqlite) drain() (int, error) {
	result, err := s.removed.Exec()
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

func (s *sqlite) payloadBytes() int { return len(payload) }

func (s *sqlite) close() error { return s.db.Close() }
