package pgengine

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// A batch may have payloads of a gigabyte, which no statement may: it is written
// by several, in its order.
func TestLongBatchesAreWrittenInChunks(t *testing.T) {
	defer func(n int) { chunkBytes = n }(chunkBytes)
	chunkBytes = 10
	s, _ := newTestStore(t)
	var b store.Batch
	for i, n := range []int{3, 4, 4, 0, 25, 1, 9, 2} {
		payload := bytes.Repeat([]byte{byte('a' + i)}, n)
		b.Inserts = append(b.Inserts, store.Insert{Queue: "q", Payload: payload, RunAt: store.None})
		name := string(rune('a' + i))
		b.Puts = append(b.Puts, store.Put{Guard: store.Guard{Name: name}, Row: store.Schedule{Name: name, Queue: "q", Payload: payload, DueAt: store.None, CatchUp: store.CatchUp{Max: 1}}})
	}
	for range 2 { // new rows, and then in place
		c, err := s.Commit(t.Context(), &b)
		require.NoError(t, err)
		require.Zero(t, c.Refusal)
		rows, jobs := make([]store.Schedule, 8), make([]store.Job, 8)
		n, _, err := s.Schedules(t.Context(), "", rows)
		require.NoError(t, err)
		require.Equal(t, 8, n)
		_, _, err = s.Jobs(t.Context(), store.Filter{Queue: "q", From: c.Inserts[0].Job}, jobs)
		require.NoError(t, err)
		for i := range b.Inserts {
			require.Equal(t, c.Inserts[i].Job, jobs[i].ID)
			require.True(t, bytes.Equal(b.Inserts[i].Payload, jobs[i].Payload))
			require.Equal(t, c.Puts[i].ID, rows[i].ID)
			require.True(t, bytes.Equal(b.Inserts[i].Payload, rows[i].Payload))
			b.Puts[i].Guard.ID, b.Puts[i].Guard.Rev, b.Puts[i].Row.ID = rows[i].ID, rows[i].Rev, rows[i].ID
		}
	}
}

func TestTooLongPayloadsAreRefused(t *testing.T) {
	_, err := New(t.Context(), nil, tickonce.Config{Limits: tickonce.Limits{Payload: maxPayload + 1}}, Options{})
	require.ErrorIs(t, err, tickonce.ErrInvalidOption)
	require.ErrorContains(t, err, "want at most 268435456")
}
