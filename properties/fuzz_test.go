package properties_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/store"
)

// FuzzSpec: every text is a spec of the grammar, or is refused with a place in
// it and a message (G1–G4).
func FuzzSpec(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) { checkSpec(t, text) })
}

// FuzzScenario: every text is a scenario, which prints as one that is equal,
// or is refused with lines and columns.
func FuzzScenario(f *testing.F) {
	files, err := filepath.Glob("../examples/scenarios/*.sim")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := sim.Parse("fuzz.sim", text)
		if err != nil {
			var mistakes *sim.Mistakes
			require.ErrorAs(t, err, &mistakes)
			require.NotEmpty(t, mistakes.List)
			for _, m := range mistakes.List {
				require.Positive(t, m.Line)
				require.LessOrEqual(t, m.Line, strings.Count(text, "\n")+1)
				require.Positive(t, m.Column)
				require.NotEmpty(t, m.Error())
			}
			return
		}
		require.NoError(t, s.Validate())
		again, err := sim.Parse("again.sim", s.String())
		require.NoError(t, err, s.String())
		require.Equal(t, s, again)
		require.Equal(t, s.String(), again.String())
	})
}

// FuzzSnapshot: bytes under a right checksum are refused, or make an engine
// that is as good as any (D1).
func FuzzSnapshot(f *testing.F) {
	for _, ops := range seeds {
		snapshot, _ := recorded(f, ops)
		f.Add(snapshot[:len(snapshot)-crc32.Size])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		open(t, memengine.Durable{Snapshot: body}, start)
		snapshot := binary.LittleEndian.AppendUint32(slices.Clone(body), checksum(body))
		e, recovery := open(t, memengine.Durable{Snapshot: snapshot}, start)
		if e == nil {
			return
		}
		again, err := e.Snapshot()
		require.NoError(t, err)
		if recovery.Invalid == 0 && snapshot[len("tickonce")] == again[len("tickonce")] { // one version
			require.Equal(t, snapshot, again)
		}
		drive(t, e)
	})
}

// FuzzJournal: a log is used up to its torn tail, or refused (D3).
func FuzzJournal(f *testing.F) {
	for _, ops := range seeds {
		_, log := recorded(f, ops)
		f.Add(log)
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		for _, log := range [][]byte{log, resealed(log)} {
			e, recovery := open(t, memengine.Durable{Log: log}, start)
			if e == nil {
				continue
			}
			require.LessOrEqual(t, recovery.Offset, int64(len(log)))
			require.Equal(t, recovery.Offset < int64(len(log)), recovery.Torn != "")
			drive(t, e)
		}
	})
}

// seeds are histories after which a store has rows of every kind.
var seeds = [][]operation{
	nil,
	{
		schedule{Name: "a", Every: "1s", Queue: "mail", Expires: span(time.Minute)},
		schedule{Name: "b", Every: "1h", Queue: "ops", CatchUp: "2 in 1 min", Anchor: span(day)},
		move{span(3 * time.Second)},
		rest{},
		pause{"b"},
	},
	{
		enqueue{Queue: "mail", Key: "key", MaxAttempts: 1, Visibility: span(10 * time.Millisecond), SizeBytes: 3},
		enqueue{Queue: "mail", Priority: -1, Expires: span(time.Second), Delay: span(time.Second)},
		claim{"mail", 1},
		settle{"fail", 0},
		enqueue{Queue: "mail"},
		claim{"mail", 1},
		lock{"door", "ann", span(time.Hour)},
		requeue{0},
		unschedule{"a"},
	},
}

// recorded plays a history and answers its snapshot and its log.
func recorded(f *testing.F, ops []operation) (snapshot, log []byte) {
	w := &world{t: f, clock: &clock{now: start}}
	var journal memengine.MemJournal
	e, _, err := memengine.Open(w.config(tickonce.Config{}), memengine.Durable{Journal: &journal})
	require.NoError(f, err)
	w.store = e.Store()
	w.staff(e.Engine)
	for _, o := range ops {
		o.play(w)
	}
	snapshot, err = e.Snapshot()
	require.NoError(f, err)
	return snapshot, journal.Bytes()
}

