package properties_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
)

// drawAnything draws an operation of any kind but a renewal of a lock, which no
// journal keeps (D6).
var drawAnything = either(drawTicking, drawTicking, drawJobs, drawJobs, drawJobs, drawJobs, drawJobs, drawLock)

// journal is one in memory that can be made to fail.
type journal struct {
	memengine.MemJournal
	broken bool
}

var errBroken = errors.New("disk full")

func (j *journal) Append(record []byte) error {
	if j.broken {
		return errBroken
	}
	return j.MemJournal.Append(record)
}

// durable is a world whose engine keeps a journal.
type durable struct {
	*world
	engine  *memengine.Engine
	journal *journal
}

// openDurable begins a world, with runners to come, at what is durable.
func openDurable(t *rapid.T, c *clock, snapshot, log []byte) (*durable, memengine.Recovery) {
	d := &durable{world: &world{t: t, clock: c}, journal: new(journal)}
	require.NoError(t, d.journal.Append(log))
	var recovery memengine.Recovery
	var err error
	d.engine, recovery, err = memengine.Open(d.config(tickonce.Config{StandBy: true}), memengine.Durable{
		Snapshot: snapshot, Log: log, Journal: d.journal,
	})
	require.NoError(t, err)
	d.store = d.engine.Store()
	d.staff(d.engine.Engine, d.engine.Engine)
	return d, recovery
}

func TestI11D1D3WhatIsDurableIsTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, _ := openDurable(t, &clock{now: start}, nil, nil)
		snapshots := [][]byte{nil}
		t.Repeat(map[string]func(*rapid.T){
			"play": func(t *rapid.T) { draw(t, drawAnything).play(d.world) },
			"restore": func(t *rapid.T) {
				now := d.snapshot()
				snapshots = append(snapshots, now)
				restored, err := memengine.Restore(d.config(tickonce.Config{}), now)
				require.NoError(t, err)
				again, err := restored.Snapshot()
				require.NoError(t, err)
				require.Equal(t, now, again)
			},
			"replay a torn log": func(t *rapid.T) {
				log := d.journal.Bytes()
				cut := rapid.IntRange(0, len(log)).Draw(t, "cut")
				tail := make([]byte, rapid.IntRange(0, len(log)-cut).Draw(t, "zeros behind it"))
				end := append(log[:cut:cut], tail...)
				torn, before := openDurable(t, d.clock, nil, end)
				require.True(t, bytes.HasPrefix(log, end[:before.Offset]), "used what was never written")
				require.Equal(t, before.Offset < int64(len(end)), before.Torn != "")

				whole, after := openDurable(t, d.clock, torn.snapshot(), log)
				require.Equal(t, before.Records, after.Skipped)
				require.Equal(t, d.snapshot(), whole.snapshot())
			},
		})
		for _, snapshot := range snapshots {
			replayed, recovery := openDurable(t, d.clock, snapshot, d.journal.Bytes())
			require.Empty(t, recovery.Torn)
			require.Zero(t, recovery.Invalid)
			require.Equal(t, d.snapshot(), replayed.snapshot())
		}
	})
}

// An engine that begins from what is durable goes on as the one before would
// have: so nothing that matters is missing from it.
func TestD1D3D6ARestoredEngineGoesOnLikeTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, _ := openDurable(t, &clock{now: start}, nil, nil)
		for range rapid.IntRange(0, 20).Draw(t, "operations before") {
			draw(t, drawAnything).play(a.world)
		}
		snapshot, log := a.snapshot(), a.journal.Bytes()
		if rapid.Bool().Draw(t, "from the journal") {
			snapshot = nil
		}
		b, _ := openDurable(t, &clock{now: a.clock.now}, snapshot, log)

		// What dies with an engine: its runners, their lease, its handles.
		a.staff(a.engines...)
		b.run = a.run
		a.claims, a.locks = nil, nil
		for _, lock := range []string{"attic", "__alkstore_scheduler"} {
			a.free(lock)
			b.free(lock)
		}
		for range rapid.IntRange(0, 20).Draw(t, "operations after") {
			o := draw(t, drawAnything)
			require.Equal(t, o.play(a.world), o.play(b.world))
		}
		require.Equal(t, a.snapshot(), b.snapshot())
	})
}

// While the journal refuses, nothing changes, whatever is called.
func TestI7D2R5ABrokenJournalChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, _ := openDurable(t, &clock{now: start}, nil, nil)
		t.Repeat(map[string]func(*rapid.T){
			"play": func(t *rapid.T) { draw(t, drawAnything).play(d.world) },
			"play in vain": func(t *rapid.T) {
				before := d.snapshot()
				d.journal.broken = true
				draw(t, drawAnything).play(d.world)
				d.journal.broken = false
				require.Equal(t, before, d.snapshot())
			},
		})
	})
}
