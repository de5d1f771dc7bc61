package memengine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// golden are the snapshot and the log that a version wrote, which are one state.
// They are kept for ever: each version reads them.
func golden(t *testing.T, version string) (snapshot, log string) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("testdata", version, name))
		require.NoError(t, err)
		return string(b)
	}
	return read("snapshot"), read("log")
}

// What version 1 kept is there, and what it did not know is as it was for it.
func TestD1WhatVersion1WroteIsRead(t *testing.T) {
	old, _ := golden(t, "v1")
	require.EqualValues(t, 1, old[len(magic)])
	c := &clock{now: 3285}
	s, r := restored(t, c, old, "", nil)
	require.Zero(t, r)
	checkIndexes(t, s, c.now)

	held := s.named("held")
	require.NotNil(t, held)
	require.Equal(t, store.Schedule{
		ID: held.ID, Rev: 1, Name: "held", Spec: "@every 1s", Queue: "q", Payload: []byte("payload"),
		Stamps: stamps, CatchUp: store.CatchUp{WindowMS: 5000, Max: 1, Newest: true}, Cursor: 7000, DueAt: 7000,
		Priority: 7, Paused: store.PausedByUser, Hold: &store.Hold{Reason: "its spec", Since: 4000, Times: 3},
	}, held.Schedule)
	require.Equal(t, "o", s.lease("l").Owner)

	states, keys, failed := map[store.State]int{}, 0, 0
	for j := range s.jobs.from(0) {
		states[j.State]++
		if j.Key != "" {
			keys++
		}
		if j.LastError != "" {
			failed++
		}
		require.False(t, j.Alone)
		require.Zero(t, j.Origin)
		require.Equal(t, j.State == store.Pending, j.Since == store.None)
		if j.State == store.Claimed {
			require.Equal(t, j.Deadline, j.Since.Add(j.Stamps.VisibilityMS))
		}
	}
	require.Equal(t, map[store.State]int{store.Pending: 20, store.Claimed: 11, store.Dead: 32}, states)
	require.Equal(t, 11, keys)
	require.Equal(t, 34, failed)
}

// All that version 2 kept is there.
func TestD1WhatVersion2WroteIsRead(t *testing.T) {
	old, _ := golden(t, "v2")
	require.EqualValues(t, 2, old[len(magic)])
	c := &clock{now: 4526}
	s, r := restored(t, c, old, "", nil)
	require.Zero(t, r)
	checkIndexes(t, s, c.now)

	rich := s.named("rich")
	require.Equal(t, store.Schedule{
		ID: 1, Rev: 2, Name: "rich", Spec: "@every 1s", Queue: "q", Payload: []byte("payload"), Stamps: stamps,
		CatchUp: store.CatchUp{Max: 64}, Anchor: 7000, Cursor: 7000, DueAt: store.None, SetAt: 900,
		Paused: store.PausedByBreaker, Overlap: store.BufferOne, RunOnce: true, AtAnchor: true, Breaker: 5, Failures: 3,
		Rare: &store.Rare{Hours: store.Hours{Start: 480, End: 1020, Zone: "Europe/Berlin"}, TimeoutMS: 30_000},
	}, rich.Schedule)

	runs := make([]store.Run, 9)
	h, err := s.Runs(ctx, store.Page{Schedule: "rich"}, runs)
	require.NoError(t, err)
	require.Equal(t, []store.Run{{
		ID: 1, Schedule: "rich", ScheduleID: 1, Job: 1, FireAt: 500, FiredAt: 1000, StartedAt: 1000, EndedAt: 1007,
		Attempt: 1, Ended: store.Panicked, To: store.Dead, Error: "panic: boom",
	}}, runs[:h.N])
	skips := make([]store.SkipRange, 9)
	h, err = s.Skips(ctx, store.Page{Schedule: "rich"}, skips)
	require.NoError(t, err)
	require.Equal(t, []store.SkipRange{{
		ID: 1, Schedule: "rich", ScheduleID: 1, Reason: store.SkipBefore, EveryMS: 1000,
		First: -2000, Last: 1000, Count: 4, From: 1000, Until: 1000,
	}}, skips[:h.N])

	alone, deliveries := 0, 0
	for j := range s.jobs.from(0) {
		if j.Alone {
			alone++
		}
		if j.Origin == 77 {
			deliveries++
			require.Equal(t, "report", string(j.Payload))
			require.EqualValues(t, 30_000, j.TimeoutMS)
		}
	}
	require.Equal(t, []int{23, 1}, []int{alone, deliveries})
}