// restored is the snapshot of what was restored from a snapshot, and how many
// of its rows broke a rule of their own.
func restored(t *testing.T, snapshot []byte, at time.Time) (again []byte, invalid int) {
	e, recovery := open(t, memengine.Durable{Snapshot: snapshot}, at)
	require.NotNil(t, e)
	again, err := e.Snapshot()
	require.NoError(t, err)
	return again, recovery.Invalid
}

// open opens an engine, or checks that it is refused as it should be; neither
// may take more memory than the bytes are worth.
func open(t *testing.T, d memengine.Durable, at time.Time) (*memengine.Engine, memengine.Recovery) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e, recovery, err := memengine.Open(tickonce.Config{Clock: &clock{now: at}, Seed: 1, Owner: "engine"}, d)
	runtime.ReadMemStats(&after)
	require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20+1<<10*(len(d.Snapshot)+len(d.Log))))
	if err != nil {
		require.ErrorIs(t, err, tickonce.ErrSnapshot)
		var damaged *memengine.SnapshotError
		require.ErrorAs(t, err, &damaged)
		require.NotEmpty(t, damaged.Error())
		require.Nil(t, e)
		return nil, recovery
	}
	return e, recovery
}

// drive uses an engine that came from anywhere: whatever its rows are, its
// calls work, and its snapshot is stable once a restore has dealt with the rows
// that break a rule of their own.
func drive(t *testing.T, e *memengine.Engine) {
	first, err := e.Snapshot()
	require.NoError(t, err)
	second, invalid := restored(t, first, start)
	if invalid == 0 {
		require.True(t, bytes.Equal(first, second), "the snapshot of what was restored is another one")
	}
	third, _ := restored(t, second, start.Add(time.Second))
	require.True(t, bytes.Equal(second, third), "what was restored changes at every restore")

	runner := e.NewRunner()
	for range 20 {
		_, _, err := runner.Step(ctx)
		require.NoError(t, err)
	}
	for q, err := range e.Queues(ctx) {
		require.NoError(t, err)
		require.Equal(t, q.Enqueued, q.Pending+q.Claimed+q.Dead+q.Done+q.Cancelled+q.Requeued+q.Purged)
		rows := make([]store.Job, 5)
		claim, err := e.Store().Claim(ctx, q.Name, "worker", rows)
		require.NoError(t, err)
		for i := range rows[:claim.N] {
			out := make([]bool, 1)
			_, err := e.Store().Settle(ctx, []store.Settle{{Job: rows[i].ID, Attempt: rows[i].Attempts, To: store.Done}}, out)
			require.NoError(t, err)
		}
	}
	for s, err := range e.Schedules(ctx) {
		require.NoError(t, err)
		_, err = e.Pause(ctx, s.Name)
		if err == nil {
			_, err = e.Resume(ctx, s.Name, tickonce.ResumeOptions{})
		}
		if err != nil {
			require.ErrorIs(t, err, tickonce.ErrInvalidName) // which a row from elsewhere may have
		}
	}
	last, err := e.Snapshot()
	require.NoError(t, err)
	if !usedUp(first) {
		restored(t, last, start)
	}
}

// usedUp reports whether the snapshot's sequences leave no ids to give; they
// stand behind its first nine bytes. No engine comes to it by itself.
func usedUp(snapshot []byte) bool {
	const sequences, most = 4, 1 << 62
	used := false
	at := 9
	for range sequences {
		last, n := binary.Uvarint(snapshot[at:])
		at += n
		used = used || last > most
	}
	return used
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// resealed is the log with right checksums, as far as its frames lead: each is
// the payload's length, its checksum and the checksum of both, then the
// payload.
func resealed(log []byte) []byte {
	const frame = 12
	sealed := slices.Clone(log)
	for rest := sealed; len(rest) >= frame; {
		n := int(binary.LittleEndian.Uint32(rest))
		if n > len(rest)-frame {
			break
		}
		binary.LittleEndian.PutUint32(rest[4:], checksum(rest[frame:frame+n]))
		binary.LittleEndian.PutUint32(rest[8:], checksum(rest[:8]))
		rest = rest[frame+n:]
	}
	return sealed
}
