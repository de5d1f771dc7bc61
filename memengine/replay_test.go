package memengine

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// mirror has the rows that the changes which it was told of lead to.
type mirror struct {
	schedules map[store.ScheduleID]store.Schedule
	jobs      map[store.JobID]store.Job
	queues    map[string]store.Queue
	locks     map[string]store.Lease
}

func follow[K comparable, T any](t *testing.T, rows map[K]T, changes []Change[T], key func(*T) K) {
	for _, c := range changes {
		if c.Before != nil {
			require.Equal(t, rows[key(c.Before)], *c.Before)
			delete(rows, key(c.Before))
		}
		if c.After != nil {
			require.NotContains(t, rows, key(c.After))
			rows[key(c.After)] = *c.After
		}
	}
}

func (m *mirror) follow(t *testing.T, r *Record) {
	follow(t, m.schedules, r.Schedules, func(s *store.Schedule) store.ScheduleID { return s.ID })
	follow(t, m.jobs, r.Jobs, func(j *store.Job) store.JobID { return j.ID })
	follow(t, m.queues, r.Queues, func(q *store.Queue) string { return q.Name })
	follow(t, m.locks, r.Locks, func(l *store.Lease) string { return l.Lock })
}

func inOrder[K comparable, T any](rows map[K]T, compare func(a, b T) int) []T {
	return slices.SortedFunc(maps.Values(rows), compare)
}

// The records alone tell what the state was after each of them.
func TestD5TheRecordsTellEveryState(t *testing.T) {
	ops := map[string]bool{}
	for seed := range uint64(10) {
		j := journalOf(t, seed, 200)
		m := mirror{map[store.ScheduleID]store.Schedule{}, map[store.JobID]store.Job{}, map[string]store.Queue{}, map[string]store.Lease{}}
		at := 0
		s, r, err := Replay(Durable{Log: []byte(j.log)}, func(r *Record) {
			at++
			require.Equal(t, int64(at), r.Number)
			require.Equal(t, j.ends[at]-j.ends[at-1], r.Bytes)
			ops[r.Op] = true
			m.follow(t, r)
			last := lastOf(t, j.states[at])
			require.Equal(t, last.term, r.Term)
			rows := string(unsealed(last,
				inOrder(m.queues, func(a, b store.Queue) int { return cmp.Compare(a.Name, b.Name) }),
				inOrder(m.schedules, func(a, b store.Schedule) int { return cmp.Compare(a.Name, b.Name) }),
				inOrder(m.jobs, func(a, b store.Job) int { return cmp.Compare(a.ID, b.ID) }),
				inOrder(m.locks, func(a, b store.Lease) int { return cmp.Compare(a.Lock, b.Lock) })))
			require.True(t, strings.HasPrefix(j.states[at], rows))
		})
		require.NoError(t, err)
		require.Equal(t, len(j.states)-1, at)
		require.Equal(t, Recovery{Records: at, Offset: int64(len(j.log))}, r)
		require.Equal(t, j.states[at], snapshot(t, s))
	}
	require.Len(t, ops, len(opNames)-1)
}

// lastOf are the sequences of a snapshot.
func lastOf(t *testing.T, state string) sequences {
	d := &decoder{b: []byte(state), at: len(magic) + 1}
	last := d.sequences()
	require.Nil(t, d.err)
	return last
}

// Records that a snapshot contains are passed over.
func TestD5AReplayBeginsBehindTheSnapshot(t *testing.T) {
	j := journalOf(t, 1, 60)
	for i := range j.states {
		at := i
		s, r, err := Replay(Durable{Snapshot: []byte(j.states[i]), Log: []byte(j.log)}, func(r *Record) {
			at++
			require.Equal(t, int64(at), r.Number)
		})
		require.NoError(t, err)
		require.Equal(t, len(j.states)-1, at)
		require.Equal(t, i, r.Skipped)
		require.Equal(t, j.states[at], snapshot(t, s))
	}
}

// What is told of is not what becomes of a record that is no good.
func TestD5ADamagedRecordIsNotToldOf(t *testing.T) {
	j := journalOf(t, 1, 60)
	for op := range 256 {
		b := []byte(j.log[:j.ends[3]])
		payload := b[j.ends[2]+frameSize:]
		d := &decoder{b: payload, at: 1}
		d.sequences()
		payload[d.at] = byte(op)
		putFrame(b[j.ends[2]:])
		told := 0
		_, _, err := Replay(Durable{Log: b}, func(*Record) { told++ })
		if 0 < op && op < len(opNames) {
			require.NoError(t, err)
			require.Equal(t, 3, told)
			continue
		}
		var damaged *SnapshotError
		require.ErrorAs(t, err, &damaged)
		require.Equal(t, "unknown operation", damaged.Reason)
		require.Equal(t, 2, told)
	}
	torn := bytes.Clone([]byte(j.log[:j.ends[3]-1]))
	told := 0
	_, r, err := Replay(Durable{Log: torn}, func(*Record) { told++ })
	require.NoError(t, err)
	require.Equal(t, 2, told)
	require.Equal(t, "ends within a record", r.Torn)
}