// Version 3 is of records alone: a payload that is there already is in none of
// them, and is there all the same.
func TestD1D3WhatRecordsOfVersion3LeaveOutIsThere(t *testing.T) {
	_, log := golden(t, "v3")
	require.EqualValues(t, 3, log[frameSize])
	require.Equal(t, 2, strings.Count(log, "first payload"), "as the schedule was put, and as a job of it was requeued after it had another")
	c := &clock{now: 8500}
	s, r := restored(t, c, "", log, nil)
	require.Equal(t, int64(len(log)), r.Offset)
	checkIndexes(t, s, c.now)

	rich := s.named("rich")
	require.Equal(t, store.Schedule{
		ID: 51, Rev: 4, Name: "rich", Spec: "@every 1s", Queue: "kept", Payload: []byte("second payload"), Stamps: stamps,
		CatchUp: store.CatchUp{Max: 64}, Cursor: 11500, DueAt: store.None, SetAt: 8500,
		Live: store.Live{Pending: 2, Claimed: 1}, Priority: 7, Paused: store.PausedByUser,
	}, rich.Schedule)
	states := map[store.JobID]store.State{}
	for j := range s.jobs.from(0) {
		if j.Queue == "kept" {
			require.Equal(t, "first payload", string(j.Payload), "job %d", j.ID)
			states[j.ID] = j.State
		}
	}
	require.Equal(t, map[store.JobID]store.State{104: store.Pending, 106: store.Claimed, 107: store.Pending}, states)
}

// A version's snapshot and its log come to the same, in the encoding of today.
func TestD1D3OldVersionsAreReadAndTheLatestIsWritten(t *testing.T) {
	versions, err := os.ReadDir("testdata")
	require.NoError(t, err)
	read := 0
	for _, v := range versions {
		if v.Name() == "fuzz" {
			continue
		}
		read++
		t.Run(v.Name(), func(t *testing.T) {
			old, log := golden(t, v.Name())
			c := &clock{now: 3285}
			j := &MemJournal{log: []byte(log)}
			s, r := restored(t, c, old, "", nil)
			require.Zero(t, r)
			replayed, r := restored(t, c, "", log, j)
			require.Equal(t, int64(len(log)), r.Offset)
			now := snapshot(t, s)
			require.EqualValues(t, snapshotVersion, now[len(magic)])
			require.Equal(t, now, snapshot(t, replayed))
			again, _ := restored(t, c, now, "", nil)
			require.Equal(t, now, snapshot(t, again))

			w := newWorkload(replayed, c, 1)
			for range 100 {
				require.NoError(t, w.plan()())
			}
			mixed := string(j.Bytes())
			require.Greater(t, len(mixed), len(log))
			require.EqualValues(t, recordVersion, mixed[len(log)+frameSize])
			fromLogs, _ := restored(t, c, "", mixed, nil)
			require.Equal(t, snapshot(t, replayed), snapshot(t, fromLogs))
			fromSnapshot, r := restored(t, c, old, mixed, nil)
			require.Equal(t, snapshot(t, replayed), snapshot(t, fromSnapshot))
			require.Positive(t, r.Skipped)
		})
	}
	require.Positive(t, read)
}

// Every byte of an old version's files counts as much as one of today's.
func TestD1D3EveryFlippedByteOfAnOldVersionIsFound(t *testing.T) {
	for _, version := range []string{"v1", "v2", "v3"} {
		t.Run(version, func(t *testing.T) { everyFlippedByteIsFound(t, version) })
	}
}

func everyFlippedByteIsFound(t *testing.T, version string) {
	old, log := golden(t, version)
	c := &clock{now: 3285}
	step := 1
	if testing.Short() {
		step = 7 // comes to each byte of a field of 8
	}
	for i := 0; i < len(old); i += step {
		b := []byte(old)
		b[i] ^= 0x10
		_, _, err := restoreStore(c.read, store.Limits{}, b, nil, nil, nil)
		require.ErrorAs(t, err, new(*SnapshotError), "byte %d of the snapshot", i)
		_, _, err = restoreStore(c.read, store.Limits{}, b[:i], nil, nil, nil)
		require.ErrorAs(t, err, new(*SnapshotError), "the snapshot cut at %d", i)
	}
	_, whole := restored(t, c, "", log, nil)
	for i := 0; i < len(log); i += step {
		b := []byte(log)
		b[i] ^= 0x10
		_, r, err := restoreStore(c.read, store.Limits{}, nil, b, nil, nil)
		if err == nil { // in the last record
			require.NotEmpty(t, r.Torn, "byte %d of the log", i)
			require.Equal(t, whole.Records-1, r.Records)
			continue
		}
		require.ErrorAs(t, err, new(*SnapshotError))
	}
}
